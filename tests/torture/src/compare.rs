//! Where do two accounts of one program differ?

use std::collections::BTreeSet;
use std::fmt;

use crate::callgrind::ByAddress;
use crate::headcount::Instructions;
use crate::symbols::{ByFunction, Symbols};

/// One unit with two numbers. `None`: that side does not know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What an explanation names: a function, or `FILE:LINE`.
    pub subject: String,
    /// Where in it, if it is a part that differs.
    pub address: Option<u64>,
    pub headcount: Option<u64>,
    pub judge: Judge,
    pub judged: Option<u64>,
    /// So many more differences of the subject are left out.
    pub more: usize,
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    Callgrind,
    SingleStep,
    Gcov,
    /// Its coverage mapping.
    Clang,
    Libclang,
}

impl fmt::Display for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Judge::Callgrind => "callgrind",
            Judge::SingleStep => "single step",
            Judge::Gcov => "gcov",
            Judge::Clang => "clang",
            Judge::Libclang => "libclang",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |count: Option<u64>| count.map_or("nothing".to_owned(), |n| n.to_string());
        let (ours, theirs) = (number(self.headcount), number(self.judged));
        f.write_str(&self.subject)?;
        if let Some(address) = self.address {
            write!(f, " at {address:#x}")?;
        }
        write!(f, ": headcount {ours}, {} {theirs}", self.judge)?;
        match self.more {
            0 => Ok(()),
            more => write!(f, ", and {more} more of its instructions"),
        }
    }
}

/// How the accounts of one program's run compare.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Units that ran and have equal numbers: functions, or instructions.
    pub equal: usize,
    /// Lines that have equal numbers, where lines are compared.
    pub equal_lines: usize,
    pub differences: Vec<Difference>,
    /// What ran without being counted, if that is not to be excused.
    pub uncounted: Vec<Stretch>,
    /// Differences that a rule foresees, with the rule.
    pub foreseen: Vec<String>,
}

/// Instructions with none between them that both ran and was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub start: u64,
    pub instructions: usize,
}

impl Comparison {
    pub fn is_equal(&self) -> bool {
        self.differences.is_empty() && self.uncounted.is_empty()
    }

    /// Takes instructions that the tool gives no number out of the differences, whether it does
    /// not know them or says that it did not count them. `seen` are all that ran.
    pub fn set_uncounted_apart(&mut self, seen: &ByAddress) {
        let all = std::mem::take(&mut self.differences).into_iter();
        let (uncounted, differences): (Vec<_>, Vec<_>) = all.partition(|it| it.headcount.is_none());
        self.differences = differences;
        let uncounted: BTreeSet<u64> = uncounted.iter().filter_map(|it| it.address).collect();
        let seen: Vec<u64> = seen.keys().copied().collect();
        let stretches = seen.chunk_by(|a, b| uncounted.contains(a) == uncounted.contains(b));
        let stretches = stretches.filter(|stretch| uncounted.contains(&stretch[0]));
        self.uncounted.extend(stretches.map(|stretch| Stretch {
            start: stretch[0],
            instructions: stretch.len(),
        }));
    }
}

/// `reported` is the tool's account, `seen` callgrind's of the uncounted build.
/// Functions of `toolchain` are only compared if the tool reports them.
pub fn compare(
    reported: &[(String, u64)],
    seen: &ByFunction,
    symbols: &Symbols,
    toolchain: &BTreeSet<String>,
) -> Comparison {
    let mut ours = ByFunction::new();
    for (name, executed) in reported {
        *ours.entry(symbols.canonical(name).to_owned()).or_default() += executed;
    }
    let names: BTreeSet<&String> = ours.keys().chain(seen.keys()).collect();
    let mut comparison = Comparison::default();
    for name in names {
        match (ours.get(name).copied(), seen.get(name).copied()) {
            (Some(0), None) => {}
            (None, Some(_)) if toolchain.contains(name) => {}
            (headcount, judged) if headcount == judged => comparison.equal += 1,
            (headcount, judged) => comparison.differences.push(Difference {
                subject: name.clone(),
                address: None,
                headcount,
                judge: Judge::Callgrind,
                judged,
                more: 0,
            }),
        }
    }
    comparison
}

