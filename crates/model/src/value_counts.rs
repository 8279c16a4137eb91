//! What was counted by value: how often which number was found where.

use crate::packed::{Packed, Packer};
use crate::{KeyKind, LinkAddr};

/// What a run found by value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueCounts {
    /// Which builds the places are of.
    pub builds: Vec<String>,
    /// The texts that were found.
    pub texts: Vec<Vec<u8>>,
    /// One item for each thing that was asked for, in order.
    pub tallies: Vec<Tally>,
    /// How many threads may have been between a probe and its instruction, because headcount was killed.
    pub unfinished: u64,
}

/// One thing that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Where, in the user's words.
    pub place: String,
    /// What, in the user's words.
    pub expression: String,
    /// How keys are put together: `log2`, or the width of a range; empty if they are not.
    pub scale: String,
    /// Is an amount added up?
    pub has_amount: bool,
    /// Are the keys where indirect calls and jumps went?
    pub is_targets: bool,
    /// Where it was counted; nothing if the keys are targets: that is everywhere.
    pub places: Vec<CodePoint>,
    /// What was found, in order.
    pub rows: Vec<TallyRow>,
}

/// An instruction of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodePoint {
    /// The build's number in [`ValueCounts::builds`].
    pub build: u32,
    /// Its address.
    pub at: LinkAddr,
}

/// How often one thing was found at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyRow {
    /// Where; `None`: in code of no module that is counted.
    pub place: Option<CodePoint>,
    /// What.
    pub key: Key,
    /// The address that the function was to return to, if callers are told apart.
    pub caller: Option<Caller>,
    /// How often.
    pub count: u64,
    /// The sum of the amounts.
    pub amount: i64,
}

/// Who called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Caller {
    /// The instruction behind the call.
    At(CodePoint),
    /// Code of no module that is counted.
    Elsewhere,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A number.
    Number(i64),
    /// An instruction that control went to.
    Code(CodePoint),
    /// A text, by its number in [`ValueCounts::texts`].
    Text(u32),
    /// Something else.
    Kind(KeyKind),
}

impl ValueCounts {
    /// Writes them down.
    pub fn pack(&self) -> Vec<u8> {
        let mut to = Packer::default();
        to.texts(&self.builds);
        to.many(&self.texts, |to, it| to.bytes(it));
        to.wide(self.unfinished);
        to.many(&self.tallies, |to, it| {
            to.text(&it.place);
            to.text(&it.expression);
            to.text(&it.scale);
            to.0.push(it.has_amount.into());
            to.0.push(it.is_targets.into());
            to.many(&it.places, |to, it| point(to, *it));
            to.many(&it.rows, row);
        });
        to.0
    }

    /// Reads what [`ValueCounts::pack`] wrote; `None` if that makes no sense.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let builds = from.many(Packed::text)?;
        let texts = from.many(|it| it.bytes().map(<[u8]>::to_vec))?;
        let sizes = Sizes {
            builds: builds.len(),
            texts: texts.len(),
        };
        let unfinished = from.wide()?;
        let tallies = from.many(|it| {
            Some(Tally {
                place: it.text()?,
                expression: it.text()?,
                scale: it.text()?,
                has_amount: it.u8()? == 1,
                is_targets: it.u8()? == 1,
                places: it.many(|it| take_point(it, sizes))?,
                rows: it.many(|it| take_row(it, sizes))?,
            })
        })?;
        from.0.is_empty().then_some(Self {
            builds,
            texts,
            tallies,
            unfinished,
        })
    }
}

fn point(to: &mut Packer, it: CodePoint) {
    to.number(it.build as usize);
    to.wide(it.at.0);
}

/// How many things there are that rows speak of by number.
#[derive(Clone, Copy)]
struct Sizes {
    builds: usize,
    texts: usize,
}

fn take_point(from: &mut Packed<'_>, sizes: Sizes) -> Option<CodePoint> {
    let (build, at) = (from.number()?, LinkAddr(from.wide()?));
    ((build as usize) < sizes.builds).then_some(CodePoint { build, at })
}

