//! Branches, by the line they are on.

use crate::branches::{branches, last_line};
use crate::names::functions;
use headcount_model::Counted;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All branches of one line that were met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineBranches {
    /// How many there are.
    pub branches: usize,
    /// How many ways they have together.
    pub ways: usize,
    /// How many of those were gone.
    pub gone: usize,
    /// Of an only branch with two ways: how often it jumped, and how often it was met.
    pub jumped: Option<(u64, u64)>,
}

/// The branches of every line of every file. Those that nothing ever came to, or of which a way was
/// not counted, are left out: there is nothing to tell.
pub fn line_branches(counted: &[Counted]) -> BTreeMap<Arc<str>, BTreeMap<u32, LineBranches>> {
    let mut all: BTreeMap<Arc<str>, BTreeMap<u32, LineBranches>> = BTreeMap::new();
    for module in counted {
        for named in functions(module, false) {
            for branch in branches(named.function, named.counts) {
                let block = named.function.blocks.get(branch.block as usize);
                let run = block.and_then(last_line);
                let file = run.and_then(|run| Some((named.file(run.file)?, run.line)));
                let gone = branch.gone().filter(|gone| *gone > 0);
                if let (Some((file, line)), Some(gone)) = (file, gone) {
                    let of_file = match all.get_mut(file) {
                        Some(of_file) => of_file,
                        None => all.entry(file.into()).or_default(),
                    };
                    let it = of_file.entry(line).or_default();
                    it.branches += 1;
                    it.ways += branch.ways.len();
                    it.gone += gone;
                    it.jumped = match it.branches {
                        1 => branch.jumped(),
                        _ => None,
                    };
                }
            }
        }
    }
    all
}

impl LineBranches {
    /// In at most five columns: how often it jumped, where there is one branch that went both
    /// ways; else how many ways were gone of how many. `0%` and `100%` do not occur: that is `1/2`.
    pub fn short(&self) -> String {
        match self.jumped {
            Some((jumped, met)) if self.gone == 2 => percent(jumped, met),
            _ if self.ways > 99 => format!("{}/..", self.gone.min(99)),
            _ => format!("{}/{}", self.gone, self.ways),
        }
    }
}

fn percent(part: u64, whole: u64) -> String {
    let (part, whole) = (u128::from(part), u128::from(whole.max(1)));
    match (part * 100 + whole / 2) / whole {
        0 => "<1%".into(),
        100 => ">99%".into(),
        rounded => format!("{rounded}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_columns_are_enough() {
        let short = |gone, ways, jumped| {
            LineBranches {
                branches: ways / 2,
                ways,
                gone,
                jumped,
            }
            .short()
        };
        assert_eq!(short(2, 2, Some((1, 3))), "33%");
        assert_eq!(short(2, 2, Some((1, 1_000_000))), "<1%");
        assert_eq!(short(2, 2, Some((u64::MAX - 1, u64::MAX))), ">99%");
        assert_eq!(short(1, 2, Some((7, 7))), "1/2");
        assert_eq!(short(13, 28, None), "13/28");
        assert_eq!(short(400, 600, None), "99/..");
    }
}
