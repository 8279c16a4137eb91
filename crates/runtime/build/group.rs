//! What a compiler wrote for a file of its own, made fit to stand at the end of any other file.
//!
//! Three things are changed. Every section joins one COMDAT group, so a linker keeps one copy of
//! the runtime however many objects carry it. Every symbol becomes a label of our own
//! (`.Lheadcount_12`): the compilers' `.LBB0_1` would be defined twice in the same file. And
//! directives about the file as a whole, which is not ours, are dropped.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Names that `entry.s` and the guest both use.
const EXPORTS: &[&str] = &[
    "headcount_set_up",
    "headcount_construct",
    "headcount_finish",
    "headcount_adopt",
    "headcount_detector",
];

/// Name of the COMDAT group.
pub fn group(version: u32) -> String {
    format!("headcount_runtime_v{version}")
}

/// Fills the group's name into hand-written text, and gives its private names our prefix.
pub fn in_group(text: &str, version: u32) -> String {
    let mut result = String::new();
    for line in text.lines().filter(|line| !is_comment(line)) {
        let line = EXPORTS.iter().fold(line.to_owned(), |line, name| {
            line.replace(name, &format!(".L{name}"))
        });
        _ = writeln!(result, "{}", line.replace("GROUP", &group(version)));
    }
    result
}

/// The compiler's text, changed as the head of this file says.
pub fn guest_text(text: &str, version: u32) -> Result<String, String> {
    let lines = || text.lines().filter(|line| !is_comment(line));
    let labels = lines().filter_map(|line| label(line).or_else(|| alias(line)));
    let names = new_names(labels.chain(EXPORTS.iter().copied()));
    let mut result = String::new();
    let (mut in_code, mut current) = (false, String::new());
    for line in lines() {
        match directive(line) {
            Some((".section" | ".text" | ".data" | ".bss", rest)) => {
                let name = rest.split(',').next().unwrap_or_default();
                let name = if name.is_empty() { line.trim() } else { name };
                in_code = name.trim_matches('"').starts_with(".text");
                let section = section(name, version)?;
                if let Some(section) = section.filter(|section| *section != current) {
                    _ = writeln!(result, "\t.section {section}");
                    current = section;
                }
            }
            // Short is better than fast, for code that runs once a thread.
            Some((".p2align", _)) if in_code => {}
            Some((name, _)) if is_about_the_file_or_its_symbols(name) => {}
            Some((name @ (".comm" | ".lcomm" | ".local"), _)) => {
                return Err(format!("{name} cannot be in a group"));
            }
            _ => {
                _ = writeln!(result, "{}", rename(&plain(line, &names), &names));
            }
        }
    }
    Ok(result)
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

fn label(line: &str) -> Option<&str> {
    let name = line.split('#').next()?.trim_end().strip_suffix(':')?;
    name.chars().all(is_part_of_a_name).then_some(name)
}

/// The new name in `new = old` or `.set new, old`: two functions turned out to be the same.
fn alias(line: &str) -> Option<&str> {
    let set = line
        .trim_start()
        .strip_prefix(".set")
        .and_then(|set| set.split_once(','));
    Some(set.or_else(|| line.split_once(" = "))?.0.trim())
}

fn directive(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if !line.starts_with('.') || line.ends_with(':') {
        return None;
    }
    Some(line.split_once(char::is_whitespace).unwrap_or((line, "")))
}

fn is_about_the_file_or_its_symbols(directive: &str) -> bool {
    matches!(
        directive,
        ".file"
            | ".ident"
            | ".globl"
            | ".hidden"
            | ".weak"
            | ".type"
            | ".size"
            | ".addrsig"
            | ".addrsig_sym"
    ) || directive.starts_with(".cfi_")
}

/// Where a section of the compiler's goes; `None` for those that are dropped.
fn section(name: &str, version: u32) -> Result<Option<String>, String> {
    let (to, flags, kind) = match name.trim_matches('"') {
        ".note.GNU-stack" | ".debug_gdb_scripts" => return Ok(None),
        name if name.starts_with(".text") => (".text.headcount", "axG", "@progbits"),
        name if name.starts_with(".rodata") => (".rodata.headcount", "aG", "@progbits"),
        name if name.starts_with(".bss") => (".bss.headcount", "awG", "@nobits"),
        name => return Err(format!("section {name} has no place")),
    };
    Ok(Some(format!(
        "{to},\"{flags}\",{kind},{},comdat",
        group(version)
    )))
}

fn new_names<'a>(labels: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let kept = |name: &str| EXPORTS.contains(&name);
    labels
        .enumerate()
        .map(|(number, name)| match kept(name) {
            true => (name, format!(".L{name}")),
            false => (name, format!(".Lheadcount_{number}")),
        })
        .collect()
}

