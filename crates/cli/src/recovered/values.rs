//! What a run found by value, from its journal and its tables.

use std::collections::HashMap;

use headcount_model::{Caller, CodePoint, Key, KeyKind, LinkAddr, Tally, TallyRow, ValueCounts};
use headcount_monitor::journal::Entry;
use headcount_monitor::values::{CodeAt, Found, FoundKey, Sum, Values};

/// What was found, if that was asked for; builds are still to be named. The numbers of modules are the
/// journal's.
pub fn values_of(entries: &[Entry], values: Values) -> Option<ValueCounts> {
    let asked = entries.iter().filter_map(|entry| match entry {
        Entry::Tally {
            place,
            expression,
            scale,
            has_amount,
            is_targets,
            is_program: false,
            ..
        } => Some(Tally {
            place: place.clone(),
            expression: expression.clone(),
            scale: scale.clone(),
            has_amount: *has_amount,
            is_targets: *is_targets,
            ..Tally::default()
        }),
        _ => None,
    });
    let mut tallies: Vec<Tally> = asked.collect();
    if tallies.is_empty() {
        return None;
    }
    let places = places(entries);
    for (tally, place) in places.values() {
        if let Some(tally) = tallies.get_mut(usize::from(*tally)) {
            tally.places.push(*place);
        }
    }
    // What was taken back is nothing.
    let all = values.found.into_iter().filter(|it| it.1 != Sum::default());
    let mut all: Vec<(Found, Sum)> = all.collect();
    all.sort_unstable_by_key(|it| it.0);
    let mut texts = Texts::new(&values.texts);
    for (found, sum) in all {
        if let Some(tally) = tallies.get_mut(usize::from(found.tally)) {
            let key = key(found.key, &mut texts);
            let row = row(tally.is_targets, &places, &found, key, sum);
            tally.rows.push(row);
        }
    }
    Some(ValueCounts {
        tallies,
        texts: texts.used,
        unfinished: unfinished(entries),
        ..ValueCounts::default()
    })
}

/// How many threads may have been in the middle of something when headcount was killed.
fn unfinished(entries: &[Entry]) -> u64 {
    let mut all = entries.iter();
    if all.any(|it| matches!(it, Entry::End { .. })) {
        return 0;
    }
    let threads = entries.iter();
    threads
        .filter(|it| matches!(it, Entry::Thread { .. }))
        .count() as u64
}

type Places = std::collections::BTreeMap<u16, (u8, CodePoint)>;

/// The places of tallies, by number.
fn places(entries: &[Entry]) -> Places {
    let places = entries.iter().filter_map(|entry| match entry {
        Entry::TallyPlace {
            place,
            tally,
            module,
            at,
            ..
        } => {
            let build = u32::try_from(*module).unwrap_or(u32::MAX);
            let at = LinkAddr(*at);
            Some((*place, (*tally, CodePoint { build, at })))
        }
        _ => None,
    });
    places.collect()
}

/// The texts that were found.
struct Texts<'a> {
    known: &'a HashMap<u64, Vec<u8>>,
    used: Vec<Vec<u8>>,
    numbers: HashMap<u64, u32>,
}

impl<'a> Texts<'a> {
    fn new(known: &'a HashMap<u64, Vec<u8>>) -> Self {
        Self {
            known,
            used: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    fn key(&mut self, hash: u64) -> Key {
        let Some(text) = self.known.get(&hash) else {
            return Key::Kind(KeyKind::Changed);
        };
        let number = self.numbers.entry(hash).or_insert_with(|| {
            self.used.push(text.clone());
            self.used.len() as u32 - 1
        });
        Key::Text(*number)
    }
}

fn key(found: FoundKey, texts: &mut Texts<'_>) -> Key {
    match found {
        FoundKey::Number(number) => Key::Number(number),
        FoundKey::Kind(kind) => Key::Kind(kind),
        FoundKey::Code(at) => point(at).map_or(Key::Kind(KeyKind::Elsewhere), Key::Code),
        FoundKey::Text(hash) => texts.key(hash),
        // Those have tallies of their own.
        FoundKey::Piece(..) => Key::Kind(KeyKind::Elsewhere),
    }
}

fn row(is_targets: bool, places: &Places, found: &Found, key: Key, sum: Sum) -> TallyRow {
    let place = match is_targets {
        true => found.by.and_then(point),
        false => places.get(&found.place).map(|it| it.1),
    };
    let caller = found.by.filter(|_| !is_targets);
    TallyRow {
        place,
        key,
        caller: caller.map(|it| point(it).map_or(Caller::Elsewhere, Caller::At)),
        count: sum.count,
        amount: sum.amount,
    }
}

fn point(at: CodeAt) -> Option<CodePoint> {
    match at {
        CodeAt::Module(build, at) => Some(CodePoint {
            build,
            at: LinkAddr(at),
        }),
        CodeAt::Elsewhere => None,
    }
}
