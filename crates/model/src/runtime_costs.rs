//! What the runtime of interpreters cost the programs that they ran.

use crate::packed::{Packed, Packer};
use crate::{CodePoint, Language, LinkAddr};

/// A part of an interpreter's storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageRegion {
    /// What is never moved.
    Static,
    /// The characters of strings.
    String,
    /// All other values.
    Block,
    /// None of them: the program itself asked that storage be collected.
    Any,
}

impl StorageRegion {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Static, Self::String, Self::Block, Self::Any];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::String => "string",
            Self::Block => "block",
            Self::Any => "any",
        }
    }

    /// A small number for compact storage: the place in [`StorageRegion::ALL`].
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The region with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// What counts of a runtime are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OfProgram {
    /// How often each instruction of a program was executed.
    Instructions,
    /// How often each went on.
    Resumptions,
    /// How many bytes of strings each took.
    Strings,
    /// How many of other values.
    Blocks,
    /// What became of storage.
    Storage,
    /// Where a clock found the program.
    Samples,
}

impl OfProgram {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 6] = [
        Self::Instructions,
        Self::Resumptions,
        Self::Strings,
        Self::Blocks,
        Self::Storage,
        Self::Samples,
    ];

    /// A small number for compact storage: the place in [`OfProgram::ALL`].
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The one with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// What is counted of what is taken in a region.
    pub fn taken(region: StorageRegion) -> Self {
        match region {
            StorageRegion::String => Self::Strings,
            _ => Self::Blocks,
        }
    }
}

/// What became of a region's storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageEvent {
    /// It was collected because this region was full; with the nanoseconds that this took.
    Collected(StorageRegion),
    /// Some of this region was free again; with the number of bytes.
    Recovered(StorageRegion),
    /// The region became larger; with the nanoseconds.
    Expanded(StorageRegion),
}

impl StorageEvent {
    /// A small number for compact storage.
    pub fn code(self) -> i64 {
        let (kind, region) = match self {
            Self::Collected(region) => (0, region),
            Self::Recovered(region) => (1, region),
            Self::Expanded(region) => (2, region),
        };
        kind * StorageRegion::ALL.len() as i64 + i64::from(region.code())
    }

    /// The one with this code.
    pub fn from_code(code: i64) -> Option<Self> {
        let regions = StorageRegion::ALL.len() as i64;
        let region = StorageRegion::from_code(u8::try_from(code.checked_rem(regions)?).ok()?)?;
        match code / regions {
            0 => Some(Self::Collected(region)),
            1 => Some(Self::Recovered(region)),
            2 => Some(Self::Expanded(region)),
            _ => None,
        }
    }
}

/// What the runtime of interpreters cost in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeCosts {
    /// Nanoseconds on a processor that one sample stands for; 0 if no clock ran.
    pub interval: u64,
    /// The builds that the runtimes are of.
    pub builds: Vec<String>,
    /// Samples, by what the program did and what the runtime did for it.
    pub charges: Vec<RuntimeCharge>,
    /// What became of storage.
    pub regions: Vec<RegionUse>,
}

/// Samples at one instruction of a runtime, on behalf of one operation of a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RuntimeCharge {
    /// The program's language.
    pub language: Language,
    /// Where the operation is.
    pub place: ChargePlace,
    /// The runtime's instruction, of one of [`RuntimeCosts::builds`]; none if it is in code that is not counted.
    pub at: Option<CodePoint>,
    /// How many.
    pub samples: u64,
}

/// On whose behalf a runtime did something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargePlace {
    /// For all that takes storage: it collected what nobody needs.
    Collector,
    /// For no operation that is known.
    Nothing,
    /// For the operation at this place of a source file, of this kind.
    Operation {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u32,
        /// The byte in the line, from 1.
        column: u32,
        /// What it is.
        kind: String,
    },
}

/// What became of a region of an interpreter's storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionUse {
    /// The language of the interpreter's programs.
    pub language: Language,
    /// Which one.
    pub region: StorageRegion,
    /// How often some of it was taken.
    pub requests: u64,
    /// How many bytes.
    pub bytes: u64,
    /// How many of these for no operation that is known.
    pub of_nothing: u64,
    /// How often storage was collected because this region was full.
    pub collections: u64,
    /// How many nanoseconds that took.
    pub collecting: u64,
    /// How many of its bytes were free again after collections.
    pub recovered: u64,
    /// How often it became larger.
    pub expansions: u64,
    /// How many nanoseconds that took.
    pub expanding: u64,
}

impl RegionUse {
    /// A region of which nobody took anything.
    pub fn new(language: Language, region: StorageRegion) -> Self {
        Self {
            language,
            region,
            requests: 0,
            bytes: 0,
            of_nothing: 0,
            collections: 0,
            collecting: 0,
            recovered: 0,
            expansions: 0,
            expanding: 0,
        }
    }

