//! From counts of instructions to tokens and lines.

use std::collections::BTreeMap;

use headcount_icon::{self as icon, Count, Icode, Joined, Kind, Linked, Translation, join};

use super::costs::Costs;
use super::description::Description;
use super::lines;
use super::translated::{self, Source};
use crate::{Charge, Files, Line, Measured, Position, SourceUnit, Sources, Token};

/// The procedures of programs that ran.
pub(crate) fn sources<'d>(
    pieces: impl IntoIterator<Item = (&'d [u8], &'d Measured)>,
    files: &dyn Files,
) -> Option<Sources> {
    let mut all = Sources::default();
    for (description, measured) in pieces {
        match Description::unpack(description)? {
            Description::Own => {}
            Description::Refused { name, why } => {
                let sum: u64 = measured.executed.values().sum();
                all.notes.push(format!(
                    "The Icon program {name} is not counted ({sum} instructions of it ran): {why}."
                ));
            }
            Description::Program { path, file } => {
                let icode = Icode::read(&file).ok()?;
                program(&icode, &path, measured, files, &mut all);
            }
        }
    }
    Some(all)
}

/// Adds the procedures of a program, by what was counted of its instructions.
fn program(icode: &Icode, path: &str, measured: &Measured, files: &dyn Files, all: &mut Sources) {
    let of = |offset: u64| {
        let offset = usize::try_from(offset).ok();
        let count = offset.and_then(|it| measured.executed.get(&it));
        count.copied().unwrap_or(0)
    };
    let folder = path.rsplit_once('/').map_or("", |it| it.0);
    let (sources, refused) = translated::sources(icode, folder, files);
    for it in refused {
        all.notes.push(format!(
            "{it}. The counts of its lines are those of {path}'s own table: how often the first instruction ran that \
             it gives to each line. There are none of its tokens."
        ));
    }
    let translations: Vec<&Translation> = sources.iter().map(|it| &it.translation).collect();
    let joined = join(icode, &translations);
    let costs = Costs::new(icode, &joined, measured);
    for linked in &icode.procedures {
        let place = sources.iter().enumerate().find_map(|(number, source)| {
            let procedures = &source.translation.procedures;
            let is_it = |it: &&icon::Code| {
                it.name == linked.name && source.translation.names.name(it.begins_in) == linked.file
            };
            let procedure = procedures.iter().position(|it| is_it(&it))?;
            Some((number, source, procedure))
        });
        match place {
            Some((number, source, procedure)) => {
                let told = Told {
                    joined: &joined,
                    source,
                    number,
                    procedure,
                    costs: &costs,
                };
                told.add(linked, &of, all);
            }
            None => add(&mut all.units, lines::unit(icode, linked, &of)),
        }
    }
    all.charges.extend(costs.elsewhere);
}

/// Programs that are linked with the same source have its procedures in common.
fn add(all: &mut Vec<SourceUnit>, it: SourceUnit) {
    let is_same = |other: &&mut SourceUnit| {
        let lines = |it: &SourceUnit| it.lines.iter().map(|it| it.line).collect::<Vec<_>>();
        let tokens = |it: &SourceUnit| {
            let tokens = it.tokens.iter().map(|it| (it.at, it.kind.clone()));
            tokens.collect::<Vec<_>>()
        };
        (&other.file, &other.name) == (&it.file, &it.name)
            && lines(other) == lines(&it)
            && tokens(other) == tokens(&it)
    };
    let Some(known) = all.iter_mut().find(is_same) else {
        all.push(it);
        return;
    };
    known.calls = known.calls.saturating_add(it.calls);
    known.are_calls_exact &= it.are_calls_exact;
    for (line, more) in known.lines.iter_mut().zip(it.lines) {
        line.count = line.count.saturating_add(more.count);
        line.is_exact &= more.is_exact;
    }
    for (token, more) in known.tokens.iter_mut().zip(it.tokens) {
        token.count = token.count.saturating_add(more.count);
        token.is_exact &= more.is_exact;
        if let (Some(cost), Some(more)) = (&mut token.cost, more.cost) {
            cost.add(more);
        }
    }
}

/// A procedure of a source.
struct Told<'a> {
    joined: &'a Joined<'a>,
    source: &'a Source,
    /// Of the source, and of the procedure in it.
    number: usize,
    procedure: usize,
    costs: &'a Costs,
}

