//! Icon programs: every line and token as often as the programs themselves say, and as the paper of 1979 does.

use std::fs;

use crate::interpreted::counted;
use crate::workshop::{Workshop, have};

pub const FLOW: &str = include_str!("interpreted/icon/flow.icn");
pub const APPENDIX_C: &str = include_str!("interpreted/icon/appendix_c.icn");

/// Procedures of the library: a file of it, and what a program that links it does.
const LIBRARY: &str = include_str!("interpreted/icon/library.txt");

/// A folder with a program in it, linked. None where there is no Icon.
pub fn shop(name: &str, text: &str) -> Option<Workshop> {
    if !have("icont") || !have("iconx") {
        return None;
    }
    let shop = Workshop::new();
    shop.write(&format!("{name}.icn"), text);
    shop.must(&["icont", "-s", &format!("{name}.icn")]);
    Some(shop)
}

/// The rows of a report: file, line, what is in a third column, the count, and whether that is exact.
fn rows(shop: &Workshop, by: &str, third: &str, count: &str) -> Vec<(String, u32, String, u64)> {
    let csv = shop.report(&["--by", by, "--language", "icon", "--all", "--format", "csv"]);
    let mut rows = csv.lines().map(|it| it.split(',').collect::<Vec<_>>());
    let titles = rows.next().unwrap();
    let column = |name: &str| {
        let found = titles.iter().position(|it| *it == name);
        found.unwrap_or_else(|| panic!("{name}: {titles:?}"))
    };
    let (file, line, third, count) = (column("file"), column("line"), column(third), column(count));
    let row = |row: Vec<&str>| {
        let number = row[count].parse().unwrap_or_else(|_| panic!("{row:?}"));
        let line = row[line].parse().unwrap();
        (row[file].to_owned(), line, row[third].to_owned(), number)
    };
    rows.map(row).collect()
}

fn lines(shop: &Workshop) -> Vec<(String, u32, String, u64)> {
    rows(shop, "line", "exactness", "statements_executed")
}

/// Nothing that the report says casts doubt on the counts, and nothing was left out.
fn is_sure(shop: &Workshop) {
    let text = shop.report(&[]);
    for word in [
        "Do not believe",
        "are not counted",
        "own table",
        "could ask for",
    ] {
        assert!(!text.contains(word), "{text}");
    }
}

/// What a program says of its lines is what was counted.
pub fn agrees(shop: &Workshop, said: &str) {
    let found = lines(shop);
    let mut agreed = 0;
    for (name, count) in said.lines().filter_map(|it| it.split_once(' ')) {
        let mark = format!("# @{name}");
        let line = FLOW.lines().position(|it| it.ends_with(&mark));
        let line = line.unwrap_or_else(|| panic!("{name}")) as u32 + 1;
        let is_it = |it: &&(String, u32, String, u64)| it.0.ends_with("flow.icn") && it.1 == line;
        let row = found.iter().find(is_it);
        let row = row.unwrap_or_else(|| panic!("{name}: {found:?}"));
        assert_eq!(
            (&row.2[..], row.3.to_string()),
            ("exact", count.to_owned()),
            "{name}"
        );
        agreed += 1;
    }
    assert_eq!(agreed, 13, "{said}");
}

#[test]
fn lines_of_icon_begin_as_often_as_their_program_says() {
    let Some(shop) = shop("flow", FLOW) else {
        return;
    };
    for words in [&["./flow"][..], &["iconx", "flow"]] {
        let said = counted(&shop, words);
        is_sure(&shop);
        agrees(&shop, &said.stdout);
    }
    let said = counted(&shop, &["./flow", "and", "stop"]);
    assert_eq!(said.status, Some(1));
    agrees(&shop, &said.stdout);
    // The library's procedures are told by its sources.
    let found = lines(&shop);
    assert!(
        found
            .iter()
            .any(|it| it.0.ends_with("/lists.icn") && it.3 > 0),
        "{found:?}"
    );
}

#[test]
fn tokens_of_icon_count_as_in_1979() {
    let Some(shop) = shop("c", APPENDIX_C) else {
        return;
    };
    for n in [0, 3, 31] {
        let input = "a line\n".repeat(n as usize);
        fs::write(shop.path("input"), input).unwrap();
        counted(&shop, &["sh", "-c", "./c < input"]);
        is_sure(&shop);
        let counts = |of_builtins: bool| -> Vec<(String, u64)> {
            let kinds = rows(&shop, "token", "kind", "count");
            let texts = rows(&shop, "token", "text", "count");
            let rows = kinds.into_iter().zip(texts);
            let counts = rows.map(
                |(kind, text)| match kind.2 == "builtin call" && !of_builtins {
                    true => (text.2, 0),
                    false => (text.2, text.3),
                },
            );
            counts.collect()
        };
        let texts = [
            "while", "line", ":=", "read", "(", "&input", "do", "write", "(", "line",
        ];
        let expected = |counts: [u64; 10]| -> Vec<(String, u64)> {
            let texts = texts.iter().map(|it| (*it).to_owned());
            texts.zip(counts).collect()
        };
        // The paper does not count `(` of what is built in.
        let paper = expected([1, n + 1, n, n + 1, 0, n + 1, n, n, 0, n]);
        assert_eq!(counts(false), paper, "{n} lines");
        let ours = expected([1, n + 1, n, n + 1, n + 1, n + 1, n, n, n, n]);
        assert_eq!(counts(true), ours, "{n} lines");
    }
}

