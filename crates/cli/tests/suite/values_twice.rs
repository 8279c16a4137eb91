//! Counting by value, by each engine: what probes compute inside of the program against what is computed
//! outside of it, at breakpoints. They share nothing but the expression and where it is computed.

use crate::workshop::{Workshop, have};
use std::collections::BTreeMap;

const SHAPES: &str = include_str!("values_twice/shapes.cc");

/// All rows, by what they are told apart by: how often, and how much.
type Values = BTreeMap<String, (u64, String)>;

fn values(shop: &Workshop) -> Values {
    let said = shop.headcount(&["report", "--by", "value", "--all", "--format", "csv"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(!said.stderr.contains("values of"), "{said:?}");
    let mut rows = csv::Reader::from_reader(said.stdout.as_bytes());
    let mut values = Values::new();
    for row in rows.records() {
        let row = row.unwrap();
        let told: Vec<&str> = [0, 1, 2, 3, 4, 6, 8].map(|it| &row[it]).to_vec();
        let found = (row[5].parse().unwrap(), row[7].to_owned());
        assert!(values.insert(told.join("|"), found).is_none(), "{row:?}");
    }
    values
}

fn by_each_engine(shop: &Workshop, modules: &str, asked: &[&str], program: &[&str]) -> Values {
    let mut all = ["detour", "breakpoint"].map(|engine| {
        shop.forget();
        let words = [
            &["--engine", engine, "--modules", modules],
            asked,
            &["--"],
            program,
        ]
        .concat();
        let said = shop.counted(&words);
        assert_eq!(said.status, Some(0), "{said:?}");
        values(shop)
    });
    let differ = all[0]
        .iter()
        .filter(|(told, found)| all[1].get(*told) != Some(*found));
    let differ: Vec<_> = differ.take(9).collect();
    assert_eq!(all[0].len(), all[1].len(), "{differ:?}");
    assert!(differ.is_empty(), "{differ:?}");
    std::mem::take(&mut all[0])
}

/// How often what was found in rows that say this.
fn sum(values: &Values, words: &[&str]) -> u64 {
    let is_meant = |told: &&String| words.iter().all(|it| told.contains(it));
    let rows = values.keys().filter(is_meant);
    rows.map(|it| values[it].0).sum()
}

#[test]
fn engines_agree_on_every_kind_of_value() {
    for (level, threads) in [("-O0", "1"), ("-O2", "8"), ("-O1", "3")] {
        let shop = Workshop::new();
        shop.write("shapes.cc", SHAPES);
        shop.must(&["g++", level, "-g", "-pthread", "shapes.cc", "-o", "shapes"]);
        let asked = [
            "measure(str(arg1))",
            "measure(str(arg1, 3)) by caller",
            "measure(arg2)",
            "measure(log2(arg2 + 5))",
            "measure(linear(arg2, 2))",
            "measure(range(arg2, -3..0))",
            "sum arg2 in measure(u8[arg1])",
            "measure(arg2 & 3)",
            "measure(u8[arg1 + 0x600000000000] & 15)",
            "measure(range(u8[arg1], 100..1000))",
            "measure(range(arg2, -3..3000))",
            "sum i32[arg1 + 0x600000000000] in measure(arg2 < 0)",
            "measure([arg1 + 0x600000000000])",
            "measure(7 / arg2)",
            "measure(number)",
            "measure(str(name, 5))",
            "compare(i32[arg1] - i32[arg2])",
            "compare(ret)",
            "compare(ret & 0xff)",
            "back(ret)",
            "sum arg1 in back by caller",
            "Square::area(x)",
        ];
        let tallies: Vec<&str> = asked.iter().flat_map(|it| ["--tally", it]).collect();
        let found = by_each_engine(&shop, "main", &tallies, &["./shapes", threads]);
        let times = 600 * (1 + threads.parse::<u64>().unwrap());
        for (words, expected) in [
            (["measure|str(arg1)|", "\"two words\""], times / 6),
            (["measure|str(arg1)|", r#""\"<quoted>\"\n""#], times / 6),
            (["measure|str(arg1)|", r#""\xff\xfe""#], times / 6),
            (["measure|arg2|-4|", ""], times / 5),
            // Where optimised code is not, variables are not where the debug information says yet.
            (["measure|number|-4|", ""], times / 5),
            (["measure|str(name, 5)|", "\"two w\""], times / 6),
            (["measure|range(arg2, -3..0)|(below)", ""], times / 5),
            (["measure|range(arg2, -3..0)|(above)", ""], times / 5),
            (["measure|[arg1", "(unreadable)"], times),
            (
                ["measure|u8[arg1 + 0x600000000000] & 15", "(unreadable)"],
                times,
            ),
            (["measure|range(arg2, -3..3000)|(below)", ""], times / 5),
            (["measure|7 / arg2|(unreadable)", ""], times / 5),
            (["measure|str(arg1, 3)|", "\"two\""], times / 6),
        ] {
            assert_eq!(
                sum(&found, &words),
                expected,
                "{words:?} {level}: {found:?}"
            );
        }
    }
}

#[test]
fn engines_agree_on_targets() {
    let shop = Workshop::new();
    shop.write("shapes.cc", SHAPES);
    shop.must(&["g++", "-O1", "-g", "-pthread", "shapes.cc", "-o", "shapes"]);
    // Threads that race for the first call of a library's function may both look for it.
    let found = by_each_engine(
        &shop,
        "main",
        &["--targets"],
        &["env", "LD_BIND_NOW=1", "./shapes", "1"],
    );
    assert_eq!(
        sum(&found, &["work(int)", "|Square::area(int)|"]),
        1200 - 600 - 200
    );
    assert_eq!(
        sum(&found, &["work(int)", "|Broken::area(int)|"]),
        600 + 200
    );
}

#[test]
fn engines_agree_on_other_peoples_programs() {
    let shop = Workshop::new();
    let numbers: Vec<String> = (0..9_999)
        .map(|it| (it * 7919 % 1_003).to_string())
        .collect();
    shop.write("numbers", numbers.join("\n"));
    let asked = [
        "--tally",
        "read(ret)",
        "--tally",
        "malloc(log2(arg1)) by caller",
        "--targets",
    ];
    if have("bzip2") {
        let found = by_each_engine(&shop, "*/libc.so.6", &asked, &["bzip2", "-kc", "numbers"]);
        assert!(sum(&found, &["|read|ret|"]) > 2, "{found:?}");
    }
    if have("python3") {
        let asked = [
            "--tally",
            "malloc(arg1)",
            "--tally",
            "__strcmp_*(str(arg2))",
        ];
        let code = "print(sorted({str(i) for i in range(99)}))";
        let program = ["env", "PYTHONHASHSEED=0", "/usr/bin/python3", "-ISc", code];
        let found = by_each_engine(&shop, "*/libc.so.6", &asked, &program);
        assert!(sum(&found, &["|malloc|arg1|"]) > 500, "{found:?}");
        assert!(sum(&found, &["|__strcmp_*|", "\"utf-8\""]) > 0, "{found:?}");
    }
}
