//! Ucode: what the translator hands to the linker, and how it is written.

use std::io::Write;

use crate::files::{FileId, Names};
use crate::opcode::Opcode;
use crate::tree::{Constant, Global, GlobalKind, LexemeId, Local, LocalKind, Program, Record};

/// A line of the code of a procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    File(FileId),
    Line(u32),
    Column(u32),
    Label(u32),
    Do(Instruction),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub opcode: Opcode,
    pub operand: Operand,
    /// The number of the token whose code it is. None of what only keeps statements apart.
    pub token: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    None,
    Number(i64),
    Label(u32),
    Text(Vec<u8>),
}

/// The code of one procedure.
#[derive(Clone, Debug)]
pub struct Code {
    pub name: Vec<u8>,
    /// If it is another than of the procedure before.
    pub file: Option<FileId>,
    /// The file that it begins in.
    pub begins_in: FileId,
    pub locals: Vec<Local>,
    pub constants: Vec<Constant>,
    pub items: Vec<Item>,
}

impl Code {
    /// All that is executed, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.items.iter().filter_map(|it| match it {
            Item::Do(instruction) => Some(instruction),
            _ => None,
        })
    }

    /// Replaces the lexemes that instructions were made for by the tokens that these are.
    pub(crate) fn give_tokens(&mut self, token: impl Fn(LexemeId) -> Option<u32>) {
        for item in &mut self.items {
            if let Item::Do(instruction) = item {
                instruction.token = instruction.token.and_then(&token);
            }
        }
    }
}

/// The `.u1` file.
pub fn first_file(codes: &[Code], names: &Names) -> Vec<u8> {
    let mut out = Vec::new();
    for code in codes {
        write_code(&mut out, code, names);
    }
    out
}

fn put(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn write_code(out: &mut Vec<u8>, code: &Code, names: &Names) {
    put(out, &[b"proc ", &code.name, b"\n"]);
    if let Some(file) = code.file {
        put(out, &[b"\tfilen\t", names.name(file), b"\n"]);
    }
    for (number, local) in code.locals.iter().enumerate() {
        let flags = flags(local.kind);
        put(
            out,
            &[
                format!("\tlocal\t{number},{flags},").as_bytes(),
                &local.name,
                b"\n",
            ],
        );
    }
    for (number, constant) in code.constants.iter().enumerate() {
        write_constant(out, number, constant);
    }
    put(out, &[b"\tdeclend\n"]);
    for item in &code.items {
        match item {
            Item::File(file) => put(out, &[b"\tfilen\t", names.name(*file), b"\n"]),
            Item::Line(line) => say(out, format_args!("\tline\t{}\n", *line as i32)),
            Item::Column(column) => say(out, format_args!("\tcolm\t{}\n", *column as i32)),
            Item::Label(label) => say(out, format_args!("lab L{label}\n")),
            Item::Do(it) => {
                put(out, &[b"\t", it.opcode.name().as_bytes()]);
                match &it.operand {
                    Operand::None => (),
                    Operand::Number(number) => say(out, format_args!("\t{number}")),
                    Operand::Label(label) => say(out, format_args!("\tL{label}")),
                    Operand::Text(text) => put(out, &[b"\t", text]),
                }
                put(out, &[b"\n"]);
            }
        }
    }
    put(out, &[b"\tend\n"]);
}

fn say(out: &mut Vec<u8>, text: std::fmt::Arguments) {
    // A vector takes all that is written.
    let _ = out.write_fmt(text);
}

fn write_constant(out: &mut Vec<u8>, number: usize, constant: &Constant) {
    let (flags, text, is_literal) = match constant {
        Constant::Integer(text) => ("002000", text, false),
        Constant::Real(text) => ("004000", text, false),
        Constant::String(text) => ("010000", text, true),
        Constant::Cset(text) => ("020000", text, true),
    };
    say(out, format_args!("\tcon\t{number},{flags}"));
    if !matches!(constant, Constant::Real(_)) {
        say(out, format_args!(",{}", text.len()));
    }
    if is_literal {
        for byte in text {
            say(out, format_args!(",{byte:03o}"));
        }
    } else {
        put(out, &[b",", text]);
    }
    put(out, &[b"\n"]);
}

fn flags(kind: LocalKind) -> &'static str {
    match kind {
        LocalKind::Undeclared => "000000",
        LocalKind::Dynamic => "000020",
        LocalKind::Static => "000040",
        LocalKind::Argument => "001000",
    }
}

/// The `.u2` file.
pub fn second_file(program: &Program) -> Vec<u8> {
    let mut out = b"version\tU9.0.00\n".to_vec();
    for record in &program.records {
        write_record(&mut out, record);
    }
    put(&mut out, &[b"impl\tlocal\n"]);
    for link in &program.links {
        put(&mut out, &[b"link\t", link, b".u1\n"]);
    }
    for name in &program.invocable {
        put(&mut out, &[b"invocable\t", name, b"\n"]);
    }
    say(
        &mut out,
        format_args!("global\t{}\n", program.globals.len()),
    );
    for (number, global) in program.globals.iter().enumerate() {
        write_global(&mut out, number, global);
    }
    out
}

fn write_record(out: &mut Vec<u8>, record: &Record) {
    put(out, &[b"record\t", &record.name]);
    say(out, format_args!(",{}\n", record.fields.len()));
    for (number, field) in record.fields.iter().enumerate() {
        say(out, format_args!("\t{number},"));
        put(out, &[field, b"\n"]);
    }
}

fn write_global(out: &mut Vec<u8>, number: usize, global: &Global) {
    let flags = match global.kind {
        GlobalKind::Variable => "000001",
        GlobalKind::Procedure => "000005",
        GlobalKind::Record => "000011",
    };
    say(out, format_args!("\t{number},{flags},"));
    put(out, &[&global.name]);
    say(out, format_args!(",{}\n", global.arguments));
}
