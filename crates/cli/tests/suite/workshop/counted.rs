//! Programs that are built without headcount, and counted as they are.

use std::collections::BTreeMap;

use super::{Said, Workshop};

/// Line, column and kind of blocks of source, with their counts.
pub type Blocks = BTreeMap<(u32, u32, String), u64>;

impl Workshop {
    /// With a program built from one source, without headcount.
    pub fn with(name: &str, source: &str, flags: &[&str]) -> Self {
        let shop = Self::new();
        shop.build(name, source, flags);
        shop
    }

    pub fn build(&self, name: &str, source: &str, flags: &[&str]) {
        let file = format!("{name}.c");
        self.write(&file, source);
        let first = ["gcc", "-g", "-w", "-Wl,-z,now", &file, "-o", name];
        self.must(&[&first, flags].concat());
    }

    /// `headcount run` of a program in the folder.
    pub fn counted(&self, words: &[&str]) -> Said {
        let quiet: &[&str] = &["run", "-q"];
        self.headcount(&[quiet, words].concat())
    }

    /// The same without its libraries.
    pub fn counted_alone(&self, words: &[&str]) -> Said {
        self.counted(&[&["--modules", "main"], words].concat())
    }

    /// It must succeed without a word.
    pub fn must_count(&self, words: &[&str]) -> String {
        let said = self.counted(words);
        assert_eq!(
            (said.status, said.stderr.as_str()),
            (Some(0), ""),
            "{words:?}"
        );
        said.stdout
    }

    /// The same without its libraries.
    pub fn must_count_alone(&self, words: &[&str]) -> String {
        self.must_count(&[&["--modules", "main"], words].concat())
    }

    /// How often a function was called; `None` if that was not counted.
    pub fn calls(&self, function: &str) -> Option<u64> {
        let words = ["report", "--only", function, "--format", "csv"];
        let said = self.headcount(&words);
        let is_nowhere = said.status == Some(2) && said.stderr.contains(" is called ");
        assert!(said.status == Some(0) || is_nowhere, "{said:?}");
        let mut rows = said.stdout.lines().skip(1).map(|row| row.split(','));
        rows.find_map(|mut row| row.nth(4)?.parse().ok())
    }

    /// Counts of those lines of a file that were counted.
    pub fn counts(&self, file: &str) -> BTreeMap<u32, u64> {
        let text = self.report(&["--by", "line", "--only", file, "--format", "csv"]);
        let rows = text.lines().skip(1).map(|row| row.split(',').collect());
        rows.filter_map(|row: Vec<&str>| Some((row[1].parse().ok()?, row[2].parse().ok()?)))
            .collect()
    }

    /// The same with what each count is worth: whether it is exact.
    pub fn exact_counts(&self, file: &str) -> BTreeMap<u32, (u64, bool)> {
        let text = self.report(&["--by", "line", "--only", file, "--format", "csv"]);
        let rows = text.lines().skip(1).map(|row| row.split(',').collect());
        let row = |row: Vec<&str>| {
            let count = (row[2].parse().ok()?, row[4] == "exact");
            Some((row[1].parse().ok()?, count))
        };
        rows.filter_map(row).collect()
    }

    pub fn report(&self, words: &[&str]) -> String {
        let said = self.headcount(&[&["report"], words].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
        said.stdout
    }

    /// `headcount` with these words must succeed without a complaint.
    pub fn must_headcount(&self, words: &[&str]) {
        let said = self.headcount(words);
        assert_eq!(
            (said.status, said.stderr.as_str()),
            (Some(0), ""),
            "{words:?}"
        );
    }

    /// `headcount cc --via source` with these options, of a compiler's command.
    pub fn via_source(&self, options: &[&str], words: &[&str]) {
        let first: &[&str] = &["cc", "--via", "source"];
        self.must_headcount(&[first, options, &["--"], words].concat());
    }

    /// The blocks of a file that was counted as source.
    pub fn source_blocks(&self, file: &str) -> Blocks {
        let csv = self.report(&["--by", "block", "--format", "csv"]);
        let mut lines = csv.lines();
        assert_eq!(
            lines.next(),
            Some("module,function,address,instructions,count,file,line,column,kind,statements")
        );
        let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
        rows.filter(|row| row[5] == file)
            .map(|row| {
                let place = (
                    row[6].parse().unwrap(),
                    row[7].parse().unwrap(),
                    row[8].to_owned(),
                );
                (place, row[4].parse().unwrap())
            })
            .collect()
    }
}
