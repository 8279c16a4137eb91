//! A row for each operation of the programs that interpreters ran, in the order of their source.

use crate::Error;
use crate::count::{Count, CountedBlock};
use crate::names::Named;
use crate::report::Request;
use crate::rows::of_functions;
use crate::source::UNKNOWN;
use crate::table::{Cell, Row};
use headcount_model::{ChargePlace, Counted, Language, Operation, SourcePlace};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// No more of a token's text is shown than this.
const LONGEST_TEXT: usize = 60;

/// Which token: where it begins, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenPlace {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The byte in the line, from 1.
    pub column: u64,
    /// What it is.
    pub kind: String,
}

impl TokenPlace {
    /// The one that a row is about.
    pub fn of_row(row: &Row) -> Option<Self> {
        let [_, Cell::Text(file), line, column, Cell::Text(kind), ..] = &row.cells[..] else {
            return None;
        };
        Some(Self {
            file: file.to_string(),
            line: line.amount(),
            column: column.amount(),
            kind: kind.to_string(),
        })
    }

    /// The one that a charge is for, if it is for one.
    pub fn of_charge(place: &ChargePlace) -> Option<Self> {
        match place {
            ChargePlace::Collector | ChargePlace::Nothing => None,
            ChargePlace::Operation {
                file,
                line,
                column,
                kind,
            } => Some(Self {
                file: file.clone(),
                line: (*line).into(),
                column: (*column).into(),
                kind: kind.clone(),
            }),
        }
    }
}

/// A token of a function.
struct Token<'a> {
    language: Language,
    at: SourcePlace,
    operation: &'a Operation,
    count: Count,
    /// How often it went on.
    resumptions: Count,
    /// How many samples are of it, and how many bytes of storage it took, where somebody looks.
    samples: Option<Count>,
    bytes: Option<Count>,
}

/// The rows, by file, line and column.
pub fn rows(counted: &[Counted], request: &Request<'_>) -> Result<Vec<Row>, Error> {
    let mut sources = Sources::default();
    let mut rows = of_functions(counted, request, |named, rows| {
        for token in tokens(named) {
            let file = named.file(token.at.file).unwrap_or(UNKNOWN);
            if request.only.wants_line(named, file, token.at.line) {
                let text = sources.text(request, file, &token);
                rows.push(row(file, &token, text));
            }
        }
        Ok(())
    })?;
    rows.sort_by(|a, b| key(a).cmp(&key(b)));
    Ok(rows)
}

fn key(row: &Row) -> (&str, u64, u64) {
    let file = match &row.cells[1] {
        Cell::Text(file) => file,
        _ => "",
    };
    (file, row.cells[2].amount(), row.cells[3].amount())
}

fn tokens<'a>(named: &Named<'a>) -> Vec<Token<'a>> {
    let Some(language) = named.function.compiled.language else {
        return Vec::new();
    };
    let of = |it: CountedBlock<'a>| {
        let (at, operation) = (it.block.place?, it.block.operation.as_ref()?);
        Some((at, operation, it.count()))
    };
    let all: Vec<_> = named.blocks().filter_map(of).collect();
    let place = |at: SourcePlace, it: &Operation| (at.line, at.column, it.end_line, it.end_column);
    let is_resumed = |it: &Operation| it.kind == Operation::RESUMED;
    let resumed = all.iter().filter(|it| is_resumed(it.1));
    let resumed: BTreeMap<_, Count> = resumed
        .map(|(at, operation, count)| (place(*at, operation), *count))
        .collect();
    let mut tokens: Vec<Token<'a>> = Vec::new();
    for (at, operation, count) in all {
        // What a runtime did for a token is behind it.
        match (&*operation.kind, tokens.last_mut()) {
            (Operation::TOOK, Some(token)) => token.bytes = Some(count),
            (Operation::SAMPLED, Some(token)) => token.samples = Some(count),
            (Operation::RESUMED, Some(token)) if token.language.has_measured_runtime() => {
                token.resumptions = count;
            }
            _ if operation.is_one() => {
                let resumptions = resumed.get(&place(at, operation)).copied();
                tokens.push(Token {
                    language,
                    at,
                    operation,
                    count,
                    resumptions: resumptions.unwrap_or(Count::Exact(0)),
                    samples: None,
                    bytes: None,
                });
            }
            _ => {}
        }
    }
    tokens
}

/// A cell of what may not be known.
fn cell(count: Option<Count>) -> Cell {
    match count {
        None | Some(Count::Unknown) => Cell::Text(Arc::default()),
        Some(count) => Cell::Count(count),
    }
}

fn row(file: &str, token: &Token<'_>, text: String) -> Row {
    let words = |it: &str| Cell::Text(it.into());
    Row {
        cells: vec![
            words(token.language.name()),
            words(file),
            Cell::Number(token.at.line.into()),
            Cell::Number(token.at.column.into()),
            words(&token.operation.kind),
            words(&text),
            Cell::Count(token.count),
            Cell::Count(token.resumptions),
            cell(token.samples),
            cell(token.bytes),
        ],
        counted: token.count.is_known(),
        ran: !token.count.is_never(),
        of_source: true,
        ..Row::default()
    }
}

/// Source files, as far as they are at hand.
#[derive(Default)]
struct Sources(HashMap<String, Option<Vec<String>>>);

impl Sources {
    /// The text of a token, or as much of it as is in its first line.
    fn text(&mut self, request: &Request<'_>, file: &str, token: &Token<'_>) -> String {
        let known = self.0.entry(file.to_owned());
        let lines = known.or_insert_with(|| request.source.and_then(|source| source(file)));
        let line = lines
            .as_ref()
            .and_then(|it| it.get((token.at.line as usize).checked_sub(1)?));
        let begin = (token.at.column as usize).saturating_sub(1);
        let end = match token.operation.end_line == token.at.line {
            true => (token.operation.end_column as usize).saturating_sub(1),
            false => usize::MAX,
        };
        let text = line.and_then(|it| it.get(begin..end.min(it.len())));
        shortened(text.unwrap_or("").trim_end())
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
