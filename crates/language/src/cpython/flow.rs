//! How often each line of a code object began.
//!
//! Python's own tracer reports a line when control comes to it from another line, or backwards. How often
//! that was follows from how often each instruction ran: every time it did, control came from exactly one
//! other. Of most instructions only one other leads there. Where several do, the counts around them
//! say how often it was which, nearly always exactly; otherwise there are bounds.

use std::collections::BTreeMap;

use super::code_object::CodeObject;
use super::positions::positions;
use super::version::{Jump, Opcode, Version};
use crate::{Charge, Line, Measured, Position, SourceUnit, Token, TokenCost};

/// An instruction of a code object.
#[derive(Clone, Copy, Debug)]
struct Instruction {
    offset: usize,
    opcode: Opcode,
    argument: u32,
    /// Where the next one is.
    end: usize,
    place: Option<Position>,
}

impl Instruction {
    fn name(&self) -> &'static str {
        self.opcode.name
    }

    fn line(&self) -> Option<u32> {
        self.place.map(|it| it.line)
    }

    /// Where it may jump to.
    fn target(&self) -> Option<usize> {
        let distance = self.argument as usize * 2;
        match self.opcode.jump? {
            Jump::Forward => self.end.checked_add(distance),
            Jump::Backward => self.end.checked_sub(distance),
        }
    }
}

/// The numbers of the instructions that one may jump to.
fn targets(version: &Version, code: &[Instruction], from: &Instruction) -> Vec<usize> {
    let at = |offset: usize| code.binary_search_by_key(&offset, |it| it.offset).ok();
    let target = from.target().and_then(at);
    // The end of a loop jumps over what is there for generators.
    let behind = (from.name() == "FOR_ITER").then_some(version.facts.ends_of_loops);
    let over = target.zip(behind).map(|(target, more)| target + more);
    let mut all: Vec<usize> = target.into_iter().chain(over).collect();
    all.retain(|it| *it < code.len());
    all.dedup();
    all
}

/// A way from one instruction to another, and bounds of how often it was taken.
#[derive(Clone, Copy, Debug)]
struct Way {
    from: usize,
    /// `None`: out of the code object.
    to: Option<usize>,
    least: u64,
    most: u64,
}

/// What counts of the instructions of a code object say about its source: how often its lines and its
/// operations began.
pub(crate) fn source_unit(
    version: &Version,
    object: &CodeObject,
    measured: &Measured,
    charges: &mut Vec<Charge>,
) -> SourceUnit {
    let code = instructions(version, object);
    let counts = all_counts(&code, &measured.executed);
    let mut tokens = tokens(version, &code, &counts);
    if let Some(samples) = &measured.samples {
        add_samples(object, &code, samples, &mut tokens, charges);
    }
    SourceUnit {
        file: object.file.clone(),
        name: object.name.clone(),
        first_line: object.first_line,
        calls: counts.first().copied().unwrap_or(0),
        are_calls_exact: true,
        lines: lines(version, object, &code, &counts),
        tokens,
    }
}

fn instructions(version: &Version, object: &CodeObject) -> Vec<Instruction> {
    let units = object.code.len() / 2;
    let places = positions(&object.lines, object.first_line, units);
    let mut all = Vec::with_capacity(units / 2);
    let (mut unit, mut argument) = (0, 0_u32);
    while unit < units {
        let (opcode, low) = (object.code[2 * unit], object.code[2 * unit + 1]);
        let opcode = *version.opcode(opcode);
        argument = argument << 8 | u32::from(low);
        let end = unit + 1 + opcode.caches;
        all.push(Instruction {
            offset: 2 * unit,
            opcode,
            argument,
            end: 2 * end,
            place: places[unit],
        });
        if opcode.name != "EXTENDED_ARG" {
            argument = 0;
        }
        unit = end;
    }
    all
}

/// How often each instruction began.
fn all_counts(code: &[Instruction], counted: &BTreeMap<usize, u64>) -> Vec<u64> {
    let of = |it: &Instruction| counted.get(&it.offset).copied().unwrap_or(0);
    let mut counts: Vec<u64> = code.iter().map(of).collect();
    for number in 1..code.len() {
        // Most specialised ones make the call as well; the others lead to it, always.
        if code[number].name() == "CALL" && code[number - 1].name() == "PRECALL" {
            counts[number] = counts[number - 1];
        }
    }
    counts
}

