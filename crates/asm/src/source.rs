//! A file of assembler text, understood: its functions as sequences of operations, and who may
//! jump to, call or take the address of what.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use headcount_model::Refusal;

use crate::instruction::{Control, Effect, Instruction, Set, Target};
use crate::lex::{self, Kind, Statement};
use crate::unwind::{FrameId, Frames, LandingPads};

/// Facts about the text that it does not tell itself.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Name of the file, for lines of hand-written assembler and for refusals.
    pub name: String,
}

/// One operation: an instruction, or several pieces that must stay together.
#[derive(Clone, Debug)]
pub struct Op<'t> {
    /// Its statements.
    pub statements: Range<usize>,
    /// Where control goes after it.
    pub control: Control<'t>,
    /// What it needs and overwrites.
    pub effect: Effect,
    /// The unwinder's view of the frame before it.
    pub frame: FrameId,
    /// Line rows that begin at it: a range of [`Source::rows`].
    pub rows: Range<u32>,
    /// What kind of thing it is.
    pub what: What<'t>,
    /// Whether alignment stands right before it.
    pub aligned: bool,
    /// Alignment inside it (inline assembly): statements whose bytes are not the program's.
    pub padding: Vec<usize>,
}

/// What kind of thing an operation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What<'t> {
    /// An instruction of the program.
    Plain,
    /// `endbr64`, which must stay first at its place.
    Endbr,
    /// `call 1f; 1:`, which asks where it is: nothing may stand behind it.
    WhereAmI,
    /// Inline assembly, opaque: `targets` are labels it may jump to; `lost` if control may leave
    /// through it in another way; `tangled` if it has jumps of its own inside.
    Asm {
        targets: Vec<&'t str>,
        lost: bool,
        tangled: bool,
    },
}

/// A row of the line table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index into [`Source::files`].
    pub file: u32,
    /// The line, 0 for none in particular.
    pub line: u32,
    /// Whether a statement begins here.
    pub is_stmt: bool,
}

/// A contiguous piece of code under one symbol.
#[derive(Debug)]
pub struct Part<'t> {
    /// The symbol.
    pub name: &'t str,
    /// Statement of its label.
    pub label: usize,
    /// Section it is in: an index into [`Source::sections`].
    pub section: usize,
    /// What it consists of.
    pub ops: Vec<Op<'t>>,
    /// Why it cannot be counted.
    pub refusal: Option<Refusal>,
    /// Whether a person wrote it, who need not keep to the calling convention.
    pub by_hand: bool,
    /// The source line its first operation has, if known.
    pub first_row: Option<Row>,
}

/// Where a code label stands: before the operation `op` of `part` (which may be one past the
/// last).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spot {
    /// Index of the part.
    pub part: usize,
    /// Index of the operation.
    pub op: usize,
}

/// A section, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'t> {
    /// Its name.
    pub name: &'t str,
    /// Whether it holds code.
    pub code: bool,
    /// The comdat group it belongs to.
    pub group: Option<&'t str>,
}

/// A file of assembler text.
#[derive(Debug)]
pub struct Source<'t> {
    /// The text.
    pub text: &'t str,
    /// Its statements.
    pub statements: Vec<Statement>,
    /// Sections met.
    pub sections: Vec<Section<'t>>,
    /// Pieces of code, in the order of the text.
    pub parts: Vec<Part<'t>>,
    /// Named labels in code.
    pub labels: HashMap<&'t str, Spot>,
    /// Numbered labels in code: number, statement, spot.
    numbered: Vec<(&'t str, usize, Spot)>,
    /// Symbols mentioned in any other way than as the target of a jump or call.
    pub mentioned: HashSet<&'t str>,
    /// Numbered labels mentioned so, and the statement that does.
    pub mentioned_numbers: Vec<(&'t str, usize)>,
    /// Labels where exceptions land.
    pub pads: HashSet<&'t str>,
    /// Line rows.
    pub rows: Vec<Row>,
    /// Source files named by line rows.
    pub files: Vec<String>,
    /// The unwinder's view.
    pub frames: Frames,
    /// Symbols seen from other files.
    pub global: HashSet<&'t str>,
    /// Symbols another file may replace.
    pub weak: HashSet<&'t str>,
    /// Symbols that are resolved by running them.
    pub resolvers: HashSet<&'t str>,
    /// What cannot be counted, besides whole functions.
    pub refusals: Vec<Refusal>,
    /// Its name.
    pub name: String,
}

/// The whole file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Line of the trouble.
    pub line: u32,
    /// What it is.
    pub reason: String,
    /// Whether it is code of the kind that can be counted at all.
    pub in_64_bits: bool,
}

