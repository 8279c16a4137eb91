//! Flow graphs and plans in, counted assembler text out.
//!
//! The text keeps its lines: whatever is added stands on a line that was there, separated by
//! semicolons, so that the assembler's own messages and line numbers stay true. What does not
//! belong to the flow of any line (counters, the map, the runtime) follows at the end.

use std::collections::HashMap;
use std::fmt::Write;

use headcount_model::{Node, Place, Plan, Refusal};

use crate::edits::Edits;
use crate::flow_graph::{EdgeSite, Unit};
use crate::instruction::{Control, Instruction, SCRATCH, Target};
use crate::lex;
use crate::liveness::Style;
use crate::record::{self, SpanAt, UnitRecord};
use crate::source::{Op, Row, Source, Spot, What};
use crate::unwind::FrameId;
use headcount_model::library as returns;

/// A unit with its plan.
#[derive(Debug)]
pub struct Counted {
    /// The unit.
    pub unit: Unit,
    /// Where its counters stand.
    pub plan: Plan,
}

/// Who looks after the counters?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper<'r> {
    /// The runtime, whose assembler text this is; every object carries it. It needs Linux.
    Runtime(&'r str),
    /// Nobody: they are ordinary memory. A probe needs no operating system, no register and no
    /// thread-local variable, and any number of processors may run it at once.
    Nobody,
}

/// The counted text. `base` is the folder that relative source paths start from.
pub fn insert(
    source: &Source,
    counted: &[Counted],
    refusals: &[Refusal],
    keeper: Keeper,
    base: &str,
) -> String {
    let runtime = match keeper {
        Keeper::Runtime(text) => Some(text),
        Keeper::Nobody => None,
    };
    if counted.is_empty() {
        return only_refusals(source.text, &source.name, refusals, runtime);
    }
    let mut edits = Edits::default();
    let mut tail = String::new();
    for (number, item) in counted.iter().enumerate() {
        let mut inserter = Inserter::new(source, item, number, runtime.is_some(), &mut edits);
        inserter.run();
        let record = UnitRecord {
            source,
            unit: &item.unit,
            plan: &item.plan,
            number,
            spans: inserter.spans,
            is_kept: inserter.is_kept,
        };
        record.write(base, &mut tail);
    }
    let mut text = edits.apply(source.text);
    text.push_str(&tail);
    let units = counted.iter().map(|item| &item.unit);
    record::object(&mut text, source, units, refusals, base);
    record::identity(&mut text);
    text.push_str(runtime.unwrap_or_default());
    text
}

