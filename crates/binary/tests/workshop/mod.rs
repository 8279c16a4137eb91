//! Builds small programs, and asks other tools about them.
#![allow(dead_code)] // Each test file uses its own share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use headcount_binary::{Binary, FileBytes, Wanted, read};
use headcount_model::{EdgeKind, Function};

/// A folder that goes away again.
pub struct Workshop(tempfile::TempDir);

impl Workshop {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Runs a command line in the folder; answers with what it prints.
    pub fn run(&self, command: &str) -> String {
        run_in(self.0.path(), command)
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn read(&self, name: &str) -> Binary {
        self.read_with(name, &mut |_| None)
    }

    pub fn read_with(
        &self,
        name: &str,
        find: &mut dyn FnMut(Wanted<'_>) -> Option<Vec<u8>>,
    ) -> Binary {
        let path = self.path(name);
        let mut find = |wanted: Wanted<'_>| Some(Arc::new(find(wanted)?) as FileBytes);
        read(path.to_str().unwrap(), &self.bytes(name), &mut find).unwrap()
    }
}

fn run_in(folder: &Path, command: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn function<'b>(binary: &'b Binary, name: &str) -> &'b Function {
    let mut all = binary.module.functions.iter();
    all.find(|function| function.name == name)
        .unwrap_or_else(|| {
            let names: Vec<_> = binary.module.functions.iter().map(|it| &it.name).collect();
            panic!("no {name} in {names:?}; {:?}", binary.module.refusals)
        })
}

/// The addresses of blocks that control reaches along edges of this kind.
pub fn reached_by(function: &Function, kind: EdgeKind) -> BTreeSet<u64> {
    let edges = function.edges.iter().filter(|edge| edge.kind == kind);
    let blocks = edges.filter_map(|edge| function.blocks.get(edge.to? as usize));
    blocks.map(|block| block.address.0).collect()
}

/// Every instruction with its line, and whether a statement begins there.
pub fn lines_of(binary: &Binary) -> BTreeMap<u64, (String, u32)> {
    let mut found = BTreeMap::new();
    for block in binary.module.functions.iter().flat_map(|it| &it.blocks) {
        let mut at = block.address.0;
        let lengths = block
            .code
            .iter()
            .flat_map(|span| headcount_x86::count(span).unwrap());
        let lengths: Vec<u8> = lengths.collect();
        let covered: u32 = block.lines.iter().map(|run| run.instructions).sum();
        let bare = block.instructions - covered;
        let mut runs = block
            .lines
            .iter()
            .flat_map(|run| std::iter::repeat_n(run, run.instructions as usize));
        for (index, length) in lengths.iter().enumerate() {
            if index as u32 >= bare
                && let Some(run) = runs.next()
            {
                let file = binary.module.files[run.file.index()].clone();
                found.insert(at, (file, run.line));
            }
            at += u64::from(*length);
        }
    }
    found
}

/// One instruction, as objdump sees it.
pub struct Seen {
    pub at: u64,
    pub text: String,
    /// Where it jumps or calls, if that is written in it.
    pub target: Option<u64>,
    /// The symbol before it.
    pub symbol: String,
}

/// What objdump makes of a file.
pub fn objdump(workshop: &Workshop, name: &str) -> Vec<Seen> {
    let text = workshop.run(&format!("objdump -d -w --no-show-raw-insn {name}"));
    let mut symbol = String::new();
    let mut seen = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(">:") {
            symbol = name.split_once('<').unwrap().1.to_owned();
        }
        let Some((at, text)) = line.split_once(":\t") else {
            continue;
        };
        let Ok(at) = u64::from_str_radix(at.trim(), 16) else {
            continue;
        };
        let text = text.split('#').next().unwrap_or_default().trim();
        let mut words = text
            .split_whitespace()
            .filter(|word| !matches!(*word, "bnd" | "notrack"));
        let name = words.next().unwrap_or_default();
        let operand = words.next().unwrap_or_default();
        let branches =
            name.starts_with('j') || name.starts_with("call") || name.starts_with("loop");
        let target = u64::from_str_radix(operand, 16).ok().filter(|_| branches);
        seen.push(Seen {
            at,
            text: text.to_owned(),
            target,
            symbol: symbol.clone(),
        });
    }
    seen
}