/// Every instruction of a module, whoever put it there.
pub fn compare_instructions(counted: &Instructions, seen: &ByAddress, judge: Judge) -> Comparison {
    let mut comparison = Comparison::default();
    let addresses = counted.keys().chain(seen.keys());
    for address in addresses.collect::<BTreeSet<_>>() {
        let ours = counted.get(address);
        let (headcount, judged) = (ours.and_then(|it| it.count), seen.get(address).copied());
        match (headcount, judged) {
            (Some(0), None) => {}
            (headcount, judged) if headcount == judged && judged.is_some() => comparison.equal += 1,
            (None, None) => {}
            (headcount, judged) => comparison.differences.push(Difference {
                subject: ours.map_or("(no function)", |it| &it.function).to_owned(),
                address: Some(*address),
                headcount,
                judge,
                judged,
                more: 0,
            }),
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headcount::Instruction;

    fn sums(pairs: &[(&str, u64)]) -> ByFunction {
        pairs
            .iter()
            .map(|(name, sum)| ((*name).to_owned(), *sum))
            .collect()
    }

    #[test]
    fn every_kind_of_difference_is_seen() {
        let reported = [
            ("same", 5),
            ("more", 6),
            ("never", 0),
            ("ghost", 1),
            ("main.cold", 2),
            ("main", 3),
        ];
        let reported = reported.map(|(name, sum)| (name.to_owned(), sum));
        let seen = sums(&[
            ("same", 5),
            ("more", 5),
            ("missed", 9),
            ("_start", 11),
            ("main", 5),
        ]);
        let toolchain = BTreeSet::from(["_start".to_owned()]);
        let found = compare(&reported, &seen, &Symbols::default(), &toolchain);
        assert_eq!(found.equal, 2);
        let lines: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "ghost: headcount 1, callgrind nothing",
                "missed: headcount nothing, callgrind 9",
                "more: headcount 6, callgrind 5",
            ]
        );
    }

    fn instruction(count: Option<u64>) -> Instruction {
        Instruction {
            function: "f".to_owned(),
            count,
            kind: crate::headcount::Kind::Other,
        }
    }

    #[test]
    fn every_instruction_is_held_against_its_judge() {
        let counted = Instructions::from([
            (0x10, instruction(Some(3))),
            (0x12, instruction(Some(3))),
            (0x14, instruction(Some(0))),
            (0x16, instruction(None)),
            (0x18, instruction(Some(1))),
            (0x1a, instruction(None)),
        ]);
        let stepped = ByAddress::from([(0x10, 3), (0x12, 2), (0x16, 1), (0x20, 5)]);
        let found = compare_instructions(&counted, &stepped, Judge::SingleStep);
        assert_eq!(found.equal, 1);
        let lines: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "f at 0x12: headcount 3, single step 2",
                "f at 0x16: headcount nothing, single step 1",
                "f at 0x18: headcount 1, single step nothing",
                "(no function) at 0x20: headcount nothing, single step 5",
            ]
        );
    }

    #[test]
    fn uncounted_instructions_are_set_apart_whether_the_tool_knows_them_or_not() {
        let counted = Instructions::from([
            (0x10, instruction(None)),
            (0x12, instruction(None)),
            (0x14, instruction(Some(7))),
            (0x18, instruction(Some(2))),
        ]);
        let stepped = ByAddress::from([(0x10, 1), (0x14, 5), (0x16, 5), (0x17, 5), (0x18, 2)]);
        let mut found = compare_instructions(&counted, &stepped, Judge::SingleStep);
        found.set_uncounted_apart(&stepped);
        let stretch = |start, instructions| Stretch {
            start,
            instructions,
        };
        assert_eq!(found.uncounted, [stretch(0x10, 1), stretch(0x16, 2)]);
        assert_eq!(found.equal, 1);
        let lines: Vec<String> = found.differences.iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["f at 0x14: headcount 7, single step 5"]);
    }
}