/// Text that is left as it is, with a record of why. With the runtime, so that a program of which
/// nothing is counted says why, too.
pub fn only_refusals(
    text: &str,
    name: &str,
    refusals: &[Refusal],
    runtime: Option<&str>,
) -> String {
    let mut text = text.to_owned();
    if refusals.is_empty() {
        return text;
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    record::refused_object(&mut text, name, refusals);
    if let Some(runtime) = runtime {
        // There is no module without counters.
        let _ = writeln!(
            text,
            "\t.section\theadcount_counters,\"aw\",@nobits\n\t.zero\t8"
        );
        record::identity(&mut text);
        text.push_str(runtime);
    }
    text
}

/// Whether there is a libc, which makes room for thread-local variables, is known when the program
/// is linked: one instruction, that leaves the answer in the zero flag.
const HAS_LIBC: &str = "cmpq $0, __libc_start_main@GOTPCREL(%rip); ";

struct Inserter<'s, 't> {
    source: &'s Source<'t>,
    unit: &'s Unit,
    number: usize,
    /// Does the runtime look after the counters?
    is_kept: bool,
    edits: &'s mut Edits,
    labels: u32,
    spans: Vec<SpanAt>,
    /// Our own labels at spots that have none another place could name.
    spot_labels: HashMap<Spot, String>,
    /// Counter of each block and each edge, if it has one.
    block_counter: Vec<Option<usize>>,
    edge_counter: Vec<Option<usize>>,
    /// Edges that leave each block.
    out_edges: Vec<Vec<usize>>,
    /// Code to stand behind the part, each with the frame it runs in.
    stubs: Vec<(FrameId, String)>,
    /// The row that goes on, unless an operation begins one of its own.
    row: Option<Row>,
}

impl<'s, 't> Inserter<'s, 't> {
    fn new(
        source: &'s Source<'t>,
        counted: &'s Counted,
        number: usize,
        is_kept: bool,
        edits: &'s mut Edits,
    ) -> Self {
        let unit = &counted.unit;
        let mut block_counter = vec![None; unit.blocks.len()];
        let mut edge_counter = vec![None; unit.graph.edges.len()];
        for (counter, place) in counted.plan.counters.iter().enumerate() {
            match place {
                Place::Block(block) => block_counter[block.index()] = Some(counter),
                Place::Edge(edge) => edge_counter[edge.index()] = Some(counter),
            }
        }
        let mut out_edges = vec![Vec::new(); unit.blocks.len()];
        for (index, edge) in unit.graph.edges.iter().enumerate() {
            if let Node::Block(from) = edge.from {
                out_edges[from.index()].push(index);
            }
        }
        Self {
            source,
            unit,
            number,
            is_kept,
            edits,
            labels: 0,
            spans: Vec::new(),
            spot_labels: HashMap::new(),
            block_counter,
            edge_counter,
            out_edges,
            stubs: Vec::new(),
            row: None,
        }
    }

    fn run(&mut self) {
        self.name_spots();
        let mut block = 0;
        for part in &self.unit.parts {
            let mut previous: Option<usize> = None;
            self.row = None;
            while block < self.unit.blocks.len() && self.unit.blocks[block].part == *part {
                previous = Some(self.block(block, previous));
                block += 1;
            }
            self.end_part(*part, previous);
        }
    }

    fn fresh(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn label(&self, number: u32) -> String {
        format!(".Lhc_{}_{number}", self.number)
    }

    /// A detour stands elsewhere, where `1b` would mean something else.
    fn name_spots(&mut self) {
        for edge in 0..self.unit.graph.edges.len() {
            let detour = matches!(self.unit.edge_sites[edge], EdgeSite::Detour(_));
            if !detour || self.edge_counter[edge].is_none() {
                continue;
            }
            let op = self.last_op_of_source(edge);
            if let Some(name) = target_name(op)
                && lex::is_numbered_reference(name)
                && let Some(spot) = self.source.find(name, op.statements.start)
            {
                let label = self.fresh();
                let label = self.label(label);
                self.spot_labels.entry(spot).or_insert(label);
            }
        }
    }

    fn last_op_of_source(&self, edge: usize) -> &'s Op<'t> {
        let from = match self.unit.graph.edges[edge].from {
            Node::Block(from) => from.index(),
            Node::Outside => 0,
        };
        let at = &self.unit.blocks[from];
        &self.source.parts[at.part].ops[at.ops.end - 1]
    }

    fn start_of(&self, op: &Op) -> usize {
        self.source.statements[op.statements.start].at.start
    }

    /// Puts labels and probes into one block. `open` is the span that the operation before it
    /// belongs to, if it is still open; the answer is the same for this block's last operation.
    fn block(&mut self, block: usize, open: Option<usize>) -> usize {
        let at = self.unit.blocks[block].clone();
        let source = self.source;
        let part = &source.parts[at.part];
        let mut open = open;
        for index in at.ops.clone() {
            let op = &part.ops[index];
            let mut before = self.before(block, at.part, index);
            let tangled = matches!(op.what, What::Asm { tangled: true, .. });
            let was_tangled =
                index > 0 && matches!(part.ops[index - 1].what, What::Asm { tangled: true, .. });
            let breaks = index == at.ops.start || !op.rows.is_empty() || tangled || was_tangled;
            if breaks || op.aligned || !before.is_empty() {
                let start = self.fresh();
                if let Some(open) = open {
                    // Where nothing stands between two spans, one label serves both.
                    let shared = before.is_empty() && !op.aligned && self.spans[open].end == 0;
                    self.close(open, &part.ops[index - 1], shared.then_some(start));
                }
                let _ = write!(before, "{}: ", self.label(start));
                let rows = self.rows_at(op);
                self.row = rows.last().map(|row| Row {
                    is_stmt: false,
                    ..*row
                });
                self.spans.push(SpanAt {
                    block,
                    start,
                    end: 0,
                    rows,
                });
                open = Some(self.spans.len() - 1);
            }
            if !before.is_empty() {
                let position = self.start_of(op);
                self.edits.insert(position, &before);
            }
            if let (true, Some(span)) = (tangled, open) {
                self.spans[span].end = self.spans[span].start;
            }
            if !tangled {
                open = self.leave_out_padding(op, open);
            }
            self.behind(block, index, open);
        }
        // A block has an operation, so a span is open.
        open.unwrap_or(0)
    }

    /// Alignment inside an operation splits its span.
    fn leave_out_padding(&mut self, op: &Op, open: Option<usize>) -> Option<usize> {
        let mut open = open;
        for statement in &op.padding {
            let Some(span) = open else { break };
            let at = self.source.statements[*statement].at.clone();
            let (end, start) = (self.fresh(), self.fresh());
            let (before, behind) = (self.label(end), self.label(start));
            self.edits.insert(at.start, &format!("{before}: "));
            self.edits.insert(at.end, &format!("; {behind}:"));
            self.spans[span].end = end;
            let SpanAt {
                block, ref rows, ..
            } = self.spans[span];
            let rows = rows.last().map(|row| Row {
                is_stmt: false,
                ..*row
            });
            self.spans.push(SpanAt {
                block,
                start,
                end: 0,
                rows: rows.into_iter().collect(),
            });
            open = Some(self.spans.len() - 1);
        }
        open
    }

    /// Gives a span its end: `shared` if the next span begins right there.
    fn close(&mut self, span: usize, last: &Op, shared: Option<u32>) {
        if self.spans[span].end != 0 {
            return;
        }
        self.spans[span].end = match shared {
            Some(label) => label,
            None => {
                let label = self.fresh();
                let text = format!("; {}:", self.label(label));
                self.put_behind(last, &text);
                label
            }
        };
    }

    /// The rows that begin at an operation, or the one it continues.
    fn rows_at(&self, op: &Op) -> Vec<Row> {
        if op.rows.is_empty() {
            return self.row.into_iter().collect();
        }
        self.source.rows[op.rows.start as usize..op.rows.end as usize].to_vec()
    }

    /// What stands before an operation, ready to be followed by it.
    fn before(&mut self, block: usize, part: usize, index: usize) -> String {
        let at = &self.unit.blocks[block];
        let op = &self.source.parts[part].ops[index];
        let mut text = String::new();
        if index == 0 {
            let _ = write!(text, ".Lhc_{}_p{part}: ", self.number);
            text.push_str(&record::tie(self.source, self.unit, self.number, part));
        }
        if let Some(label) = self.spot_labels.get(&Spot { part, op: index }) {
            let _ = write!(text, "{label}: ");
        }
        if index == self.check_position(part) && self.needs_check(part) {
            let check = self.check(part, op);
            text.push_str(&check);
        }
        if let Some(counter) = self.block_counter[block]
            && self.unit.block_sites[block].before == index
        {
            text.push_str(&self.probe(counter, self.unit.block_sites[block].style, op.frame));
        }
        if let Control::Call(Target::Symbol { name, .. }) = op.control
            && self.is_kept
            && returns::starts_elsewhere(name)
        {
            text.push_str(&self.forget_thread(op.frame));
        }
        if index + 1 == at.ops.end {
            for edge in &self.out_edges[block] {
                if let (Some(counter), EdgeSite::Before(style)) =
                    (self.edge_counter[*edge], self.unit.edge_sites[*edge])
                {
                    text.push_str(&self.probe(counter, style, op.frame));
                }
            }
        }
        text
    }

    /// What stands behind an operation; and the change of its own text, if it is a branch that
    /// takes a detour.
    fn behind(&mut self, block: usize, index: usize, open: Option<usize>) {
        let at = self.unit.blocks[block].clone();
        let op = &self.source.parts[at.part].ops[index];
        let mut text = String::new();
        if let Control::Call(Target::Symbol { name, .. }) = op.control
            && self.is_kept
            && returns::may_fork(name)
        {
            text.push_str("; call headcount.after_fork");
        }
        if index + 1 == at.ops.end {
            self.detour(block, op, &mut text);
            for edge in &self.out_edges[block] {
                if let (Some(counter), EdgeSite::Behind(style)) =
                    (self.edge_counter[*edge], self.unit.edge_sites[*edge])
                {
                    let probe = self.probe(counter, style, op.frame);
                    let _ = write!(text, "; {}", probe.trim_end_matches("; "));
                }
            }
        }
        if !text.is_empty() {
            if let Some(open) = open {
                self.close(open, op, None);
            }
            self.put_behind(op, &text);
        }
    }

    /// Puts text behind an operation. Inline assembly ends with a comment, `#NO_APP`, so there a
    /// new line must be begun.
    fn put_behind(&mut self, op: &Op, text: &str) {
        let last = &self.source.statements[op.statements.end - 1];
        let behind = self.edits.inserted.entry(last.at.end).or_default();
        if behind.is_empty() && last.kind == lex::Kind::AppEnd {
            behind.push('\n');
        }
        behind.push_str(text);
    }

    /// Leads a branch over its probe.
    fn detour(&mut self, block: usize, op: &'s Op<'t>, behind: &mut String) {
        let short = matches!(op.control, Control::ShortBranch(_));
        let probed = self.out_edges[block].iter().find_map(|edge| {
            match (self.edge_counter[*edge], self.unit.edge_sites[*edge]) {
                (Some(counter), EdgeSite::Detour(style)) => Some((counter, style)),
                _ => None,
            }
        });
        if probed.is_none() && !short {
            return;
        }
        let Some(name) = target_name(op) else { return };
        let statement = op.statements.end - 1;
        let body = self.source.text_of(statement);
        let operands = Instruction::parse(body).operands;
        let operand_at = self.source.statements[statement].at.end - operands.len();
        let detour = self.fresh();
        let detour = self.label(detour);
        let target = match self.source.find(name, op.statements.start) {
            Some(spot) => self
                .spot_labels
                .get(&spot)
                .map_or(name, String::as_str)
                .to_owned(),
            None => operands.to_owned(),
        };
        let probe = probed
            .map(|(counter, style)| self.probe(counter, style, op.frame))
            .unwrap_or_default();
        self.edits.replace(
            operand_at,
            self.source.statements[statement].at.end,
            &detour,
        );
        let code = format!("{detour}: {probe}jmp {target}");
        if short || op.frame == FrameId::Beyond || self.last_frame_is_beyond(block) {
            let over = self.fresh();
            let over = self.label(over);
            let _ = write!(behind, "; jmp {over}; {code}; {over}:");
        } else {
            self.stubs.push((op.frame, code));
        }
    }

    fn last_frame_is_beyond(&self, block: usize) -> bool {
        let part = &self.source.parts[self.unit.blocks[block].part];
        part.ops
            .last()
            .is_some_and(|op| op.frame == FrameId::Beyond)
    }

    /// Closes a part: its last span, and the code that stands behind it.
    fn end_part(&mut self, part: usize, open: Option<usize>) {
        let (Some(open), Some(last)) = (open, self.source.parts[part].ops.last()) else {
            return;
        };
        self.close(open, last, None);
        if self.stubs.is_empty() {
            return;
        }
        let mut text = String::new();
        let ends = matches!(
            last.control,
            Control::Jump(_) | Control::IndirectJump | Control::Return | Control::Trap
        );
        let over = (!ends).then(|| {
            let label = self.fresh();
            self.label(label)
        });
        if let Some(over) = &over {
            let _ = write!(text, "; jmp {over}");
        }
        let mut frame = last.frame;
        for (stub_frame, code) in std::mem::take(&mut self.stubs) {
            let change = self.source.frames.change_to(frame, stub_frame);
            let _ = write!(text, "; {change}{code}");
            frame = stub_frame;
        }
        if let Some(over) = &over {
            let _ = write!(text, "; {over}:");
        }
        self.put_behind(last, &text);
    }

    fn counter(&self, counter: usize) -> String {
        let lane = if self.is_kept { "%gs:" } else { "" };
        format!("{lane}.Lhc_{}_c+{}(%rip)", self.number, counter * 8)
    }

    /// Code that adds one to a counter, ready to be followed by an instruction.
    fn probe(&self, counter: usize, style: Style, frame: FrameId) -> String {
        let counter = self.counter(counter);
        let add = |register: &str| {
            format!(
                "movq {counter}, %{register}; leaq 1(%{register}), %{register}; movq %{register}, {counter}; "
            )
        };
        match style {
            Style::Plain if self.is_kept => format!("incq {counter}; "),
            Style::Plain => format!("lock incq {counter}; "),
            // Other processors may count here, too: no way but the one that changes flags.
            _ if !self.is_kept => {
                let (down, up) = self.source.frames.adjust(frame, 136);
                format!(
                    "leaq -128(%rsp), %rsp; pushfq; {down}lock incq {counter}; popfq; \
                     leaq 128(%rsp), %rsp; {up}"
                )
            }
            Style::Scratch(number) => add(SCRATCH[number]),
            Style::Stack => {
                let (down, up) = self.source.frames.adjust(frame, 136);
                format!(
                    "leaq -128(%rsp), %rsp; pushq %rax; {down}{}popq %rax; leaq 128(%rsp), %rsp; {up}",
                    add("rax")
                )
            }
        }
    }

    /// Lets the next check find a thread it does not know: a child that begins in a function of its
    /// own never comes to the code behind the call that made it.
    fn forget_thread(&mut self, frame: FrameId) -> String {
        let (down, up) = self.source.frames.adjust(frame, 8);
        let over = self.fresh();
        let over = self.label(over);
        format!(
            "{HAS_LIBC}je {over}; pushq %r11; {down}movq headcount.ready@gottpoff(%rip), %r11; \
             movb $0, %fs:(%r11); popq %r11; {up}{over}: "
        )
    }

    /// Where the check for a new thread stands: first of all, but behind `endbr64`.
    fn check_position(&self, part: usize) -> usize {
        let ops = &self.source.parts[part].ops;
        usize::from(ops.len() > 1 && ops[0].what == What::Endbr)
    }

    /// Whether a thread's first counted instruction may be the first of this part: somebody
    /// elsewhere can call it, by name or by its address.
    fn needs_check(&self, part: usize) -> bool {
        let at = &self.source.parts[part];
        let name = at.name;
        let reachable = self.source.global.contains(name)
            || self.source.weak.contains(name)
            || self.source.mentioned.contains(name)
            || self.unit.strangers.contains(&part)
            || at.by_hand;
        // Resolvers run before there are threads, or thread-local variables.
        self.is_kept
            && reachable
            && !self.source.resolvers.contains(name)
            && !name.contains(".cold")
    }

    /// Calls the runtime if this thread is new to it. A program without libc has no thread-local
    /// variables, and its first thread is the only one that can be told.
    fn check(&mut self, part: usize, op: &Op) -> String {
        let is_ready = |register: &str| {
            format!(
                "movq headcount.ready@gottpoff(%rip), %{register}; cmpb $0, %fs:(%{register}); "
            )
        };
        let (alone, enter, back) = (self.fresh(), self.fresh(), self.fresh());
        let [alone, enter, back] = [alone, enter, back].map(|it| self.label(it));
        let calls = format!(
            "{alone}: cmpb $0, headcount.begun(%rip); jne {back}; \
             {enter}: call headcount.enter; jmp {back}"
        );
        if self.source.parts[part].by_hand {
            let (down, up) = self.source.frames.adjust(op.frame, 144);
            return format!(
                "leaq -128(%rsp), %rsp; pushfq; pushq %r11; {down}{HAS_LIBC}je {alone}; {}jne {back}; \
                 jmp {enter}; {calls}; {back}: popq %r11; popfq; leaq 128(%rsp), %rsp; {up}",
                is_ready("r11")
            );
        }
        self.stubs.push((op.frame, calls));
        match self.unit.entry_scratch.get(&part).copied().flatten() {
            Some(number) => {
                let is_ready = is_ready(SCRATCH[number]);
                format!("{HAS_LIBC}je {alone}; {is_ready}je {enter}; {back}: ")
            }
            None => {
                let (down, up) = self.source.frames.adjust(op.frame, 8);
                format!(
                    "{HAS_LIBC}je {alone}; pushq %r11; {down}{}popq %r11; {up}je {enter}; {back}: ",
                    is_ready("r11")
                )
            }
        }
    }
}

fn target_name<'t>(op: &Op<'t>) -> Option<&'t str> {
    match op.control {
        Control::Branch(Target::Symbol { name, .. })
        | Control::ShortBranch(Target::Symbol { name, .. })
        | Control::Jump(Target::Symbol { name, .. }) => Some(name),
        _ => None,
    }
}