#[test]
fn an_icon_program_that_is_killed_has_counted_up_to_then() {
    let text = "procedure main()
   every 1 to 50 do f()
   system(\"kill -9 $PPID\")
   f()
end
procedure f()
   return 1
end
";
    let Some(shop) = shop("dies", text) else {
        return;
    };
    let said = shop.headcount(&["run", "-q", "--", "iconx", "dies"]);
    assert_eq!(said.status, Some(128 + 9), "{said:?}");
    is_sure(&shop);
    let found = lines(&shop);
    let of = |line| found.iter().find(|it| it.1 == line).map_or(0, |it| it.3);
    assert_eq!([of(2), of(3), of(4), of(7)], [1, 1, 0, 50]);
}

#[test]
fn a_source_that_changed_since_is_refused_by_name() {
    let text = "procedure main()\n   every write(1 to 3)\nend\n";
    let Some(shop) = shop("p", text) else {
        return;
    };
    shop.write("p.icn", text.replace('3', "4"));
    counted(&shop, &["./p"]);
    let report = shop.report(&[]);
    assert!(
        report.contains("p.icn: the source changed since it was translated"),
        "{report}"
    );
    assert_eq!(rows(&shop, "token", "kind", "count"), []);
    let found = lines(&shop);
    assert!(found.iter().any(|it| it.1 == 2 && it.3 == 1), "{found:?}");
    fs::remove_file(shop.path("p.icn")).unwrap();
    counted(&shop, &["./p"]);
    let report = shop.report(&[]);
    assert!(
        report.contains("p.icn: its source was not found"),
        "{report}"
    );
}

#[test]
fn a_program_that_is_gone_or_an_interpreter_that_is_not_known_is_refused_by_name() {
    let text = "procedure main()\n   remove(\"p\")\n   write(1)\nend\n";
    let Some(shop) = shop("p", text) else {
        return;
    };
    shop.headcount(&["run", "-q", "--", "iconx", "p"]);
    let report = shop.report(&[]);
    assert!(
        report.contains("The Icon program p is not counted")
            && report.contains("its file cannot be read any more"),
        "{report}"
    );
    // The same with another program in its place.
    let text = "procedure main()\n   rename(\"other\", \"p\")\nend\n";
    shop.write("p.icn", text);
    shop.write("other.icn", text.replace("end", "   write(2)\nend"));
    shop.must(&["icont", "-s", "p.icn"]);
    shop.must(&["icont", "-s", "other.icn"]);
    shop.headcount(&["run", "-q", "--", "./p"]);
    let report = shop.report(&[]);
    assert!(
        report.contains("The Icon program ./p is not counted")
            && report.contains("its file changed while it ran"),
        "{report}"
    );
    let iconx = shop.run(&["sh", "-c", "command -v iconx"]);
    let mut bytes = fs::read(iconx.stdout.trim()).unwrap();
    while let Some(at) = bytes.windows(10).position(|it| it == b"I9.0.00/32") {
        bytes[at + 1] = b'8';
    }
    shop.write("hello.icn", "procedure main()\n   write(1)\nend\n");
    shop.must(&["icont", "-s", "hello.icn"]);
    let mut program = fs::read(shop.path("hello")).unwrap();
    let at = program
        .windows(10)
        .position(|it| it == b"I9.0.00/32")
        .unwrap();
    program[at + 1] = b'8';
    fs::write(shop.path("hello"), program).unwrap();
    fs::write(shop.path("iconx8"), bytes).unwrap();
    shop.must(&["chmod", "+x", "iconx8"]);
    counted(&shop, &["./iconx8", "hello"]);
    let report = shop.report(&[]);
    assert!(
        report.contains("it is an interpreter of Icon, but its icode has a version other than"),
        "{report}"
    );
}

/// All in one run, each by an interpreter of its own.
#[test]
fn programs_do_with_the_library_what_they_do_alone() {
    let Some(shop) = shop("p", APPENDIX_C) else {
        return;
    };
    let programs: Vec<(&str, &str)> = LIBRARY
        .lines()
        .filter_map(|it| it.split_once(": "))
        .collect();
    assert_eq!(programs.len(), 27);
    for (file, what) in &programs {
        let text = format!("link {file}\nprocedure main()\n   {what}\nend\n");
        shop.write(&format!("try_{file}.icn"), &text);
        shop.must(&["icont", "-s", &format!("try_{file}.icn")]);
    }
    let all: String = programs
        .iter()
        .map(|it| format!("./try_{} || exit 9\n", it.0))
        .collect();
    shop.write("all.sh", &all);
    let said = counted(&shop, &["sh", "all.sh"]);
    assert_eq!(said.status, Some(0));
    assert!(said.stdout.lines().count() > programs.len());
    is_sure(&shop);
    let found = lines(&shop);
    let ran = |name: &str| {
        let is_it = |it: &&(String, u32, String, u64)| it.0.ends_with(name) && it.3 > 0;
        found.iter().any(|it| is_it(&it))
    };
    for (file, _) in programs {
        let own = format!("try_{file}.icn");
        let library = format!("/icon-ipl/{file}.icn");
        assert!(ran(&own) && ran(&library), "{file}: {found:?}");
    }
    // The same while clocks stop them.
    let timed = shop.headcount(&["run", "-q", "--time", "--", "sh", "all.sh"]);
    assert_eq!((timed.stdout, timed.status), (said.stdout, Some(0)));
}