impl<'t> Source<'t> {
    /// Reads a file of assembler text.
    pub fn parse(text: &'t str, options: &Options) -> Result<Self, Unreadable> {
        let statements = lex::statements(text);
        let symbols = Symbols::collect(text, &statements)?;
        let mut reader = Reader::new(text, &statements, &symbols, options);
        let mut index = 0;
        while index < statements.len() {
            index = reader.statement(index);
        }
        let Reader {
            sections,
            parts,
            labels,
            numbered,
            mentioned,
            mentioned_numbers,
            pads,
            rows,
            files,
            frames,
            refusals,
            ..
        } = reader;
        let mut this = Self {
            text,
            sections,
            parts,
            labels,
            numbered,
            mentioned,
            mentioned_numbers,
            pads,
            rows,
            files: files.paths,
            frames,
            global: symbols.global,
            weak: symbols.weak,
            resolvers: symbols.resolvers,
            refusals,
            name: options.name.clone(),
            statements,
        };
        this.recognise_questions();
        Ok(this)
    }

    /// A call of what comes next anyway is no call: it pushes an address, to be popped again.
    fn recognise_questions(&mut self) {
        let mut found = Vec::new();
        for (part, ops) in self.parts.iter().map(|part| &part.ops).enumerate() {
            for (op, (this, next)) in ops.iter().zip(ops.iter().skip(1)).enumerate() {
                if let Control::Call(Target::Symbol { name, .. }) = this.control
                    && self.find(name, this.statements.start) == Some(Spot { part, op: op + 1 })
                    && !next.aligned
                {
                    found.push((part, op));
                }
            }
        }
        for (part, op) in found {
            let op = &mut self.parts[part].ops[op];
            op.control = Control::Next;
            op.what = What::WhereAmI;
        }
    }

    /// Where the target of a jump at `statement` stands, if it is in this file's code.
    pub fn find(&self, name: &str, statement: usize) -> Option<Spot> {
        if !lex::is_numbered_reference(name) {
            return self.labels.get(name).copied();
        }
        let (number, direction) = name.split_at(name.len() - 1);
        let mut all = self.numbered.iter().filter(|label| label.0 == number);
        match direction {
            "f" => all.find(|label| label.1 > statement).map(|label| label.2),
            _ => all.rfind(|label| label.1 <= statement).map(|label| label.2),
        }
    }

    /// File and line of an operation, as far as the text tells.
    pub fn place(&self, op: Option<&Op>) -> (String, u32) {
        let rows = op.map_or(0, |op| op.rows.end as usize);
        match self.rows[..rows].last() {
            Some(row) => (self.files[row.file as usize].clone(), row.line),
            None => (self.name.clone(), 0),
        }
    }

    /// The text of a statement.
    pub fn text_of(&self, statement: usize) -> &'t str {
        &self.text[self.statements[statement].at.clone()]
    }
}

/// What directives anywhere in the file say about symbols.
#[derive(Debug, Default)]
struct Symbols<'t> {
    functions: HashSet<&'t str>,
    objects: HashSet<&'t str>,
    global: HashSet<&'t str>,
    weak: HashSet<&'t str>,
    called: HashSet<&'t str>,
    resolvers: HashSet<&'t str>,
    /// What local names stand for: gcc's thunks jump to `.LTHUNK0`, set to the function.
    aliases: HashMap<&'t str, &'t str>,
    macros: HashSet<String>,
    by_compiler: bool,
    has_rows: bool,
}