    fn numbers(&mut self) -> [&mut u64; 8] {
        [
            &mut self.requests,
            &mut self.bytes,
            &mut self.of_nothing,
            &mut self.collections,
            &mut self.collecting,
            &mut self.recovered,
            &mut self.expansions,
            &mut self.expanding,
        ]
    }

    /// Adds what became of the same region elsewhere.
    pub fn add(&mut self, mut other: Self) {
        let more = other.numbers();
        for (to, more) in self.numbers().into_iter().zip(more) {
            *to = to.saturating_add(*more);
        }
    }
}

impl RuntimeCosts {
    /// Was nothing measured?
    pub fn is_empty(&self) -> bool {
        self.charges.is_empty() && self.regions.is_empty()
    }

    /// As bytes, for a profile.
    pub fn pack(&self) -> Vec<u8> {
        let mut to = Packer::default();
        to.wide(self.interval);
        to.texts(&self.builds);
        to.many(&self.charges, |to, it| {
            to.0.push(it.language.code());
            match &it.place {
                ChargePlace::Collector => to.0.push(0),
                ChargePlace::Nothing => to.0.push(1),
                ChargePlace::Operation {
                    file,
                    line,
                    column,
                    kind,
                } => {
                    to.0.push(2);
                    to.text(file);
                    to.number(*line as usize);
                    to.number(*column as usize);
                    to.text(kind);
                }
            }
            to.number(it.at.map_or(0, |it| it.build as usize + 1));
            to.wide(it.at.map_or(0, |it| it.at.0));
            to.wide(it.samples);
        });
        to.many(&self.regions, |to, it| {
            to.0.extend([it.language.code(), it.region.code()]);
            let mut it = *it;
            it.numbers().iter().for_each(|number| to.wide(**number));
        });
        to.0
    }

    /// From such bytes; `None` if they make no sense.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let interval = from.wide()?;
        let builds = from.many(Packed::text)?;
        let code = |build: u32, at: u64| match build.checked_sub(1) {
            None => Some(None),
            Some(build) if (build as usize) < builds.len() => {
                let at = LinkAddr(at);
                Some(Some(CodePoint { build, at }))
            }
            Some(_) => None,
        };
        let charges = from.many(|from| {
            Some(RuntimeCharge {
                language: Language::from_code(from.u8()?)?,
                place: match from.u8()? {
                    0 => ChargePlace::Collector,
                    1 => ChargePlace::Nothing,
                    2 => ChargePlace::Operation {
                        file: from.text()?,
                        line: from.number()?,
                        column: from.number()?,
                        kind: from.text()?,
                    },
                    _ => return None,
                },
                at: code(from.number()?, from.wide()?)?,
                samples: from.wide()?,
            })
        })?;
        let regions = from.many(|from| {
            let language = Language::from_code(from.u8()?)?;
            let region = StorageRegion::from_code(from.u8()?)?;
            let mut it = RegionUse::new(language, region);
            for number in it.numbers() {
                *number = from.wide()?;
            }
            Some(it)
        })?;
        from.0.is_empty().then_some(Self {
            interval,
            builds,
            charges,
            regions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        let charge = |place| RuntimeCharge {
            language: Language::Icon,
            place,
            at: Some(CodePoint {
                build: 1,
                at: LinkAddr(0x29ea0),
            }),
            samples: 300,
        };
        let region = RegionUse {
            requests: 1,
            bytes: 2,
            of_nothing: 3,
            collections: 4,
            collecting: 5,
            recovered: 6,
            expansions: 7,
            expanding: u64::MAX,
            ..RegionUse::new(Language::Icon, StorageRegion::Block)
        };
        let operation = ChargePlace::Operation {
            file: "/a.icn".to_owned(),
            line: 3,
            column: 400,
            kind: "operator".to_owned(),
        };
        let costs = RuntimeCosts {
            interval: 1_000_000,
            builds: vec!["0a".to_owned(), "0b".to_owned()],
            charges: vec![
                charge(ChargePlace::Collector),
                charge(ChargePlace::Nothing),
                charge(operation),
            ],
            regions: vec![region],
        };
        let bytes = costs.pack();
        assert_eq!(RuntimeCosts::unpack(&bytes), Some(costs));
        for end in 0..bytes.len() {
            assert_eq!(RuntimeCosts::unpack(&bytes[..end]), None);
        }
    }

    #[test]
    fn events_have_codes() {
        for region in StorageRegion::ALL {
            for event in [
                StorageEvent::Collected(region),
                StorageEvent::Recovered(region),
                StorageEvent::Expanded(region),
            ] {
                assert_eq!(StorageEvent::from_code(event.code()), Some(event));
            }
        }
        assert_eq!(StorageEvent::from_code(-1), None);
        assert_eq!(StorageEvent::from_code(12), None);
    }
}