/// How often each line began.
fn lines(
    version: &Version,
    object: &CodeObject,
    code: &[Instruction],
    counts: &[u64],
) -> Vec<Line> {
    let entry = code.iter().position(|it| it.name() == "RESUME");
    let entry = entry.unwrap_or(0);
    let ways = ways(version, object, code, counts);
    let mut lines: BTreeMap<u32, (i128, i128)> = BTreeMap::new();
    for (instruction, count) in code.iter().zip(counts).skip(entry + 1) {
        if let Some(line) = instruction.line() {
            let bounds = lines.entry(line).or_default();
            bounds.0 += i128::from(*count);
            bounds.1 += i128::from(*count);
        }
    }
    for way in &ways {
        let Some(to) = way.to.filter(|_| way.from > entry) else {
            continue;
        };
        let (one, other) = (&code[way.from], &code[to]);
        let comes_again = way.from >= to && one.name() != "JUMP_BACKWARD_NO_INTERRUPT";
        let goes_on = one.line() == other.line() && !comes_again;
        if let (true, Some(line)) = (goes_on && to > entry, other.line())
            && let Some(bounds) = lines.get_mut(&line)
        {
            bounds.0 -= i128::from(way.most);
            bounds.1 -= i128::from(way.least);
        }
    }
    let number = |it: i128| u64::try_from(it.max(0)).unwrap_or(u64::MAX);
    let line = |(line, (least, most))| Line {
        line,
        count: number(least),
        is_exact: least == most,
    };
    lines.into_iter().map(line).collect()
}

/// All ways that control may take, and how often it did.
fn ways(version: &Version, object: &CodeObject, code: &[Instruction], counts: &[u64]) -> Vec<Way> {
    let at = |offset: usize| code.binary_search_by_key(&offset, |it| it.offset).ok();
    let handlers = handlers(object);
    let mut ways = Vec::new();
    for (number, instruction) in code.iter().enumerate() {
        let next = instruction.opcode.falls_through.then_some(number + 1);
        let next = next.filter(|it| *it < code.len());
        let targets = targets(version, code, instruction);
        let handler = handler_of(&handlers, instruction.offset).and_then(at);
        // What raises, and what is not resumed, has no way but this.
        let outside = instruction.opcode.may_raise.then_some(handler);
        let mut add = |to: Option<usize>| {
            let most = to.map_or(u64::MAX, |it| counts[it]).min(counts[number]);
            ways.push(Way {
                from: number,
                to,
                least: 0,
                most,
            });
        };
        next.into_iter().for_each(|it| add(Some(it)));
        targets.into_iter().for_each(|it| add(Some(it)));
        outside.into_iter().for_each(&mut add);
    }
    let frames = frames_lost(code, counts);
    for way in ways.iter_mut().filter(|it| it.to.is_none()) {
        if !returns(&code[way.from]) {
            way.most = way.most.min(frames);
        }
    }
    narrow(&mut ways, counts);
    ways
}

/// How many times a function was begun and has not returned.
fn frames_lost(code: &[Instruction], counts: &[u64]) -> u64 {
    let begun = counts.first().copied().unwrap_or(0);
    let returned = code.iter().zip(counts).filter(|it| returns(it.0));
    let returned: u64 = returned.map(|it| *it.1).fold(0, u64::saturating_add);
    // What returned more often than it began was on its way when counting began: nothing is known.
    begun.checked_sub(returned).unwrap_or(u64::MAX)
}

fn returns(instruction: &Instruction) -> bool {
    ["RETURN_CONST", "RETURN_VALUE"].contains(&instruction.name())
}

/// Narrows the bounds: what comes to an instruction is how often it ran, and so is what goes from it.
fn narrow(ways: &mut [Way], counts: &[u64]) {
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); counts.len()];
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); counts.len()];
    for (number, way) in ways.iter().enumerate() {
        out[way.from].push(number);
        if let Some(to) = way.to {
            into[to].push(number);
        }
    }
    const ROUNDS: usize = 16;
    for _ in 0..ROUNDS {
        let mut has_changed = false;
        for (number, count) in counts.iter().enumerate() {
            // Nothing of ours leads to the first one, nor to where generators are resumed.
            if number > 0 {
                has_changed |= sum_to(ways, &into[number], *count);
            }
            has_changed |= sum_to(ways, &out[number], *count);
        }
        if !has_changed {
            return;
        }
    }
}

/// These ways were taken so often altogether.
fn sum_to(ways: &mut [Way], these: &[usize], count: u64) -> bool {
    let sum = |of: &dyn Fn(&Way) -> u64| -> u128 {
        these.iter().map(|it| u128::from(of(&ways[*it]))).sum()
    };
    let (least, most) = (sum(&|it| it.least), sum(&|it| it.most));
    let count = u128::from(count);
    if most < count || least > count {
        // What was counted does not fit: nothing follows from it.
        return false;
    }
    let mut has_changed = false;
    for number in these {
        let way = &mut ways[*number];
        let others = (least - u128::from(way.least), most - u128::from(way.most));
        let narrow = |it: u128| u64::try_from(it).unwrap_or(u64::MAX);
        let at_least = way.least.max(narrow(count.saturating_sub(others.1)));
        let at_most = way.most.min(narrow(count.saturating_sub(others.0)));
        if at_least <= at_most && (at_least, at_most) != (way.least, way.most) {
            (way.least, way.most) = (at_least, at_most);
            has_changed = true;
            // The sums are others now; the next round goes on.
            break;
        }
    }
    has_changed
}

