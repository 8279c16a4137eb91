//! Compiles the guest (`guest/`) to assembler text that any object file can carry.
//!
//! The compiler is called directly, not through cargo: the text must not depend on the flags or
//! the profile headcount itself is built with.

#[path = "build/group.rs"]
mod group;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let guest = here.join("guest");
    let wire = here.join("../wire/src/lib.rs");
    for path in [&guest, &wire, &here.join("build")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }

    // Compiled twice with the same flags: the words first, then the guest that uses them.
    let words = out.join("libheadcount_wire.rlib");
    rustc(
        &out,
        &wire,
        ["headcount_wire", "rlib"],
        &["--emit=link", "-o"],
        &words,
    );

    let root = out.join("guest.rs");
    write(&root, &guest_root(&guest, &wire));
    let raw = out.join("guest.s");
    let extern_wire = format!("headcount_wire={}", words.display());
    let emit = ["--extern", &extern_wire, "--emit=asm", "-o"];
    rustc(&out, &root, ["headcount_guest", "staticlib"], &emit, &raw);

    let version = headcount_wire::VERSION;
    let opening = group::in_group(&read(&guest.join("opening.s")), version);
    write(&out.join("opening.s"), &opening);
    let entry = group::in_group(&read(&guest.join("entry.s")), version);
    let body = group::guest_text(&read(&raw), version).unwrap_or_else(|problem| {
        panic!("the guest cannot be carried: {problem}");
    });
    write(&out.join("runtime.s"), &(entry + &body));
}

/// The root of the guest crate: its attributes, and a stamp that tells apart two builds of the
/// runtime that must not share a table in one process.
fn guest_root(guest: &Path, wire: &Path) -> String {
    let shared = ["table.rs", "lane.rs", "registration.rs", "module.rs"];
    let layout: String = shared.iter().map(|file| read(&guest.join(file))).collect();
    let layout = layout + &read(wire);
    format!(
        "#![no_std]\n#![no_builtins]\n\
         pub const LAYOUT: u64 = {:#x};\n\
         #[path = {:?}]\nmod guest;\n\
         #[panic_handler]\nfn never(_: &core::panic::PanicInfo) -> ! {{ loop {{}} }}\n",
        headcount_wire::fingerprint(layout.as_bytes(), 0),
        guest.join("mod.rs")
    )
}

fn rustc(out: &Path, source: &Path, [name, kind]: [&str; 2], more: &[&str], result: &Path) {
    let mut command = Command::new(variable("RUSTC"));
    command
        .current_dir(out)
        .arg(source)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            kind,
            "--crate-name",
            name,
        ])
        .args(["--target", &variable("TARGET")])
        .args("-Copt-level=s -Cpanic=abort -Ccodegen-units=1 -Cdebuginfo=0".split(' '))
        .args("-Crelocation-model=pic -Ctarget-cpu=x86-64 -Cforce-unwind-tables=no".split(' '))
        .args("-Coverflow-checks=no -Cdebug-assertions=no -Cembed-bitcode=no".split(' '))
        .args(more)
        .arg(result);
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{command:?}: {status:?}"
    );
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