impl Told<'_> {
    /// Adds what is in the procedure's file, and what it includes from others.
    fn add(&self, linked: &Linked, of: &dyn Fn(u64) -> u64, all: &mut Sources) {
        let translation = &self.source.translation;
        let text: Vec<&[u8]> = self.source.text.split(|it| *it == b'\n').collect();
        let own = translation.procedures[self.procedure].begins_in;
        let mut files: BTreeMap<icon::FileId, Vec<(&icon::Token, Token)>> = BTreeMap::new();
        files.entry(own).or_default();
        let tokens = translation.tokens.iter();
        for token in tokens.filter(|it| it.procedure == self.procedure) {
            if let Some(told) = self.token(token, &text, of) {
                files.entry(token.file).or_default().push((token, told));
            }
        }
        let calls = of(linked.entry);
        let are_calls_exact = !is_jumped_to(linked, linked.entry);
        for (file, tokens) in files {
            let first = tokens.first().map_or(1, |it| it.1.at.line);
            let path = self.source.path(translation.names.name(file));
            for (token, told) in &tokens {
                let routines = self.costs.routines(self.number, token);
                all.charges
                    .extend(routines.map(|(routine, samples)| Charge {
                        file: path.clone(),
                        line: told.at.line,
                        column: told.at.column,
                        kind: told.kind.clone(),
                        routine,
                        samples,
                    }));
            }
            let unit = SourceUnit {
                file: path,
                name: String::from_utf8_lossy(&linked.name).into_owned(),
                first_line: match file == own {
                    true => heading(&self.source.text, &linked.name).unwrap_or(first),
                    false => first,
                },
                calls,
                are_calls_exact,
                lines: lines_of(&tokens),
                tokens: tokens.into_iter().map(|it| it.1).collect(),
            };
            add(&mut all.units, unit);
        }
    }

    fn token(&self, token: &icon::Token, text: &[&[u8]], of: &dyn Fn(u64) -> u64) -> Option<Token> {
        let count = self.joined.count(self.number, token, of)?;
        let (count, is_exact) = match count {
            Count::Exact(count) => (count, true),
            Count::Between(least, _) => (least, false),
        };
        let is_builtin = self.joined.is_builtin_call(self.number, token);
        Some(Token {
            at: position(text, token),
            kind: kind(token.kind, is_builtin).to_owned(),
            count,
            is_exact,
            cost: Some(self.costs.of(self.number, token)),
        })
    }
}

/// A line begins when its first token does.
fn lines_of(tokens: &[(&icon::Token, Token)]) -> Vec<Line> {
    let mut lines: BTreeMap<u32, Line> = BTreeMap::new();
    for (_, token) in tokens {
        lines.entry(token.at.line).or_insert(Line {
            line: token.at.line,
            count: token.count,
            is_exact: token.is_exact,
        });
    }
    lines.into_values().collect()
}

fn kind(kind: Kind, is_builtin: bool) -> &'static str {
    match kind {
        Kind::Identifier => "identifier",
        Kind::Literal => "literal",
        Kind::Keyword => "keyword",
        Kind::Operator => "operator",
        Kind::Call if is_builtin => "builtin call",
        Kind::Call => "call",
        Kind::List => "list",
        Kind::Structure => "structure",
    }
}

/// Where a token is. What a macro stands for is not what is written there: then its end is not known.
fn position(text: &[&[u8]], token: &icon::Token) -> Position {
    let line = text.get((token.line as usize).saturating_sub(1));
    let rest = line.and_then(|it| it.get((token.column as usize).saturating_sub(1)..));
    let is_written = rest.is_some_and(|it| it.starts_with(&token.text));
    let name = rest.map_or(0, |it| {
        let is_of_name = |it: &&u8| it.is_ascii_alphanumeric() || **it == b'_';
        it.iter().take_while(is_of_name).count().max(1)
    });
    let length = if is_written { token.text.len() } else { name };
    Position {
        line: token.line,
        column: token.column,
        end_line: token.line,
        end_column: token.column + length as u32,
    }
}

/// The line that says which procedure begins.
fn heading(text: &[u8], name: &[u8]) -> Option<u32> {
    let lines = (1_u32..).zip(text.split(|it| *it == b'\n'));
    let is_it = |line: &[u8]| {
        let rest = line.trim_ascii_start().strip_prefix(b"procedure");
        let rest = rest.filter(|it| it.first().is_some_and(u8::is_ascii_whitespace));
        let rest = rest.and_then(|it| it.trim_ascii_start().strip_prefix(name));
        rest.is_some_and(|it| {
            !it.first()
                .is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_')
        })
    };
    lines.into_iter().find(|it| is_it(it.1)).map(|it| it.0)
}

/// Does control come to an instruction also from within the procedure?
fn is_jumped_to(linked: &Linked, offset: u64) -> bool {
    use icon::Opcode::{Chfail, Create, Goto, Init, Mark};
    let mut code = linked.instructions.iter();
    code.any(|it| {
        matches!(it.opcode, Chfail | Create | Goto | Init | Mark) && it.target() == offset
    })
}