/// Where control goes if something is raised: ranges of offsets, and the offset of what handles it.
fn handlers(object: &CodeObject) -> Vec<(std::ops::Range<usize>, usize)> {
    let mut bytes = object.exceptions.iter();
    let mut number = || {
        let mut number = 0_usize;
        loop {
            let byte = *bytes.next()?;
            number = number.checked_mul(64)? | usize::from(byte & 63);
            if byte & 64 == 0 {
                return Some(number);
            }
        }
    };
    let mut all = Vec::new();
    while let (Some(start), Some(length), Some(target), Some(_)) =
        (number(), number(), number(), number())
    {
        let end = start.saturating_add(length);
        let offset = |unit: usize| unit.saturating_mul(2);
        all.push((offset(start)..offset(end), offset(target)));
    }
    all
}

fn handler_of(handlers: &[(std::ops::Range<usize>, usize)], offset: usize) -> Option<usize> {
    let found = handlers.iter().find(|it| it.0.contains(&offset));
    found.map(|it| it.1)
}

/// The same place, instruction and argument: the compiler's copies of one thing are equal in that.
type Sign = (Option<Position>, u8, u32);

/// How often each operation began, by its place in the source.
fn tokens(version: &Version, code: &[Instruction], counts: &[u64]) -> Vec<Token> {
    // The compiler copies what `finally` and conditions of loops do. Copies are blocks that are equal.
    let mut blocks: BTreeMap<Vec<Sign>, Vec<u64>> = BTreeMap::new();
    for (from, end) in blocks_of(version, code) {
        let block = &code[from..end];
        let jumps = block.iter().map(|it| it.target().is_some());
        let signs = block.iter().zip(jumps).filter(|(_, jumps)| !jumps);
        let signs: Vec<Sign> = signs
            .map(|(it, _)| (it.place, it.opcode.plain, it.argument))
            .collect();
        let block = block.iter().zip(&counts[from..end]);
        let own = block.filter(|(it, _)| it.target().is_none());
        let own: Vec<u64> = own.map(|it| *it.1).collect();
        let sums = blocks.entry(signs).or_insert_with(|| vec![0; own.len()]);
        for (sum, more) in sums.iter_mut().zip(own) {
            *sum = sum.saturating_add(more);
        }
    }
    let mut tokens: BTreeMap<(Position, bool), (&Opcode, u64)> = BTreeMap::new();
    for (signs, sums) in &blocks {
        for ((place, opcode, _), count) in signs.iter().zip(sums) {
            let Some(place) = place.filter(|it| it.column != 0) else {
                continue;
            };
            let opcode = version.opcode(*opcode);
            let is_resumed = opcode.name == "RESUME";
            let token = tokens.entry((place, is_resumed)).or_insert((opcode, 0));
            // The last instruction at a place is what the others prepare.
            if opcode.says >= token.0.says {
                token.0 = opcode;
            }
            token.1 = token.1.max(*count);
        }
    }
    let token = |((at, _), (opcode, count)): ((Position, bool), (&Opcode, u64))| Token {
        at,
        kind: opcode.name.to_owned(),
        count,
        is_exact: true,
        cost: Some(TokenCost::default()),
    };
    tokens.into_iter().map(token).collect()
}

/// Books samples on the operations that were being done, and on what the interpreter did for them.
fn add_samples(
    object: &CodeObject,
    code: &[Instruction],
    samples: &BTreeMap<(usize, u32), u64>,
    tokens: &mut [Token],
    charges: &mut Vec<Charge>,
) {
    for cost in tokens.iter_mut().filter_map(|it| it.cost.as_mut()) {
        cost.samples = Some(0);
    }
    for ((offset, routine), samples) in samples {
        let behind = code.partition_point(|it| it.offset <= *offset);
        let instruction = behind.checked_sub(1).map(|it| &code[it]);
        let place = instruction.and_then(|it| it.place);
        let is_resumed = instruction.is_some_and(|it| it.name() == "RESUME");
        let mut at_place = tokens.iter_mut().filter(|it| Some(it.at) == place);
        let token = at_place.find(|it| (it.kind == "RESUME") == is_resumed);
        charges.push(Charge {
            file: object.file.clone(),
            line: place.map_or(object.first_line, |it| it.line),
            column: token.as_ref().map_or(0, |it| it.at.column),
            kind: token.as_ref().map_or(String::new(), |it| it.kind.clone()),
            routine: *routine,
            samples: *samples,
        });
        if let Some(sum) = token.and_then(|it| it.cost.as_mut()?.samples.as_mut()) {
            *sum = sum.saturating_add(*samples);
        }
    }
}

/// Runs of instructions that are entered at the first one only, and left behind the last one only, but
/// for exceptions.
fn blocks_of(version: &Version, code: &[Instruction]) -> Vec<(usize, usize)> {
    let mut begins: Vec<usize> = vec![0];
    for (number, instruction) in code.iter().enumerate() {
        begins.extend(targets(version, code, instruction));
        if instruction.target().is_some() || !instruction.opcode.falls_through {
            begins.push(number + 1);
        }
    }
    begins.push(code.len());
    begins.sort_unstable();
    begins.dedup();
    let ends = begins.iter().skip(1);
    begins
        .iter()
        .zip(ends)
        .map(|(one, other)| (*one, *other))
        .filter(|it| it.1 <= code.len())
        .collect()
}
