//! What a file says about its symbols, wherever in it: who is a function, who is seen from other
//! files, who is called.

use std::collections::{HashMap, HashSet};

use crate::instruction::{Control, Instruction, Target};
use crate::lex::{self, Kind, Statement, split, unquote};
use crate::source::Unreadable;

/// What directives anywhere in the file say about symbols.
#[derive(Debug, Default)]
pub struct Symbols<'t> {
    /// Those said to be functions.
    pub functions: HashSet<&'t str>,
    /// Those said to be data.
    pub objects: HashSet<&'t str>,
    /// Those seen from other files, under this or another name.
    pub global: HashSet<&'t str>,
    /// Those another file may replace.
    pub weak: HashSet<&'t str>,
    /// Those that a call names.
    pub called: HashSet<&'t str>,
    /// Those that are run to find out what they stand for.
    pub resolvers: HashSet<&'t str>,
    /// What local names stand for: gcc's thunks jump to `.LTHUNK0`, set to the function.
    aliases: HashMap<&'t str, &'t str>,
    /// Names of macros, in lower case.
    pub macros: HashSet<String>,
    /// Whether a compiler wrote the file.
    pub by_compiler: bool,
    /// Whether it has a line table.
    pub has_rows: bool,
}

impl<'t> Symbols<'t> {
    /// Reads them all. Fails if nothing in the file can be read.
    pub fn collect(text: &'t str, statements: &[Statement]) -> Result<Self, Unreadable> {
        let mut all = Self::default();
        let mut indirect = HashSet::new();
        let mut aliases = Vec::new();
        let mut in_app = false;
        for statement in statements {
            let body = &text[statement.at.clone()];
            match statement.kind {
                Kind::AppBegin => in_app = true,
                Kind::AppEnd => in_app = false,
                Kind::Instruction if body.starts_with("call") => {
                    let instruction = Instruction::parse(body);
                    if let Control::Call(Target::Symbol { name, .. }) = instruction.control() {
                        all.called.insert(name);
                    }
                }
                Kind::Directive => {
                    let (directive, arguments) = split(body);
                    let mut names = arguments.split(',').map(|name| unquote(name.trim()));
                    match directive {
                        ".type" => {
                            let (Some(name), Some(kind)) = (names.next(), names.next()) else {
                                continue;
                            };
                            match kind.trim_start_matches(['@', '%', '#']) {
                                "function" | "STT_FUNC" => all.functions.insert(name),
                                "gnu_indirect_function" | "STT_GNU_IFUNC" => indirect.insert(name),
                                "object" | "STT_OBJECT" => all.objects.insert(name),
                                _ => false,
                            };
                        }
                        ".globl" | ".global" => all.global.extend(names),
                        ".weak" => all.weak.extend(names),
                        ".set" | ".equ" | ".symver" => {
                            if let (Some(alias), Some(of)) = (names.next(), names.next()) {
                                aliases.push((alias, of));
                            }
                        }
                        ".macro" => {
                            let name = arguments.split([' ', '\t', ',']).next().unwrap_or_default();
                            // The assembler does not tell SAVE from save either.
                            all.macros.insert(name.to_ascii_lowercase());
                        }
                        ".intel_syntax" if !in_app => {
                            return Err(Unreadable {
                                line: statement.line,
                                reason: "it is written in Intel syntax".to_owned(),
                                in_64_bits: true,
                            });
                        }
                        ".code32" | ".code16" | ".code16gcc" if !in_app => {
                            return Err(Unreadable {
                                line: statement.line,
                                reason: "it is not 64-bit code".to_owned(),
                                in_64_bits: false,
                            });
                        }
                        ".ident" => all.by_compiler = true,
                        ".loc" => all.has_rows = true,
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        // gcc -fno-ident leaves no signature, but it begins with the file's name.
        all.by_compiler |= statements
            .first()
            .is_some_and(|first| text[first.at.clone()].starts_with(".file"));
        for (alias, of) in aliases {
            let is_symbol = !of.starts_with(|first: char| first.is_ascii_digit())
                && of.bytes().all(lex::is_symbol_byte);
            if alias.starts_with(".L") && is_symbol {
                all.aliases.insert(alias, of);
            } else if indirect.contains(alias) {
                all.resolvers.insert(of);
            } else if all.global.contains(alias) || all.weak.contains(alias) {
                all.global.insert(of);
            }
        }
        all.resolvers.extend(indirect);
        Ok(all)
    }

    /// Where an instruction leads, local names replaced by what they stand for.
    pub fn control(&self, instruction: &Instruction<'t>) -> Control<'t> {
        let real = |target| match target {
            Target::Symbol { name, through_plt } => Target::Symbol {
                name: self.aliases.get(name).copied().unwrap_or(name),
                through_plt,
            },
            odd => odd,
        };
        match instruction.control() {
            Control::Jump(target) => Control::Jump(real(target)),
            Control::Branch(target) => Control::Branch(real(target)),
            Control::ShortBranch(target) => Control::ShortBranch(real(target)),
            Control::Call(target) => Control::Call(real(target)),
            other => other,
        }
    }

    /// Whether a label in code begins a function, rather than marking a place in one.
    pub fn begins_function(&self, name: &str) -> bool {
        !name.starts_with(".L")
            && !name.as_bytes()[0].is_ascii_digit()
            && (self.functions.contains(name)
                || self.global.contains(name)
                || self.weak.contains(name)
                || self.called.contains(name)
                || self.resolvers.contains(name))
    }
}