/// Says what LLVM's assembler understands in words that GNU's does too, and reaches for names of
/// ours directly: they are never elsewhere, so no global offset table is needed.
fn plain(line: &str, names: &BTreeMap<&str, String>) -> String {
    let (instruction, operands) = line.trim_start().split_once('\t').unwrap_or((line, ""));
    let ours = |name: &str| names.contains_key(name);
    let from_table = operands
        .split_once("@GOTPCREL(%rip)")
        .filter(|(name, _)| ours(name.trim_start_matches('*')));
    match (instruction, from_table) {
        ("wrgsbaseq", _) => format!("\twrgsbase\t{operands}"),
        ("movq", Some((name, to))) => format!("\tleaq\t{name}(%rip){to}"),
        ("jmpq", Some((name, ""))) => format!("\tjmp\t{}", name.trim_start_matches('*')),
        (call, Some((name, ""))) => format!("\t{call}\t{}", name.trim_start_matches('*')),
        _ => line.to_owned(),
    }
}

fn rename(line: &str, names: &BTreeMap<&str, String>) -> String {
    let mut result = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(is_part_of_a_name) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_part_of_a_name(c)).unwrap_or(from.len());
        let (name, after) = from.split_at(end);
        result.push_str(before);
        match names.get(name) {
            // Everything is in one section now: no linkage table is needed.
            Some(new) => {
                result.push_str(new);
                rest = after.strip_prefix("@PLT").unwrap_or(after);
            }
            None => {
                result.push_str(name);
                rest = after;
            }
        }
    }
    result + rest
}

fn is_part_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPILED: &str = "
	.file	\"guest\"
	.section	.text.headcount_set_up,\"ax\",@progbits
	.globl	headcount_set_up
	.p2align	4
	.type	headcount_set_up,@function
headcount_set_up:
	movq	_ZN5state17hE@GOTPCREL(%rip), %rax
	callq	*memcpy@GOTPCREL(%rip)
	movq	environ@GOTPCREL(%rip), %rcx
	#APP
	wrgsbaseq	%rax
	#NO_APP
	jne	.LBB0_1
	jmpq	*memcpy@GOTPCREL(%rip)
.LBB0_1:
	retq
	.size	headcount_set_up, .-headcount_set_up
	.section	.text.memcpy,\"ax\",@progbits
memcpy:
	retq
	.section	.bss._ZN5state17hE,\"aw\",@nobits
	.p2align	3, 0x0
_ZN5state17hE:
	.zero	8
	.section	\".note.GNU-stack\",\"\",@progbits
";

    #[test]
    fn everything_joins_the_group_under_names_of_our_own() {
        let expected = "	.section .text.headcount,\"axG\",@progbits,headcount_runtime_v7,comdat
.Lheadcount_set_up:
	leaq	.Lheadcount_3(%rip), %rax
	callq	.Lheadcount_2
	movq	environ@GOTPCREL(%rip), %rcx
	wrgsbase	%rax
	jne	.Lheadcount_1
	jmp	.Lheadcount_2
.Lheadcount_1:
	retq
.Lheadcount_2:
	retq
	.section .bss.headcount,\"awG\",@nobits,headcount_runtime_v7,comdat
	.p2align	3, 0x0
.Lheadcount_3:
	.zero	8
";
        assert_eq!(guest_text(COMPILED, 7).unwrap(), expected);
    }

    #[test]
    fn a_section_without_a_place_is_refused() {
        let data = "\t.section\t.data.rel.ro,\"aw\",@progbits\n";
        assert!(guest_text(data, 7).unwrap_err().contains(".data.rel.ro"));
    }
}
