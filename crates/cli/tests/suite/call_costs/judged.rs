//! What calls of real programs cost, held against callgrind.
//!
//! Callgrind follows calls and returns by itself, and shares nothing with us. Programs are static, so
//! that no loader is among them; they have no `rep` instructions, of which callgrind counts every round,
//! and functions for strings and memory that do not go by where these are.
//! Calls that may lead back to their caller are left out: there, callgrind adds up what is nested.

use crate::workshop::{Workshop, is_thorough};
use headcount_ground::program::Program;
use headcount_ground::real::{self, Amount};
use headcount_ground::registry::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{number, rows};

/// What valgrind's processor has not, and the C library would use.
const TUNABLES: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,\
    -AVX512DQ,-RTM,-ERMS,-FSRM,-XSAVEC:glibc.cpu.x86_data_cache_size=32768:\
    glibc.cpu.x86_shared_cache_size=1048576:glibc.cpu.x86_non_temporal_threshold=786432:\
    glibc.cpu.x86_rep_movsb_threshold=2048:glibc.cpu.x86_rep_stosb_threshold=2048";

/// By call site: how often, and at what cost.
type Sites = BTreeMap<u64, (u64, u64)>;

/// What callgrind saw.
#[derive(Default)]
struct Seen {
    sites: Sites,
    /// The functions that each function calls.
    callees: BTreeMap<String, BTreeSet<String>>,
    /// The functions on both sides of a call site.
    sides: BTreeMap<u64, BTreeSet<(String, String)>>,
}

/// A name without the number of its nested activations.
fn plain(name: &str) -> String {
    let (before, behind) = name.split_once('\'').unwrap_or((name, ""));
    match behind.bytes().all(|it| it.is_ascii_digit()) {
        true => before.to_owned(),
        false => name.to_owned(),
    }
}

impl Seen {
    /// Reads what was written with names and positions in full.
    fn of(text: &str) -> Self {
        let mut seen = Self::default();
        let (mut function, mut callee) = (String::new(), String::new());
        let mut calls = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                function = plain(name);
            } else if let Some(name) = line.strip_prefix("cfn=") {
                callee = plain(name);
            } else if let Some(rest) = line.strip_prefix("calls=") {
                calls = rest.split(' ').next().map(number);
            } else if let (Some(at), Some(calls)) = (line.strip_prefix("0x"), calls.take()) {
                let words: Vec<&str> = at.split(' ').collect();
                let at = u64::from_str_radix(words[0], 16).expect("an address");
                let site = seen.sites.entry(at).or_default();
                let cost = words.get(2).copied().map_or(0, number);
                *site = (site.0 + calls, site.1 + cost);
                let sides = (function.clone(), callee.clone());
                seen.sides.entry(at).or_default().insert(sides);
                let callees = seen.callees.entry(function.clone()).or_default();
                callees.insert(callee.clone());
            }
        }
        seen
    }

    fn leads_to(&self, from: &str, to: &str) -> bool {
        let (mut known, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(name) = open.pop() {
            if name == to {
                return true;
            }
            if known.insert(name) {
                open.extend(
                    self.callees
                        .get(name)
                        .into_iter()
                        .flatten()
                        .map(String::as_str),
                );
            }
        }
        false
    }

    /// May a call lead back to its caller?
    fn is_recursive(&self, site: u64) -> bool {
        let mut sides = self.sides[&site].iter();
        sides.any(|(caller, callee)| self.leads_to(callee, caller))
    }
}

fn build(shop: &Workshop, program: &Program) {
    shop.write("same.c", include_str!("same_everywhere.c"));
    let plain = ["-O1", "-fno-builtin", "-fno-tree-loop-distribute-patterns"];
    shop.must(&[&["gcc", "-c", "same.c"], &plain[..]].concat());
    let flags = ["-O2", "-g", "-static", "-mstringop-strategy=libcall"];
    let flags = flags.map(str::to_owned);
    let words = program.compile(&flags, &shop.path("it"));
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.push("same.o");
    shop.must(&[&["gcc"], &words[..]].concat());
}

