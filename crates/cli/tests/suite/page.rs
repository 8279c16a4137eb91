//! The page of `headcount html`, as a browser sees it.

use crate::browser::{Browser, Screen};
use crate::workshop::{Workshop, have};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

const LIGHT: Screen = Screen {
    width: 1280,
    dark: false,
};

/// Goes one way a third of the time; has a call that is never made, and a table.
const WAYS_C: &str = "\
#include <stdio.h>
#include <stdlib.h>
int ways(int n)
{
    switch (n % 7) {
    case 0: return puts(\"zero\");
    case 1: return 11;
    case 2: return 22;
    case 3: return 33;
    case 4: return 44;
    default: return n;
    }
}
int never_called(int n) { return n + ways(n); }
int main(int argc, char **argv)
{
    int sum = 0;
    for (int i = 1; i < 30; i++)
        if (i % 3 == 0)
            sum += ways(i);
    if (argc > 1)
        sum += never_called(argc);
    printf(\"%d\\n\", sum);
    return sum == 12345 ? abort(), 1 : 3;
}
";

/// A counted program and its page.
fn page(shop: &Workshop) -> PathBuf {
    let said = shop.headcount(&["html", "-o", "report.html"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    shop.path("report.html")
}

/// Counted by whoever asks first. Nobody changes it.
fn ways() -> &'static (Workshop, PathBuf) {
    static WAYS: LazyLock<(Workshop, PathBuf)> = LazyLock::new(new_ways);
    &WAYS
}

fn new_ways() -> (Workshop, PathBuf) {
    let shop = Workshop::new();
    shop.write("ways.c", WAYS_C);
    shop.must(&["gcc", "-g", "-O1", "ways.c", "-o", "ways"]);
    let said = shop.headcount(&["run", "--", "./ways"]);
    assert_eq!(said.status, Some(3), "{said:?}");
    let page = page(&shop);
    (shop, page)
}

fn csv(shop: &Workshop, by: &str) -> Vec<Vec<String>> {
    let said = shop.headcount(&["report", "--by", by, "--format", "csv"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let row = |row: &str| row.split(',').map(str::to_owned).collect();
    said.stdout.lines().skip(1).map(row).collect()
}

const EVERY_VIEW: [&str; 11] = [
    "",
    "#/functions",
    "#/tree",
    "#/calls",
    "#/branches",
    "#/never",
    "#/refused",
    "#/run",
    "#/find/wa",
    "#/function/main",
    "#/file/ways.c:17",
];

#[test]
fn every_view_opens_without_a_complaint_and_can_be_used_by_all() {
    if !have("chromium") {
        return;
    }
    let (_shop, page) = ways();
    let mut browser = Browser::start();
    for (width, dark) in [(1280, false), (1280, true), (400, false)] {
        for view in EVERY_VIEW {
            browser.open(page, view, &Screen { width, dark });
            let wrong = browser.value(include_str!("browser/accessible.js"));
            assert_eq!(wrong, Value::Array(Vec::new()), "{view} {width} {dark}");
        }
    }
    browser.open(page, "#/file/ways.c:17", &LIGHT);
    browser.press("Enter");
    browser.wait_for("document.querySelector('.detail .instruction') !== null");
    let wrong = browser.value(include_str!("browser/accessible.js"));
    assert_eq!(wrong, Value::Array(Vec::new()), "with instructions");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// The page and the report must tell the same; they have little code in common.
#[test]
fn its_numbers_are_those_of_the_report() {
    if !have("chromium") {
        return;
    }
    let (shop, page) = ways();
    let mut browser = Browser::start();
    browser.open(page, "", &LIGHT);
    let functions = browser.value(
        "index.functions.map((it) => [index.modules[it.module].path, it.name, String(it.calls), \
         String(it.executed), String(it.instructions), String(it.neverRan)])",
    );
    let mut wanted: Vec<Vec<String>> = csv(shop, "function");
    for row in &mut wanted {
        row.drain(2..4);
    }
    assert_eq!(sorted(functions), sorted(serde_json::json!(wanted)));

    let lines = browser.value(
        "piece('file-' + index.fileByPath.get('ways.c').id).then((it) => { let line = 0; \
         return it.lines.map((more, i) => ['ways.c', String(line += more), String(it.counts[i]), \
         String(it.executed[i])]); })",
    );
    let of_file = |row: &Vec<String>| row[0] == "ways.c";
    let mut wanted: Vec<_> = csv(shop, "line").into_iter().filter(of_file).collect();
    for row in &mut wanted {
        match row.pop().as_deref() {
            Some("at_least") => row[2] = format!(">{}", row[2]),
            Some("unknown") => row[2] = "?".to_owned(),
            _ => (),
        }
    }
    assert!(wanted.len() > 10);
    assert_eq!(sorted(lines), sorted(serde_json::json!(wanted)));

    let calls = browser.value(
        "calls().then((all) => all.filter((it) => it.caller.name === 'main')\
         .map((it) => [hex(it.address), it.callee?.name ?? '*', String(it.count)]))",
    );
    let wanted: Vec<_> = csv(shop, "call")
        .into_iter()
        .filter(|row| row[1] == "main")
        .map(|row| row[2..].to_vec())
        .collect();
    assert!(wanted.len() > 2);
    assert_eq!(sorted(calls), sorted(serde_json::json!(wanted)));

    let instructions = browser.value(
        "codeOf(index.functionByKey.get('main')).then((code) => code.blocks.flatMap((it) => it.code)\
         .map((it) => [hex(it.at), String(it.count)]))",
    );
    let wanted: Vec<_> = csv(shop, "instruction")
        .into_iter()
        .filter(|row| row[1] == "main")
        .map(|row| row[2..4].to_vec())
        .collect();
    assert!(wanted.len() > 20);
    assert_eq!(sorted(instructions), sorted(serde_json::json!(wanted)));
}

fn sorted(rows: Value) -> Vec<String> {
    let rows = rows.as_array().unwrap().iter();
    let mut rows: Vec<String> = rows.map(Value::to_string).collect();
    rows.sort();
    rows
}

#[test]
fn functions_show_what_they_did() {
    if !have("chromium") {
        return;
    }
    let (shop, page) = ways();
    let mut browser = Browser::start();
    browser.open(page, "#/functions", &LIGHT);
    let titles = "[...document.querySelectorAll('th')].map((it) => it.textContent).join()";
    let before = browser.text(titles);
    assert!(!before.contains("loads"), "{before}");
    let press = |name: &str| {
        format!(
            "[...document.querySelectorAll('.events button')].find((it) => it.textContent === \
             '{name}').click() ?? 'pressed'"
        )
    };
    for name in ["loads", "taken"] {
        assert_eq!(browser.text(&press(name)), "pressed");
    }
    assert!(browser.text(titles).contains("Calls,loads,taken,"));
    assert!(
        browser
            .text("location.hash")
            .ends_with("events=loads%2Ctaken")
    );
    let amounts = browser.value(
        "eventAmounts().then((it) => index.functions.map((f) => [index.modules[f.module].path, f.name, \
         ...index.events.map((_, place) => String(it.of(f, place)))]))",
    );
    let events = "loads,stores,branches,taken,flops";
    let csv = shop.report(&["--events", events, "--format", "csv"]);
    let mut wanted = Vec::new();
    for line in csv.lines().skip(1) {
        let row: Vec<&str> = line.split(',').collect();
        let bounds: Vec<&str> = row[13].split(' ').collect();
        let amount = |(name, number): (&str, &&str)| {
            let is = |bound: &str| bounds.contains(&format!("{name}={bound}").as_str());
            let sign = match (is("at_least"), is("at_most")) {
                (true, _) => ">",
                (_, true) => "<",
                _ => "",
            };
            match number.is_empty() {
                true => "null".to_owned(),
                false => format!("{sign}{number}"),
            }
        };
        let mut fields = vec![row[0].to_owned(), row[1].to_owned()];
        fields.extend(events.split(',').zip(&row[8..13]).map(amount));
        wanted.push(fields);
    }
    assert!(wanted.len() > 20 && csv.contains("=at_least"), "{csv}");
    assert_eq!(sorted(amounts), sorted(serde_json::json!(wanted)));
    let wrong = browser.value(include_str!("browser/accessible.js"));
    assert_eq!(wrong, Value::Array(Vec::new()));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn branches_say_how_often_which_way() {
    if !have("chromium") {
        return;
    }
    let (_shop, page) = ways();
    let mut browser = Browser::start();
    browser.open(page, "#/file/ways.c", &LIGHT);
    // 29 times, of which 9 call `ways`.
    let shown = browser.text("document.querySelector('#L19 .outcome').textContent");
    assert_eq!(shown, "taken 9 / not 20");
    let shown = browser.text("document.querySelector('#L21 .outcome').textContent");
    assert_eq!(shown, "never");
    assert_eq!(
        browser.text("document.querySelector('#L22 .count').textContent"),
        "never"
    );
    browser.open(page, "#/never", &LIGHT);
    assert!(browser.text("content.textContent").contains("never_called"));
    browser.open(page, "#/run", &LIGHT);
    assert!(
        browser
            .text("content.textContent")
            .contains("exit status 3")
    );
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn keys_lead_through_a_source_and_addresses_lead_to_lines() {
    if !have("chromium") {
        return;
    }
    let (_shop, page) = ways();
    let mut browser = Browser::start();
    browser.open(page, "#/file/ways.c:18", &LIGHT);
    let current = "document.querySelector('.line.current').id";
    assert_eq!(browser.text(current), "L18");
    for (key, line) in [("j", "L19"), ("n", "L22"), ("k", "L21")] {
        browser.press(key);
        assert_eq!(browser.text(current), line, "after {key}");
    }
    assert!(browser.text("location.hash").ends_with("/ways.c:21"));
    browser.press("/");
    assert_eq!(browser.text("document.activeElement.id"), "find");
    browser.ask("Input.insertText", serde_json::json!({ "text": "never_" }));
    browser.wait_for("content.textContent.includes('never_called')");
    browser.press("Enter");
    browser.wait_for("content.querySelector('h1').textContent === 'never_called'");
    browser.press("2");
    browser.wait_for("content.querySelector('h1').textContent === 'Functions'");
    browser.press("t");
    assert_eq!(
        browser.text("document.documentElement.dataset.theme"),
        "light"
    );
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_file_named_like_markup_is_shown_as_text() {
    if !have("chromium") {
        return;
    }
    let shop = Workshop::new();
    let name = "<script>alert(1)<img src=x onerror=alert(2)>'\"&.c";
    shop.write(
        name,
        "int main(void) { return 0; } // </script><script>alert(3)</script>\n",
    );
    shop.must(&["gcc", "-g", name, "-o", "<b>prog"]);
    assert_eq!(
        shop.headcount(&["run", "--", "./<b>prog", "<i>"]).status,
        Some(0)
    );
    let page = page(&shop);
    let mut browser = Browser::start();
    browser.open(&page, "", &LIGHT);
    let text = browser.text("content.textContent");
    assert!(
        text.contains(name) && text.contains("./<b>prog <i>"),
        "{text}"
    );
    browser
        .value("location.hash = fileLink(index.files.find((it) => it.path.includes('alert'))); 0");
    browser.wait_for("document.getElementById('L1') !== null");
    let line = browser.text("document.querySelector('#L1 code').textContent");
    assert!(
        line.ends_with("// </script><script>alert(3)</script>"),
        "{line}"
    );
    let made = browser.value("document.querySelectorAll('img, b, i').length");
    assert_eq!(made, 0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn three_hundred_files_are_in_the_page_and_only_what_is_seen_is_unpacked() {
    if !have("chromium") {
        return;
    }
    let shop = Workshop::new();
    let mut main = String::new();
    let mut calls = String::new();
    for number in 0..300 {
        fs::create_dir_all(shop.path(&format!("part{}", number / 30))).unwrap();
        let body = "    if (x > 3)\n        x -= 3;\n".repeat(20);
        shop.write(
            &format!("part{}/f{number}.c", number / 30),
            format!("__attribute__((noipa))\nint f{number}(int x)\n{{\n{body}    return x;\n}}\n"),
        );
        main.push_str(&format!("#include \"part{}/f{number}.c\"\n", number / 30));
        calls.push_str(&format!("    sum += f{number}(sum + {number});\n"));
    }
    shop.write(
        "main.c",
        format!("{main}int main(void)\n{{\n    int sum = 0;\n{calls}    return 0;\n}}\n"),
    );
    shop.must(&["gcc", "-g", "-O1", "main.c", "-o", "many"]);
    assert_eq!(
        shop.headcount(&["run", "--modules", "main", "--", "./many"])
            .status,
        Some(0)
    );
    let page = page(&shop);
    let size = fs::metadata(&page).unwrap().len();
    assert!(size < 1_000_000, "{size} bytes");
    let mut browser = Browser::start();
    browser.open(&page, "", &LIGHT);
    assert_eq!(browser.value("index.files.length"), 301);
    let packed = browser.value("document.querySelectorAll('script[id^=file]').length");
    assert_eq!(packed, 301);
    // The map has the larger files, and one area for the rest; areas are as large as they say, and
    // cover all of it.
    assert_eq!(
        browser.value("document.querySelectorAll('.map .area').length"),
        121
    );
    let wrong = browser.value(
        "(() => { const box = { left: 0, top: 0, width: 3, height: 1 }; \
         const weights = index.files.map((it) => size(it.executed)).sort((a, b) => b - a); \
         const whole = weights.reduce((a, b) => a + b); \
         const laid = squarified(weights.map((weight) => ({ weight })), box); \
         const isOff = (it) => Math.abs(it.width * it.height - it.weight / whole * 3) > 1e-9; \
         const isOut = (it) => it.left < -1e-9 || it.top < -1e-9 || it.left + it.width > 3 + 1e-9 || \
         it.top + it.height > 1 + 1e-9; \
         const meet = (a, b) => a.left + a.width > b.left + 1e-9 && b.left + b.width > a.left + 1e-9 && \
         a.top + a.height > b.top + 1e-9 && b.top + b.height > a.top + 1e-9; \
         return laid.filter((a, i) => isOff(a) || isOut(a) || laid.some((b, j) => j < i && meet(a, b)))\
         .length + Math.abs(laid.length - weights.length); })()",
    );
    assert_eq!(wrong, 0);
    let shown = browser.value("document.querySelectorAll('.tree tbody tr').length");
    assert_eq!(shown, 11, "ten folders, closed, and main.c");
    browser.value("document.querySelector('.tree .fold').click(); 0");
    let shown = browser.value("document.querySelectorAll('.tree tbody tr').length");
    assert_eq!(shown, 41);
    browser.value("location.hash = '#/file/part7/f222.c:5'; 0");
    browser.wait_for("document.querySelector('#L5.current') !== null");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// One long file: its lines are made when they come into sight.
#[test]
fn a_long_file_is_shown_in_parts() {
    if !have("chromium") {
        return;
    }
    let shop = Workshop::new();
    let filler = "/* nothing */\n".repeat(50_000);
    shop.write(
        "long.c",
        format!("{filler}int main(void)\n{{\n    return 0;\n}}\n"),
    );
    shop.must(&["gcc", "-g", "long.c", "-o", "long"]);
    assert_eq!(
        shop.headcount(&["run", "--modules", "main", "--", "./long"])
            .status,
        Some(0)
    );
    let page = page(&shop);
    let mut browser = Browser::start();
    browser.open(&page, "#/file/long.c:50003", &LIGHT);
    browser.wait_for("document.querySelector('#L50003.current') !== null");
    let made = browser.value("document.querySelectorAll('.line').length");
    assert!(made.as_u64().unwrap() < 3000, "{made}");
    let seen = browser.value(
        "(() => { const { top } = document.getElementById('L50003').getBoundingClientRect(); \
         return top > 0 && top < innerHeight; })()",
    );
    assert_eq!(seen, true);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn equal_runs_make_equal_pages() {
    let (shop, page) = new_ways();
    let first = fs::read(&page).unwrap();
    shop.forget();
    // Where the C library asks for random numbers, its counts differ.
    let count = |name: &str| {
        shop.forget();
        shop.headcount(&["run", "--modules", "main", "--", "./ways"]);
        shop.headcount(&["html", "-o", name]);
        fs::read(shop.path(name)).unwrap()
    };
    assert_eq!(count("a.html"), count("b.html"));
    assert!(first.len() > 1000);
}

#[test]
fn without_instructions_the_page_is_smaller_and_only_narrows() {
    let (shop, page) = ways();
    let whole = fs::metadata(page).unwrap().len();
    let size = |words: &[&str]| {
        let said = shop.headcount(&[&["html", "-o", "part.html"], words].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
        fs::metadata(shop.path("part.html")).unwrap().len()
    };
    assert!(size(&["--no-asm"]) < whole);
    assert!(size(&["--only", "ways.c"]) < size(&["--no-asm"]));
    let said = shop.headcount(&["html", "-o", "/nowhere/x.html"]);
    assert_eq!(said.status, Some(2));
    assert!(
        said.stderr.contains("/nowhere/x.html: cannot be written"),
        "{said:?}"
    );
}

/// A program that spends its time where it says.
const BUSY: &str = "\
static volatile unsigned long sink;
__attribute__((noinline)) static void inner(void)
{
    for (int i = 0; i < 100000; i++)
        sink += i;
}
__attribute__((noinline)) static void outer(void)
{
    inner();
}
int main(void)
{
    for (int i = 0; i < 1500; i++)
        outer();
    return 0;
}
";

#[test]
fn the_time_is_shown_as_a_call_tree_that_can_be_walked() {
    if !have("chromium") {
        return;
    }
    let shop = Workshop::new();
    shop.write("busy.c", BUSY);
    shop.must(&[
        "gcc",
        "-g",
        "-O1",
        "-fno-optimize-sibling-calls",
        "-o",
        "busy",
        "busy.c",
    ]);
    for words in [
        &["run", "-q", "--", "./busy"][..],
        &["time", "-q", "-F", "4000", "--", "./busy"],
        &["html", "-o", "page.html"],
    ] {
        let said = shop.headcount(words);
        assert_eq!(said.status, Some(0), "{said:?}");
    }
    let page = shop.path("page.html");
    let mut browser = Browser::start();
    for (width, dark) in [(1280, false), (1280, true), (400, false)] {
        browser.open(&page, "#/time", &Screen { width, dark });
        let wrong = browser.value(include_str!("browser/accessible.js"));
        assert_eq!(wrong, Value::Array(Vec::new()), "{width} {dark}");
    }
    browser.open(&page, "#/time", &LIGHT);
    browser.wait_for("document.querySelector('tbody .long') !== null");
    let hottest = browser.text("document.querySelector('tbody .long').textContent");
    assert_eq!(hottest, "inner");
    let frames = "[...document.querySelectorAll('.call')].map((it) => it.textContent)";
    let seen = browser.value(frames).to_string();
    assert!(seen.contains("outer") && seen.contains("inner"), "{seen}");
    // Choosing a frame makes it as wide as the page, and one above it leads back.
    let click =
        "[...document.querySelectorAll('.call')].find((it) => it.textContent === 'outer').click()";
    browser.value(&format!("{click} ?? null"));
    let words = browser.text("document.querySelector('.flame + p').textContent");
    assert!(words.starts_with("outer: "), "{words}");
    browser.value("document.querySelector('.call').click() ?? null");
    let words = browser.text("document.querySelector('.flame + p').textContent");
    assert!(words.starts_with("all threads: "), "{words}");
    // Beside each line of the source is what the report says of it.
    for (width, dark) in [(1280, false), (1280, true), (400, false)] {
        browser.open(&page, "#/file/busy.c", &Screen { width, dark });
        let wrong = browser.value(include_str!("browser/accessible.js"));
        assert_eq!(wrong, Value::Array(Vec::new()), "{width} {dark}");
    }
    let shown = browser.value(
        "[...openFile.times].map(([line, it]) => [String(line), String(it.samples), String(it.time)])",
    );
    let mut wanted = csv(&shop, "line");
    wanted.retain(|row| row[0] == "busy.c" && row[5] != "0");
    let wanted: Vec<[&str; 3]> = wanted
        .iter()
        .map(|row| [1, 5, 6].map(|it| row[it].as_str()))
        .collect();
    assert!(!wanted.is_empty());
    assert_eq!(shown, serde_json::json!(wanted));
    let texts =
        "[...document.querySelectorAll('.line .time')].filter((it) => it.textContent).length";
    assert_eq!(browser.value(texts), wanted.len());
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// A line that runs once, one that runs half a million times, and one that does in one instruction.
const OFTEN_C: &str = "\
int main(void)
{
    volatile int once = 1;
    int sum = 0;
    for (int i = 0; i < 500000; i++)
        sum += i;
    return once - 1;
}
";

#[test]
fn the_colour_of_a_count_says_how_large_it_is() {
    if !have("chromium") {
        return;
    }
    let shop = Workshop::new();
    shop.write("often.c", OFTEN_C);
    shop.must(&["gcc", "-g", "often.c", "-o", "often"]);
    shop.headcount(&["run", "--modules", "main", "--", "./often"]);
    let page = page(&shop);
    let mut browser = Browser::start();
    browser.open(&page, "#/file/often.c", &LIGHT);
    let mut heat = |line: u32| {
        let heat =
            format!("Number(document.getElementById('L{line}').style.getPropertyValue('--heat'))");
        browser.value(&heat).as_f64().unwrap()
    };
    assert!(heat(3) < 0.01, "{}", heat(3));
    assert!(heat(5) > 0.99 && heat(6) > 0.99, "{} {}", heat(5), heat(6));
}

#[test]
fn the_field_to_find_things_says_what_is_shown() {
    if !have("chromium") {
        return;
    }
    let (_shop, page) = ways();
    let mut browser = Browser::start();
    browser.open(page, "", &LIGHT);
    browser.press("/");
    browser.ask("Input.insertText", serde_json::json!({ "text": "never_" }));
    browser.wait_for("content.textContent.includes('never_called')");
    browser.value("content.querySelector('tbody a').focus() ?? 0");
    browser.value("content.querySelector('tbody a').click() ?? 0");
    browser.wait_for("content.querySelector('h1').textContent === 'never_called'");
    assert_eq!(browser.text("findField.value"), "");
    browser.value("history.back() ?? 0");
    browser.wait_for("findField.value === 'never_'");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn what_was_chosen_in_a_view_is_there_again_on_the_way_back() {
    if !have("chromium") {
        return;
    }
    let (_shop, page) = ways();
    let mut browser = Browser::start();
    browser.open(page, "#/functions", &LIGHT);
    let click = |what: &str, text: &str| {
        format!(
            "[...document.querySelectorAll('{what}')].find((it) => it.textContent === '{text}').click() ?? 0"
        )
    };
    browser.value(&click(".choices button", "All"));
    browser.value(&click("th button", "Instructions"));
    browser.value(&click("th button", "Instructions"));
    browser.value("content.querySelector('.filter').focus() ?? 0");
    browser.ask("Input.insertText", serde_json::json!({ "text": "ways.c" }));
    let names =
        "[...content.querySelectorAll('tbody tr')].map((it) => it.querySelector('a').textContent)";
    browser.wait_for(&format!("{names}.length === 3"));
    let before = browser.value(names);
    assert_eq!(before, serde_json::json!(["never_called", "ways", "main"]));
    browser.value(&click("tbody a", "main"));
    browser.wait_for("content.querySelector('h1').textContent === 'main'");
    browser.value("history.back() ?? 0");
    browser.wait_for("content.querySelector('h1').textContent === 'Functions'");
    assert_eq!(browser.value(names), before);
    assert_eq!(
        browser.text("content.querySelector('.filter').value"),
        "ways.c"
    );
    let sorted = "document.querySelector('[aria-sort=ascending]').textContent";
    assert_eq!(browser.text(sorted), "Instructions");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn the_call_tree_and_what_is_hot_are_those_of_the_report() {
    if !have("chromium") {
        return;
    }
    let (shop, page) = ways();
    let mut browser = Browser::start();
    browser.open(page, "", &LIGHT);
    let hottest = browser.value(
        "(({ file, line, executed, text }) => [file.path, String(line), String(executed), text])(index.hotLines[0])",
    );
    let mut lines = csv(shop, "line");
    lines.retain(|row| row[0] == "ways.c");
    lines.sort_by_key(|row| std::cmp::Reverse(row[3].parse::<u64>().unwrap()));
    let number: usize = lines[0][1].parse().unwrap();
    let text = WAYS_C.lines().nth(number - 1).unwrap();
    let wanted = serde_json::json!([lines[0][0], lines[0][1], lines[0][3], text]);
    assert_eq!(hottest, wanted);

    // Nothing is lost between the root and what it calls.
    let sums = browser.value(
        "callGraph().then((it) => [it.total, it.entries.reduce((sum, { cost }) => sum + cost, 0), \
         index.total.executed])",
    );
    assert_eq!((&sums[0], &sums[1]), (&sums[2], &sums[2]), "{sums}");
    let said = shop.headcount(&["report", "--callers", "ways", "--format", "csv"]);
    let estimate: u64 = said
        .stdout
        .lines()
        .skip(1)
        .map(|row| row.rsplit(',').next().unwrap().parse::<u64>().unwrap())
        .sum();
    let inclusive =
        "callGraph().then((it) => it.nodes.find((it) => it.it?.name === 'ways').inclusive)";
    assert_eq!(browser.value(inclusive), estimate, "{said:?}");
    browser.open(page, "#/tree", &LIGHT);
    let frames = "[...document.querySelectorAll('.call')].map((it) => it.textContent)";
    let seen = browser.value(frames).to_string();
    assert!(seen.contains("\"main\""), "{seen}");

    browser.open(page, "#/function/ways", &LIGHT);
    let shown =
        "[...document.querySelectorAll('.line .number')].map((it) => Number(it.textContent))";
    assert_eq!(
        browser.value(shown),
        serde_json::json!((3..=13).collect::<Vec<_>>())
    );
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Functions in a circle, that share one cost.
const CIRCLE_C: &str = r#"
static volatile int sum;
static void spend(int) __attribute__((always_inline));
static inline void spend(int n) { while (n--) sum++; }
int a(int), b(int), c(int), d(int);
int a(int n) { spend(20); return n ? 1 + b(n - 1) : 0; }
int b(int n) { spend(80); return n ? 1 + c(n - 1) : 0; }
int c(int n) { spend(10); return n ? 1 + d(n - 1) : 0; }
int d(int n) { spend(40); return n ? 1 + a(n - 1) : 0; }
int main(void) { return a(100) != 100; }
"#;

#[test]
fn of_functions_that_share_one_cost_the_hottest_comes_first() {
    if !have("chromium") {
        return;
    }
    let shop = Workshop::new();
    shop.write("circle.c", CIRCLE_C);
    shop.must(&["gcc", "-g", "-O0", "circle.c", "-o", "circle"]);
    let run = ["run", "-q", "--modules", "main", "./circle"];
    assert_eq!(shop.headcount(&run).status, Some(0));
    let said = shop.headcount(&["html", "-o", "circle.html"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let mut browser = Browser::start();
    browser.open(&shop.path("circle.html"), "#/tree", &LIGHT);
    let names = "[...document.querySelectorAll('tbody tr')].map((it) => it.cells[0].textContent)\
                 .filter((it) => it.length === 1)";
    assert_eq!(
        browser.value(names),
        serde_json::json!(["b", "d", "a", "c"])
    );
}

#[test]
fn a_page_of_two_profiles_tells_what_changed() {
    if !have("chromium") {
        return;
    }
    let shop = Workshop::new();
    for (turns, profile) in [("30", "old.db"), ("60", "new.db")] {
        shop.write("ways.c", WAYS_C.replace("i < 30", &format!("i < {turns}")));
        shop.must(&["gcc", "-g", "-O1", "ways.c", "-o", "ways"]);
        let run = ["run", "-q", "--modules", "main", "-o", profile, "./ways"];
        assert_eq!(shop.headcount(&run).status, Some(3));
    }
    let said = shop.headcount(&["html", "old.db", "new.db", "-o", "changes.html"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let said = shop.headcount(&["diff", "old.db", "new.db", "--format", "json"]);
    let diff: Value = serde_json::from_str(&said.stdout).unwrap();
    let mut wanted = Vec::new();
    for it in diff["functions"].as_array().unwrap() {
        let executed = &it["executed"];
        wanted.push(serde_json::json!([
            it["function"],
            executed["old"],
            executed["new"]
        ]));
    }
    assert!(wanted.len() > 1, "{diff:#}");
    let page = shop.path("changes.html");
    let mut browser = Browser::start();
    for (width, dark) in [(1280, false), (1280, true), (400, false)] {
        browser.open(&page, "#/changes", &Screen { width, dark });
        let wrong = browser.value(include_str!("browser/accessible.js"));
        assert_eq!(wrong, Value::Array(Vec::new()), "{width} {dark}");
    }
    let shown = browser
        .value("changes().then((all) => all.functions.map((it) => [it.name, it.old, it.now]))");
    assert_eq!(shown, Value::Array(wanted));
    let first = browser.text("content.querySelector('tbody a.name').textContent");
    assert_eq!(first, "main");
    let line = browser.text("content.querySelector('tbody a.place').textContent");
    assert!(line.starts_with("ways.c:"), "{line}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// `twice` has code of its own, and copies in two functions.
const INLINED: &str = "\
int twice(int x)
{
    return x * x ^ 2 * x + 1;
}
__attribute__((noinline)) int thrice(int x)
{
    return twice(x) + x;
}
int (*volatile pointer)(int) = twice;
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += twice(sum + i) + thrice(i);
    return pointer(sum) == 1;
}
";

#[test]
fn a_function_says_where_it_was_inlined_and_what_its_copies_executed() {
    if !have("chromium") {
        return;
    }
    let shop = Workshop::new();
    shop.write("in.c", INLINED);
    shop.must(&["gcc", "-g", "-O2", "-fno-unroll-loops", "in.c", "-o", "in"]);
    shop.headcount(&["run", "-q", "--modules", "main", "--", "./in"]);
    let page = page(&shop);
    let mut browser = Browser::start();
    browser.open(&page, "#/function/twice", &LIGHT);
    let rows = browser.value(
        "[...document.querySelectorAll('table')].filter((it) => it.caption.textContent === 'Inlined into') \
         .flatMap((it) => [...it.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)))",
    );
    let rows: Vec<Vec<String>> = serde_json::from_value(rows).unwrap();
    let mut callers: Vec<&str> = rows.iter().map(|it| it[2].as_str()).collect();
    callers.sort_unstable();
    assert_eq!(callers, ["main", "thrice"], "{rows:?}");
    let copies: u64 = rows.iter().map(|it| number(&it[0])).sum();
    // Line 3 was executed in the function itself, or in a copy.
    let line = csv(&shop, "line").into_iter();
    let line = line.filter(|it| it[1] == "3").map(|it| number(&it[3]));
    let own = csv(&shop, "instruction").into_iter();
    let own = own.filter(|it| it[1] == "twice" && !it[4].starts_with("ret"));
    let own: u64 = own.map(|it| number(&it[3])).sum();
    assert_eq!(copies + own, line.sum::<u64>(), "{rows:?}");
    browser.open(&page, "#/function/thrice", &LIGHT);
    let text = browser.text("document.querySelector('main').textContent");
    assert!(text.contains("Inlined here (1)"), "{text}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap()
}