fn row(to: &mut Packer, it: &TallyRow) {
    match it.place {
        None => to.0.push(0),
        Some(place) => {
            to.0.push(1);
            point(to, place);
        }
    }
    match it.key {
        Key::Number(number) => {
            to.0.push(0);
            to.signed_wide(number);
        }
        Key::Code(at) => {
            to.0.push(1);
            point(to, at);
        }
        Key::Kind(kind) => to.0.extend([2, kind as u8]),
        Key::Text(number) => {
            to.0.push(3);
            to.number(number as usize);
        }
    }
    match it.caller {
        None => to.0.push(0),
        Some(Caller::Elsewhere) => to.0.push(1),
        Some(Caller::At(at)) => {
            to.0.push(2);
            point(to, at);
        }
    }
    to.wide(it.count);
    to.signed_wide(it.amount);
}

fn take_row(from: &mut Packed<'_>, sizes: Sizes) -> Option<TallyRow> {
    Some(TallyRow {
        place: match from.u8()? {
            0 => None,
            _ => Some(take_point(from, sizes)?),
        },
        key: match from.u8()? {
            0 => Key::Number(from.signed_wide()?),
            1 => Key::Code(take_point(from, sizes)?),
            2 => Key::Kind(KeyKind::of(from.u8()?)?),
            _ => {
                let number = from.number()?;
                ((number as usize) < sizes.texts).then_some(Key::Text(number))?
            }
        },
        caller: match from.u8()? {
            0 => None,
            1 => Some(Caller::Elsewhere),
            _ => Some(Caller::At(take_point(from, sizes)?)),
        },
        count: from.wide()?,
        amount: from.signed_wide()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> ValueCounts {
        let point = |at: u64| CodePoint {
            build: 1,
            at: LinkAddr(at),
        };
        let row = |key, caller| TallyRow {
            place: Some(point(0x1000)),
            key,
            caller,
            count: u64::MAX,
            amount: i64::MIN,
        };
        ValueCounts {
            builds: vec!["0a".into(), "größe".into()],
            texts: vec![b"one\xff".to_vec(), Vec::new()],
            unfinished: 300,
            tallies: vec![
                Tally {
                    place: "f".into(),
                    expression: "arg1".into(),
                    scale: "log2".into(),
                    has_amount: true,
                    is_targets: false,
                    places: vec![point(0x1000), point(u64::MAX)],
                    rows: vec![
                        row(Key::Number(-1), None),
                        row(Key::Number(i64::MIN), Some(Caller::Elsewhere)),
                        row(Key::Code(point(7)), Some(Caller::At(point(9)))),
                        row(Key::Text(1), None),
                        row(Key::Kind(KeyKind::Unreadable), None),
                        TallyRow {
                            place: None,
                            ..row(Key::Kind(KeyKind::Elsewhere), None)
                        },
                    ],
                },
                Tally::default(),
            ],
        }
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        let found = found();
        assert_eq!(ValueCounts::unpack(&found.pack()), Some(found));
    }

    #[test]
    fn what_is_cut_off_or_goes_on_makes_no_sense() {
        let whole = found().pack();
        for length in 0..whole.len() {
            assert_eq!(ValueCounts::unpack(&whole[..length]), None, "{length}");
        }
        assert_eq!(ValueCounts::unpack(&[&whole[..], &[0]].concat()), None);
    }

    #[test]
    fn damaged_bytes_speak_only_of_what_is_there() {
        let whole = found().pack();
        let mut is_refused = 0;
        for at in 0..whole.len() {
            for byte in 0..=255 {
                let mut bytes = whole.clone();
                bytes[at] = byte;
                let Some(read) = ValueCounts::unpack(&bytes) else {
                    is_refused += 1;
                    continue;
                };
                let builds = read.builds.len() as u32;
                let texts = read.texts.len() as u32;
                for row in read.tallies.iter().flat_map(|it| &it.rows) {
                    assert!(row.place.is_none_or(|it| it.build < builds));
                    assert!(!matches!(row.key, Key::Text(it) if it >= texts));
                    assert!(!matches!(row.key, Key::Code(it) if it.build >= builds));
                    assert!(!matches!(row.caller, Some(Caller::At(it)) if it.build >= builds));
                }
            }
        }
        assert!(is_refused > 1000, "{is_refused}");
    }
}