/// Valgrind itself: Debian's `valgrind` is a script that changes the environment.
fn valgrind() -> &'static str {
    match Path::new("/usr/bin/valgrind.bin").exists() {
        true => "valgrind.bin",
        false => "valgrind",
    }
}

/// Begins a command with the same environment for both, byte for byte: every byte of it moves the
/// stack, and string functions go by where strings are.
fn alike(preloads: Option<&str>) -> Vec<&str> {
    let clean = ["setarch", "-R", "env", "-i", "PATH=/usr/bin:/bin", TUNABLES];
    clean.into_iter().chain(preloads).collect()
}

/// What valgrind makes every program load.
fn preloads(shop: &Workshop) -> String {
    let ask = [valgrind(), "-q", "--tool=none", "/usr/bin/env"];
    let said = shop.must(&[&alike(None)[..], &ask].concat());
    let mut lines = said.lines();
    let found = lines.find(|it| it.starts_with("LD_PRELOAD="));
    found.expect("valgrind preloads something").to_owned()
}

fn judge(shop: &Workshop, program: &[&str]) -> Seen {
    let quiet = [
        "-q",
        "--tool=callgrind",
        "--callgrind-out-file=seen",
        "--dump-instr=yes",
    ];
    let full = [
        "--skip-plt=no",
        "--compress-pos=no",
        "--compress-strings=no",
    ];
    let words = [&alike(None)[..], &[valgrind()], &quiet, &full, program];
    shop.must(&words.concat());
    let seen = std::fs::read(shop.path("seen")).expect("a file");
    Seen::of(&String::from_utf8_lossy(&seen))
}

/// The call sites of the program's own code.
fn counted(shop: &Workshop, program: &Program, words: &[&str]) -> Sites {
    let headcount = env!("CARGO_BIN_EXE_headcount");
    let run = [headcount, "run", "-q", "--calls", "--"];
    let preloads = preloads(shop);
    shop.must(&[&alike(Some(&preloads))[..], &run, words].concat());
    let files = shop.report(&["--by", "file", "--format", "csv"]);
    let mut only: Vec<&str> = Vec::new();
    for source in &program.sources {
        let name = source.file_name().and_then(|it| it.to_str());
        // Some are only tables.
        if let Some(name) = name.filter(|it| files.contains(&format!("{it},"))) {
            only.extend(["--only", name]);
        }
    }
    let csv = shop.report(&[&["--by", "call", "--format", "csv"], &only[..]].concat());
    let mut sites = Sites::new();
    for row in rows(&csv, &["address", "count", "inclusive"]) {
        let at = u64::from_str_radix(&row[0][2..], 16).expect("an address");
        let site = sites.entry(at).or_default();
        *site = (site.0 + number(&row[1]), site.1 + number(&row[2]));
    }
    sites.retain(|_, it| it.0 > 0);
    sites
}

#[test]
fn call_sites_of_real_programs_cost_what_callgrind_says() {
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("judged_calls");
    let sources = Sources::fetch(&work).unwrap();
    let mut programs = real::programs(&sources, Amount::Little).unwrap();
    // Lua is recursion above all; the others take callgrind longer, up to a minute each.
    programs.retain(|it| it.name == "bzip2" || it.name != "lua" && is_thorough());
    for program in programs {
        let shop = Workshop::new();
        build(&shop, &program);
        let it = shop.path("it").display().to_string();
        let arguments = program.arguments.iter().map(String::as_str);
        let words: Vec<&str> = std::iter::once(it.as_str()).chain(arguments).collect();
        let seen = judge(&shop, &words);
        let counted = counted(&shop, &program, &words);
        let mut compared = 0;
        for (at, cost) in &counted {
            if !seen.sides.contains_key(at) {
                panic!("{}: callgrind saw no call at {at:#x}", program.name);
            }
            if !seen.is_recursive(*at) {
                assert_eq!(Some(cost), seen.sites.get(at), "{}: {at:#x}", program.name);
                compared += 1;
            }
        }
        assert!(compared > 30, "{}: {compared}", program.name);
    }
}
