//! Statements in, functions as sequences of operations out.

use std::collections::{HashMap, HashSet};

use headcount_model::Refusal;

use crate::instruction::{Control, Effect, Instruction, Set, Target};
use crate::lex::{self, Kind, Statement, split, unquote};
use crate::lines::Lines;
use crate::source::{Op, Options, Part, Section, Source, Spot, Unreadable, What};
use crate::symbols::Symbols;
use crate::unwind::{Frames, LandingPads};

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
            lines,
            frames,
            refusals,
            ..
        } = reader;
        let (rows, files) = lines.finish();
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
            files,
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
}

/// Goes through the statements of a file, once.
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
    lines: Lines,
    frames: Frames,
    landing: LandingPads<'t>,
    refusals: Vec<Refusal>,
    /// Statements that wait for the instruction they belong to.
    glued: Option<usize>,
    aligned: bool,
    in_app: bool,
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
            lines: Lines::new(&options.name),
            frames: Frames::default(),
            landing: LandingPads::default(),
            refusals: Vec::new(),
            glued: None,
            aligned: false,
            in_app: false,
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
            Kind::LineMarker => self.lines.marker(self.statements[index].line, body),
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
        let row = self.lines.last().filter(|_| self.symbols.has_rows);
        let unmarked = if self.symbols.by_compiler { 0 } else { here };
        row.or_else(|| self.lines.marked(here))
            .unwrap_or_else(|| (self.name.to_owned(), unmarked))
    }

    fn directive(&mut self, index: usize, body: &'t str) {
        let (name, arguments) = split(body);
        match name {
            ".section" | ".text" | ".data" | ".bss" | ".pushsection" | ".popsection"
            | ".previous" | ".subsection" => self.switch_section(index, name, arguments),
            ".file" => self.lines.file(arguments),
            ".loc" => self.lines.loc(arguments),
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
        let _type = fields.next();
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
        self.sections.push(Section { name, code, group });
        self.open.push(None);
        self.sections.len() - 1
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
            self.lines.physical(self.statements[first].line);
        }
        let first = self.glued.take().unwrap_or(first);
        let rows = self.lines.take();
        let first_row = self.lines.rows.get(rows.start as usize).copied();
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
                Kind::Directive if name == ".loc" => self.lines.loc(arguments),
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
    const DATA: [&str; 27] = [
        ".byte", ".value", ".word", ".short", ".hword", ".2byte", ".long", ".int", ".4byte",
        ".quad", ".8byte", ".octa", ".uleb128", ".sleb128", ".string", ".asciz", ".ascii", ".zero",
        ".skip", ".space", ".fill", ".org", ".incbin", ".float", ".double", ".single", ".base64",
    ];
    DATA.contains(&name)
}