impl<'t> Symbols<'t> {
    fn collect(text: &'t str, statements: &[Statement]) -> Result<Self, Unreadable> {
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
    fn control(&self, instruction: &Instruction<'t>) -> Control<'t> {
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
    fn begins_function(&self, name: &str) -> bool {
        !name.starts_with(".L")
            && !name.as_bytes()[0].is_ascii_digit()
            && (self.functions.contains(name)
                || self.global.contains(name)
                || self.weak.contains(name)
                || self.called.contains(name)
                || self.resolvers.contains(name))
    }
}

/// Source files by the numbers that `.file` gives them.
#[derive(Debug, Default)]
struct Files {
    paths: Vec<String>,
    by_number: HashMap<u32, u32>,
    by_path: HashMap<String, u32>,
}

impl Files {
    fn intern(&mut self, path: String) -> u32 {
        let next = self.paths.len() as u32;
        let index = *self.by_path.entry(path.clone()).or_insert(next);
        if index == next {
            self.paths.push(path);
        }
        index
    }

    /// `.file 1 "name"` or `.file 1 "folder" "name"`.
    fn directive(&mut self, arguments: &str) {
        let (number, names) = split(arguments);
        let Ok(number) = number.parse::<u32>() else {
            return;
        };
        let mut strings = strings(names);
        let path = match (strings.next(), strings.next()) {
            (Some(folder), Some(name)) if !name.starts_with('/') => format!("{folder}/{name}"),
            (_, Some(name)) | (Some(name), None) => name,
            (None, None) => return,
        };
        let index = self.intern(path);
        self.by_number.insert(number, index);
    }
}

struct Reader<'t, 'a> {
    text: &'t str,
    statements: &'a [Statement],
    symbols: &'a Symbols<'t>,
    sections: Vec<Section<'t>>,
    section: usize,
    previous: usize,
    pushed: Vec<(usize, usize)>,
    /// For each section, the part that code in it belongs to.
    open: Vec<Option<usize>>,
    parts: Vec<Part<'t>>,
    labels: HashMap<&'t str, Spot>,
    numbered: Vec<(&'t str, usize, Spot)>,
    mentioned: HashSet<&'t str>,
    mentioned_numbers: Vec<(&'t str, usize)>,
    pads: HashSet<&'t str>,
    rows: Vec<Row>,
    pending_rows: u32,
    is_stmt: bool,
    files: Files,
    frames: Frames,
    landing: LandingPads<'t>,
    refusals: Vec<Refusal>,
    /// Statements that wait for the instruction they belong to.
    glued: Option<usize>,
    aligned: bool,
    in_app: bool,
    /// The file and line offset of a line marker, for hand-written text.
    marker: Option<(u32, i64)>,
    own_file: Option<u32>,
    name: &'a str,
}

impl<'t, 'a> Reader<'t, 'a> {
    fn new(
        text: &'t str,
        statements: &'a [Statement],
        symbols: &'a Symbols<'t>,
        options: &'a Options,
    ) -> Self {
        Self {
            text,
            statements,
            symbols,
            sections: vec![Section {
                name: ".text",
                code: true,
                group: None,
            }],
            section: 0,
            previous: 0,
            pushed: Vec::new(),
            open: vec![None],
            parts: Vec::new(),
            labels: HashMap::new(),
            numbered: Vec::new(),
            mentioned: HashSet::new(),
            mentioned_numbers: Vec::new(),
            pads: HashSet::new(),
            rows: Vec::new(),
            pending_rows: 0,
            is_stmt: true,
            files: Files::default(),
            frames: Frames::default(),
            landing: LandingPads::default(),
            refusals: Vec::new(),
            glued: None,
            aligned: false,
            in_app: false,
            marker: None,
            own_file: None,
            name: &options.name,
        }
    }

    fn body(&self, index: usize) -> &'t str {
        &self.text[self.statements[index].at.clone()]
    }

    fn in_code(&self) -> bool {
        self.sections[self.section].code
    }

    fn part(&mut self) -> Option<&mut Part<'t>> {
        let part = self.open[self.section]?;
        self.parts.get_mut(part)
    }

    /// Reads the statement at `index`; answers with the index of the next one to read.
    fn statement(&mut self, index: usize) -> usize {
        let body = self.body(index);
        match self.statements[index].kind {
            Kind::AppBegin if self.in_code() && self.open[self.section].is_some() => {
                return self.inline_assembly(index);
            }
            Kind::AppBegin => self.in_app = true,
            Kind::AppEnd => self.in_app = false,
            Kind::LineMarker => self.line_marker(index, body),
            Kind::Label => self.label(index, body),
            Kind::Assignment => self.mention(index, body),
            Kind::Directive if split(body).0 == ".macro" => return self.macro_definition(index),
            Kind::Directive => self.directive(index, body),
            Kind::Instruction if self.in_code() => return self.instruction(index, body),
            Kind::Instruction => self.mention(index, body),
        }
        index + 1
    }

    fn mention(&mut self, index: usize, text: &'t str) {
        for name in lex::symbols(text) {
            if lex::is_numbered_reference(name) {
                self.mentioned_numbers.push((name, index));
            } else {
                self.mentioned.insert(name);
            }
        }
    }

    /// Passes over the definition of a macro. Whatever it names may be reached through it.
    fn macro_definition(&mut self, begin: usize) -> usize {
        let mut depth = 0;
        for index in begin..self.statements.len() {
            let body = self.body(index);
            match split(body).0 {
                ".macro" => depth += 1,
                ".endm" => depth -= 1,
                _ => self.mention(index, body),
            }
            if depth == 0 {
                return index + 1;
            }
        }
        self.statements.len()
    }

    fn line_marker(&mut self, index: usize, body: &str) {
        let (number, name) = split(body.trim_start_matches('#').trim_start());
        let (Ok(number), Some(path)) = (number.parse::<i64>(), strings(name).next()) else {
            return;
        };
        let next_line = i64::from(self.statements[index].line) + 1;
        if !path.starts_with('<') {
            let file = self.files.intern(path);
            self.marker = Some((file, number - next_line));
        }
    }

    fn label(&mut self, index: usize, body: &'t str) {
        let name = unquote(body[..body.len() - 1].trim_end());
        if !self.in_code() {
            return;
        }
        self.flush_glued(index);
        let starts = self.symbols.begins_function(name) && !self.symbols.objects.contains(name);
        if starts || (self.open[self.section].is_none() && !name.starts_with(".L")) {
            self.begin_part(index, name);
        }
        let Some(part) = self.open[self.section] else {
            return;
        };
        let spot = Spot {
            part,
            op: self.parts[part].ops.len(),
        };
        if name.as_bytes()[0].is_ascii_digit() {
            self.numbered.push((name, index, spot));
        } else {
            self.labels.insert(name, spot);
        }
    }

    fn begin_part(&mut self, index: usize, name: &'t str) {
        // A second name for the same place needs no part of its own.
        if let Some(part) = self.part()
            && part.ops.is_empty()
            && part.refusal.is_none()
        {
            return;
        }
        self.parts.push(Part {
            name,
            label: index,
            section: self.section,
            ops: Vec::new(),
            refusal: None,
            by_hand: self.in_app || !self.symbols.by_compiler,
            first_row: None,
        });
        self.open[self.section] = Some(self.parts.len() - 1);
    }

    fn refuse(&mut self, index: usize, reason: String) {
        let (file, line) = self.place(index);
        if let Some(part) = self.part()
            && part.refusal.is_none()
        {
            part.refusal = Some(Refusal {
                subject: part.name.to_owned(),
                file,
                line,
                reason,
            });
        }
    }

    /// File and line of the source that a statement was made from. (Its own line is of no use to
    /// anybody where a compiler wrote it: the file is gone.)
    fn place(&self, index: usize) -> (String, u32) {
        let here = self.statements[index].line;
        let row = self.rows.last().filter(|_| self.symbols.has_rows);
        match (row, self.marker) {
            (Some(row), _) => (self.files.paths[row.file as usize].clone(), row.line),
            (None, Some((file, offset))) => {
                (self.files.paths[file as usize].clone(), moved(here, offset))
            }
            (None, None) if self.symbols.by_compiler => (self.name.to_owned(), 0),
            (None, None) => (self.name.to_owned(), here),
        }
    }

    fn directive(&mut self, index: usize, body: &'t str) {
        let (name, arguments) = split(body);
        match name {
            ".section" | ".text" | ".data" | ".bss" | ".pushsection" | ".popsection"
            | ".previous" | ".subsection" => self.switch_section(index, name, arguments),
            ".file" => self.files.directive(arguments),
            ".loc" => self.row(arguments),
            ".size" => {
                // The function ends; what follows belongs to nobody until the next label.
                self.flush_glued(index);
                let symbol = arguments.split(',').next().unwrap_or_default().trim();
                if self.part().is_some_and(|part| part.name == unquote(symbol)) {
                    self.open[self.section] = None;
                }
            }
            _ if is_alignment(name) => self.aligned = true,
            _ if name.starts_with(".cfi_") => {
                self.frames.directive(name, arguments);
            }
            _ if is_data(name) => self.data(index, name, arguments),
            ".set" | ".equ" | ".equiv" | ".eqv" => self.mention(index, arguments),
            ".if" | ".ifdef" | ".ifndef" | ".ifc" | ".ifeq" | ".ifne" | ".ifb" | ".ifnb"
            | ".else" | ".elseif" | ".endif" | ".rept" | ".irp" | ".irpc" | ".endr"
            | ".include" => {
                self.refuse(index, format!("the assembler decides what it is: `{name}`"));
            }
            _ => {}
        }
    }

    fn data(&mut self, index: usize, name: &str, arguments: &'t str) {
        let section = &self.sections[self.section];
        if section.code {
            self.mention(index, arguments);
            if self.open[self.section].is_some() {
                self.glued.get_or_insert(index);
            }
        } else if section.name.starts_with(".gcc_except_table") {
            if matches!(name, ".uleb128" | ".byte" | ".long" | ".4byte")
                && let Some(pad) = self.landing.read(arguments)
            {
                self.pads.insert(pad);
            }
        } else if !is_description(section.name) {
            self.mention(index, arguments);
        }
    }

    fn switch_section(&mut self, index: usize, name: &str, arguments: &'t str) {
        self.flush_glued(index);
        let before = self.section;
        match name {
            ".popsection" => {
                if let Some((section, previous)) = self.pushed.pop() {
                    self.section = section;
                    self.previous = previous;
                }
                return;
            }
            ".previous" => self.section = self.previous,
            ".subsection" => {
                self.refuse(index, "it uses subsections".to_owned());
                return;
            }
            ".section" => self.section = self.intern_section(arguments),
            ".pushsection" => {
                self.pushed.push((self.section, self.previous));
                self.section = self.intern_section(arguments);
            }
            _ => {
                let subsection = !arguments.is_empty() && arguments != "0";
                self.section = self.intern_section(match name {
                    ".text" => ".text",
                    ".data" => ".data",
                    _ => ".bss",
                });
                if subsection {
                    self.refuse(index, "it uses subsections".to_owned());
                }
            }
        }
        self.previous = before;
        self.landing = LandingPads::default();
    }

    fn intern_section(&mut self, arguments: &'t str) -> usize {
        let mut fields = arguments.split(',').map(str::trim);
        let name = unquote(fields.next().unwrap_or_default());
        let flags = fields.next().map(unquote);
        let kind = fields.next();
        let mut rest = fields.filter(|field| *field != "comdat");
        let group = flags.filter(|flags| flags.contains('G')).and_then(|flags| {
            // A mergeable section has its entry size before the group's name.
            if flags.contains('M') {
                rest.next();
            }
            rest.next().map(unquote)
        });
        let known = self
            .sections
            .iter()
            .position(|known| known.name == name && (flags.is_none() || known.group == group));
        if let Some(known) = known {
            return known;
        }
        let code = match flags {
            Some(flags) => flags.contains('x'),
            None => {
                name == ".text" || name.starts_with(".text.") || matches!(name, ".init" | ".fini")
            }
        };
        let _ = kind;
        self.sections.push(Section { name, code, group });
        self.open.push(None);
        self.sections.len() - 1
    }

    /// `.loc file line [column] [options]`
    fn row(&mut self, arguments: &str) {
        let mut words = arguments.split_ascii_whitespace();
        let (Some(file), Some(line)) = (words.next(), words.next()) else {
            return;
        };
        while let Some(word) = words.next() {
            if word == "is_stmt" {
                self.is_stmt = words.next() != Some("0");
            }
        }
        let (Ok(file), Ok(line)) = (file.parse::<u32>(), line.parse::<u32>()) else {
            return;
        };
        let Some(file) = self.files.by_number.get(&file).copied() else {
            return;
        };
        let row = Row {
            file,
            line,
            is_stmt: self.is_stmt,
        };
        self.rows.push(row);
        self.pending_rows += 1;
    }

    /// A hand-written line is its own row.
    fn physical_row(&mut self, index: usize) {
        let line = self.statements[index].line;
        let (file, line) = match self.marker {
            Some((file, offset)) => (file, moved(line, offset)),
            None => {
                let file = match self.own_file {
                    Some(file) => file,
                    None => self.files.intern(self.name.to_owned()),
                };
                self.own_file = Some(file);
                (file, line)
            }
        };
        let same = self.pending_rows == 0
            && self
                .rows
                .last()
                .is_some_and(|row| row.file == file && row.line == line);
        if !same {
            self.rows.push(Row {
                file,
                line,
                is_stmt: true,
            });
            self.pending_rows += 1;
        }
    }

    fn instruction(&mut self, index: usize, body: &'t str) -> usize {
        if self.open[self.section].is_none() {
            self.orphan(index);
            return index + 1;
        }
        let instruction = Instruction::parse(body);
        if self.symbols.macros.contains(instruction.name.as_ref()) {
            self.refuse(index, format!("it uses a macro, `{}`", split(body).0));
            return index + 1;
        }
        if instruction.name.is_empty() {
            // A prefix on a line of its own waits for its instruction.
            self.glued.get_or_insert(index);
            return index + 1;
        }
        let control = self.symbols.control(&instruction);
        if !matches!(
            control,
            Control::Jump(_) | Control::Branch(_) | Control::ShortBranch(_) | Control::Call(_)
        ) {
            self.mention(index, instruction.operands);
        }
        if let Some(end) = self.tls_sequence(index, instruction.operands) {
            let effect = Effect {
                uses: Set::REGISTERS,
                kills: Set::FLAGS,
            };
            let target = Target::Symbol {
                name: "__tls_get_addr",
                through_plt: true,
            };
            self.push(index, end, Control::Call(target), effect, What::Plain);
            return end + 1;
        }
        self.check_target(index, &control);
        let what = match instruction.name.as_ref() {
            "endbr64" | "endbr32" => What::Endbr,
            _ => What::Plain,
        };
        self.push(index, index, control, instruction.effect(), what);
        index + 1
    }

    fn check_target(&mut self, index: usize, control: &Control<'t>) {
        // It comes back one byte behind the `ret` that follows the call: nothing may stand there.
        if let Control::Call(Target::Symbol { name, .. }) = control
            && name.starts_with("__morestack")
        {
            self.refuse(index, "its stack is split (-fsplit-stack)".to_owned());
        }
        if let Control::Jump(target)
        | Control::Branch(target)
        | Control::ShortBranch(target)
        | Control::Call(target) = control
            && let Target::Odd(text) = target
        {
            let reason = match *text {
                "xbegin" => "it uses transactions, which undo counts".to_owned(),
                _ => format!("it jumps to `{text}`, an address that moves when code is added"),
            };
            self.refuse(index, reason);
        }
    }

    /// `leaq x@tlsgd(%rip), %rdi` and what follows up to its call of `__tls_get_addr`: the
    /// linker rewrites them as one, so nothing may stand between. Answers with the call.
    fn tls_sequence(&self, index: usize, operands: &str) -> Option<usize> {
        if !(operands.contains("@tlsgd") || operands.contains("@tlsld")) {
            return None;
        }
        (index + 1..self.statements.len().min(index + 6)).find(|next| {
            let body = self.body(*next);
            self.statements[*next].kind == Kind::Instruction && body.contains("__tls_get_addr")
        })
    }

    /// Raw bytes that no instruction follows: code written as numbers if control can fall into
    /// them, a table if not.
    fn flush_glued(&mut self, index: usize) {
        let Some(first) = self.glued.take() else {
            return;
        };
        let falls = self.part().is_some_and(|part| {
            part.ops.last().is_none_or(|op| {
                !matches!(
                    op.control,
                    Control::Jump(_) | Control::IndirectJump | Control::Return | Control::Trap
                )
            })
        });
        if falls {
            let effect = Effect {
                uses: Set::ALL,
                kills: Set::default(),
            };
            self.push(first, index - 1, Control::Next, effect, What::Plain);
        }
    }

    fn orphan(&mut self, index: usize) {
        self.mention(index, self.body(index));
        let (file, line) = self.place(index);
        let section = self.sections[self.section].name;
        let subject = format!("code without a label in {section}");
        if self
            .refusals
            .iter()
            .all(|refusal| refusal.subject != subject)
        {
            self.refusals.push(Refusal {
                subject,
                file,
                line,
                reason: "no function can be named".to_owned(),
            });
        }
    }

    fn push(
        &mut self,
        first: usize,
        last: usize,
        control: Control<'t>,
        effect: Effect,
        what: What<'t>,
    ) {
        if !self.symbols.has_rows && !self.symbols.by_compiler {
            self.physical_row(first);
        }
        let first = self.glued.take().unwrap_or(first);
        let rows_end = self.rows.len() as u32;
        let rows = rows_end - std::mem::take(&mut self.pending_rows)..rows_end;
        let first_row = self.rows[rows.start as usize..].first().copied();
        let frame = self.frames.here();
        let aligned = std::mem::take(&mut self.aligned);
        if let Some(part) = self.part() {
            part.first_row = part.first_row.or(first_row);
            part.ops.push(Op {
                statements: first..last + 1,
                control,
                effect,
                frame,
                rows,
                what,
                aligned,
                padding: Vec::new(),
            });
        }
    }

    /// `#APP` to `#NO_APP` inside a function: an opaque operation for each asm statement. (gcc
    /// writes neighbours between the same two marks, and separates them by line markers.)
    fn inline_assembly(&mut self, begin: usize) -> usize {
        let home = self.section;
        let mut piece = Piece::from(begin);
        let mut index = begin + 1;
        while index < self.statements.len() && self.statements[index].kind != Kind::AppEnd {
            let body = self.body(index);
            let (name, arguments) = split(body);
            let kind = self.statements[index].kind;
            let parts = kind == Kind::LineMarker || (kind == Kind::Directive && name == ".loc");
            if parts && self.section == home && piece.instructions > 0 {
                self.inline_operation(std::mem::take(&mut piece));
            }
            if !parts {
                piece.extend(index);
            }
            match kind {
                Kind::Label if self.section == home => {
                    piece
                        .labels
                        .insert(unquote(body[..body.len() - 1].trim_end()));
                }
                Kind::Instruction if self.section == home => {
                    self.inline_instruction(&mut piece, index, body);
                }
                Kind::Directive if name == ".loc" => self.row(arguments),
                Kind::Directive => {
                    // Code that the assembler has no name for is written as bytes.
                    if is_data(name) && self.section == home {
                        piece.instructions += 1;
                    }
                    if name == ".macro" {
                        self.refuse(index, "its inline assembly defines a macro".to_owned());
                    }
                    if is_alignment(name) && self.section == home {
                        piece.padding.push(index);
                    } else if name.contains("section")
                        || matches!(name, ".text" | ".data" | ".bss" | ".previous")
                    {
                        self.switch_section(index, name, arguments);
                    } else if name != ".file" {
                        self.mention(index, arguments);
                    }
                }
                Kind::Instruction | Kind::Assignment => self.mention(index, body),
                _ => {}
            }
            index += 1;
        }
        if self.section != home {
            self.refuse(begin, "its inline assembly leaves the section".to_owned());
            self.section = home;
        }
        if piece.instructions > 0 {
            piece.extend(index.min(self.statements.len() - 1));
            self.inline_operation(piece);
        } else {
            self.aligned |= !piece.padding.is_empty();
        }
        index + 1
    }

    fn inline_instruction(&mut self, piece: &mut Piece<'t>, index: usize, body: &'t str) {
        let instruction = Instruction::parse(body);
        piece.instructions += 1;
        piece.past_a_jump |= !piece.jumps.is_empty();
        piece.past_a_loss |= piece.lost;
        if self.symbols.macros.contains(instruction.name.as_ref()) {
            self.refuse(index, "its inline assembly uses a macro".to_owned());
        }
        match instruction.control() {
            Control::Next => self.mention(index, instruction.operands),
            Control::Jump(target) | Control::Branch(target) | Control::ShortBranch(target) => {
                piece.jumps.push((index, target));
            }
            _ => {
                self.mention(index, instruction.operands);
                piece.lost = true;
            }
        }
    }

    fn inline_operation(&mut self, piece: Piece<'t>) {
        // What stands behind a call that may not come back runs less often than what stands before.
        let mut tangled = piece.past_a_loss;
        let mut targets = Vec::new();
        for (at, target) in piece.jumps {
            match target {
                Target::Symbol { name, .. } if lex::is_numbered_reference(name) => tangled = true,
                Target::Symbol { name, .. } if piece.labels.contains(name) => tangled = true,
                // The same goes for a jump.
                Target::Symbol { name, .. } => {
                    tangled |= piece.past_a_jump;
                    targets.push(name);
                }
                Target::Odd(_) => {
                    self.refuse(at, "its inline assembly jumps to an odd place".to_owned());
                }
            }
        }
        let effect = Effect {
            uses: Set::REGISTERS,
            // Compilers take every asm statement to clobber the flags on x86.
            kills: Set::FLAGS,
        };
        let what = What::Asm {
            targets,
            lost: piece.lost,
            tangled,
        };
        let (first, last) = piece.statements.unwrap_or_default();
        self.push(first, last, Control::Next, effect, what);
        if let Some(op) = self.part().and_then(|part| part.ops.last_mut()) {
            op.padding = piece.padding;
        }
    }
}

/// One asm statement.
#[derive(Default)]
struct Piece<'t> {
    /// Its first and last statement.
    statements: Option<(usize, usize)>,
    instructions: usize,
    labels: HashSet<&'t str>,
    jumps: Vec<(usize, Target<'t>)>,
    past_a_jump: bool,
    lost: bool,
    past_a_loss: bool,
    padding: Vec<usize>,
}

impl Piece<'_> {
    fn from(first: usize) -> Self {
        Self {
            statements: Some((first, first)),
            ..Self::default()
        }
    }

    fn extend(&mut self, index: usize) {
        let first = self.statements.map_or(index, |(first, _)| first);
        self.statements = Some((first, index));
    }
}

fn is_alignment(directive: &str) -> bool {
    matches!(directive, ".p2align" | ".align" | ".balign" | ".nops")
}

/// Sections that describe code without control ever coming from them.
fn is_description(name: &str) -> bool {
    name.starts_with(".debug")
        || name.starts_with(".eh_frame")
        || name.starts_with(".stack_sizes")
        || name.starts_with(".llvm")
        || name.starts_with("__patchable_function_entries")
        || name.starts_with(".note")
        || name.starts_with(".gnu.lto_")
}

/// Directives that put bytes where they stand.
fn is_data(name: &str) -> bool {
    matches!(
        name,
        ".byte"
            | ".value"
            | ".word"
            | ".short"
            | ".hword"
            | ".2byte"
            | ".long"
            | ".int"
            | ".4byte"
            | ".quad"
            | ".8byte"
            | ".octa"
            | ".uleb128"
            | ".sleb128"
            | ".string"
            | ".asciz"
            | ".ascii"
            | ".zero"
            | ".skip"
            | ".space"
            | ".fill"
            | ".org"
            | ".incbin"
            | ".float"
            | ".double"
            | ".single"
            | ".base64"
    )
}

fn moved(line: u32, offset: i64) -> u32 {
    u32::try_from(i64::from(line).saturating_add(offset)).unwrap_or(0)
}

/// The first word, and the rest.
pub fn split(text: &str) -> (&str, &str) {
    match text.find([' ', '\t']) {
        Some(end) => (&text[..end], text[end..].trim_start()),
        None => (text, ""),
    }
}

fn unquote(text: &str) -> &str {
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text)
}

/// The quoted strings of a text, with their escapes undone.
fn strings(text: &str) -> impl Iterator<Item = String> {
    let mut bytes = text.bytes().peekable();
    std::iter::from_fn(move || {
        bytes.find(|byte| *byte == b'"')?;
        let mut found = Vec::new();
        while let Some(byte) = bytes.next() {
            match byte {
                b'"' => break,
                b'\\' => match bytes.next()? {
                    digit @ b'0'..=b'7' => {
                        let mut value = u32::from(digit - b'0');
                        for _ in 0..2 {
                            if let Some(digit @ b'0'..=b'7') = bytes.peek() {
                                value = value * 8 + u32::from(digit - b'0');
                                bytes.next();
                            }
                        }
                        found.push(value as u8);
                    }
                    b'n' => found.push(b'\n'),
                    b't' => found.push(b'\t'),
                    other => found.push(other),
                },
                _ => found.push(byte),
            }
        }
        Some(String::from_utf8_lossy(&found).into_owned())
    })
}
