//! The verbs that read a profile, from end to end.

use crate::sample;

use assert_cmd::Command;
use headcount_model::Shift;
use headcount_profile::Profile;
use std::path::Path;

/// What `headcount` answers in a folder: standard output, standard error, status.
fn headcount(folder: &Path, words: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_headcount"))
        .args(words)
        .current_dir(folder)
        .env("COLUMNS", "100")
        .env_remove("CC")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.replace(folder.to_str().unwrap(), "FOLDER")
    };
    let status = output.status.code().unwrap();
    (text(output.stdout), text(output.stderr), status)
}

/// The result of a command that succeeds and has nothing to complain of.
fn quietly(folder: &Path, words: &[&str]) -> String {
    let (stdout, stderr, status) = headcount(folder, words);
    assert_eq!((stderr.as_str(), status), ("", 0), "{words:?}");
    stdout
}

fn snapshot(name: &str, words: &[&str]) {
    let folder = sample::folder();
    insta::assert_snapshot!(name, quietly(folder.path(), words));
}

#[test]
fn report_by_every_unit() {
    for unit in [
        "module",
        "file",
        "function",
        "line",
        "block",
        "instruction",
        "edge",
    ] {
        snapshot(&format!("report-{unit}"), &["report", "--by", unit]);
    }
}

#[test]
fn report_as_json() {
    snapshot("report-json", &["report", "--format", "json"]);
    snapshot(
        "report-edge-json",
        &[
            "report", "--by", "edge", "--only", "main", "--format", "json",
        ],
    );
}

#[test]
fn report_as_csv_has_exactly_the_columns_of_the_contract() {
    let folder = sample::folder();
    for (unit, columns) in [
        ("instruction", "module,function,address,count,text"),
        ("block", "module,function,address,instructions,count"),
        ("edge", "module,function,from,to,kind,count"),
        ("line", "file,line,count,executed,exactness"),
        (
            "function",
            "module,function,file,line,calls,executed,instructions,never",
        ),
        (
            "file",
            "file,executed,instructions,never,blocks_executed,blocks,blocks_never",
        ),
        ("module", "module,executed,instructions,never"),
    ] {
        let (csv, stderr, status) =
            headcount(folder.path(), &["report", "--by", unit, "--format", "csv"]);
        assert_eq!(csv.lines().next(), Some(columns));
        assert_eq!(status, 0);
        assert_eq!(
            stderr,
            "headcount: not counted: 1; the text and JSON reports say what and why\n"
        );
        insta::assert_snapshot!(format!("csv-{unit}"), csv);
    }
}

#[test]
fn report_can_be_sorted_cut_and_narrowed() {
    let folder = sample::folder();
    let csv = |words: &[&str]| {
        let mut all = vec!["report", "--format", "csv"];
        all.extend(words);
        headcount(folder.path(), &all).0
    };
    let lines = csv(&["--by", "line", "--sort", "count", "--top", "2"]);
    assert_eq!(
        lines,
        "file,line,count,executed,exactness\nmax.c,7,100,299,exact\nmax.c,8,99,198,exact\n"
    );
    let never = csv(&["--by", "line", "--never"]);
    assert_eq!(
        never,
        "file,line,count,executed,exactness\nmax.c,16,0,0,exact\n"
    );
    let only = csv(&["--by", "function", "--only", "ma?n", "--no-demangle"]);
    assert_eq!(only.lines().count(), 2);
    assert!(only.contains(",main,max.c,13,1,4,5,1"));
    let names = csv(&["--by", "function", "--sort", "function", "--no-demangle"]);
    assert!(names.lines().nth(1).unwrap().contains(",_Z3maxPii,"));
    let (_, stderr, status) = headcount(folder.path(), &["report", "--sort", "heat"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("`heat` is no column of this report; sort by module, function"));
}

#[test]
fn runs_are_added_up() {
    let folder = sample::folder();
    let calls = |runs: &str| {
        let words = [
            "report", "--only", "main", "--runs", runs, "--format", "json",
        ];
        let report: serde_json::Value =
            serde_json::from_str(&quietly(folder.path(), &words)).unwrap();
        report["rows"][0]["calls"].as_u64().unwrap()
    };
    assert_eq!(
        (calls("last"), calls("all"), calls("1,2"), calls("1")),
        (1, 2, 2, 1)
    );
    let (_, stderr, status) = headcount(folder.path(), &["report", "--runs", "3"]);
    assert_eq!(status, 2);
    assert_eq!(
        stderr,
        "headcount: headcount.db: has no run 3; `headcount runs` lists the runs it has\n"
    );
}

#[test]
fn a_profile_can_be_named_in_two_ways() {
    let folder = sample::folder();
    let other = tempfile::tempdir().unwrap();
    let profile = folder.path().join("headcount.db");
    let profile = profile.to_str().unwrap();
    let plain = quietly(other.path(), &["report", profile]);
    assert_eq!(plain, quietly(other.path(), &["report", "-i", profile]));
    let (_, stderr, status) = headcount(other.path(), &["report"]);
    assert_eq!(status, 2);
    assert!(stderr.starts_with("headcount: headcount.db: no such profile; count something"));
    assert!(!other.path().join("headcount.db").exists());
}

#[test]
fn output_goes_to_the_file_that_is_named() {
    let folder = sample::folder();
    for words in [vec!["report"], vec!["annotate"], vec!["runs"]] {
        let direct = quietly(folder.path(), &words);
        let mut to_file = words.clone();
        to_file.extend(["-o", "out"]);
        assert_eq!(quietly(folder.path(), &to_file), "");
        let file = std::fs::read_to_string(folder.path().join("out")).unwrap();
        assert_eq!(
            file.replace(folder.path().to_str().unwrap(), "FOLDER"),
            direct
        );
        let mut to_stdout = words.clone();
        to_stdout.extend(["-o", "-"]);
        assert_eq!(quietly(folder.path(), &to_stdout), direct);
    }
}

#[test]
fn the_same_counts_make_the_same_bytes() {
    let (one, two) = (sample::folder(), sample::folder());
    for unit in ["function", "line", "instruction", "edge"] {
        for format in ["text", "csv", "json"] {
            let words = ["report", "--by", unit, "--format", format];
            assert_eq!(headcount(one.path(), &words), headcount(two.path(), &words));
        }
    }
}

#[test]
fn annotate_shows_source_with_counts() {
    snapshot("annotate", &["annotate"]);
    snapshot("annotate-function", &["annotate", "main"]);
    snapshot("annotate-asm", &["annotate", "--asm", "max()"]);
}

#[test]
fn annotate_understands_programs_files_and_functions() {
    let folder = sample::folder();
    let whole = quietly(folder.path(), &["annotate"]);
    for name in ["max", "max.c", "./max.c", "*.c"] {
        assert_eq!(quietly(folder.path(), &["annotate", name]), whole, "{name}");
    }
    let (_, stderr, status) = headcount(folder.path(), &["annotate", "ma"]);
    assert_eq!(status, 2);
    let answer = "headcount: nothing counted is called ma: no function, source file or module; did you mean \
         max, main, max.c, max(int*, int)?\n";
    assert_eq!(stderr, answer);
}

#[test]
fn annotate_says_which_source_is_missing() {
    let folder = sample::folder();
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(folder.path().join("max.c"), elsewhere.join("max.c")).unwrap();
    let (stdout, stderr, status) = headcount(folder.path(), &["annotate"]);
    assert_eq!((stdout.as_str(), status), ("", 2));
    assert!(stderr.starts_with("headcount: source not found: max.c; --source DIR says where\n"));
    let found = quietly(folder.path(), &["annotate", "--source", "elsewhere"]);
    assert!(found.contains("for (int i = 1; i < n; i++)"));
    let (asm, _, status) = headcount(folder.path(), &["annotate", "--asm"]);
    assert_eq!(status, 0);
    assert!(asm.contains("jge"));
}

#[test]
fn annotate_warns_of_a_source_that_changed() {
    let folder = sample::folder();
    let source = std::fs::File::options()
        .append(true)
        .open(folder.path().join("max.c"))
        .unwrap();
    let later = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(4_000_000_001);
    source.set_modified(later).unwrap();
    let (_, stderr, status) = headcount(folder.path(), &["annotate"]);
    assert_eq!(status, 0);
    assert_eq!(
        stderr,
        "headcount: max.c: changed after the run began; counts may stand beside other lines\n"
    );
}

#[test]
fn annotate_draws_histograms() {
    for scale in ["full", "scaled"] {
        snapshot(
            &format!("annotate-histogram-{scale}"),
            &["annotate", "--histogram", scale, "max.c"],
        );
    }
    let folder = sample::folder();
    let words = ["annotate", "--histogram", "full", "--asm"];
    let (_, stderr, status) = headcount(folder.path(), &words);
    assert_eq!(status, 2);
    assert!(stderr.contains("cannot be used with"), "{stderr}");
}

/// The sample with one more run, which did not count everything: nothing of `main`, no edge, and
/// of `max` all but one block. It stopped counting one block at a limit, and was killed before
/// `max` returned.
fn partial_folder() -> tempfile::TempDir {
    let folder = sample::folder();
    let mut run = sample::run("third", 7, 137);
    run.notes = vec!["The program was killed.".into()];
    let [max, main] = run.modules[0].functions.as_mut_slice() else {
        unreachable!()
    };
    max.blocks[4] = None;
    max.edges.fill(None);
    max.at_least = vec![1];
    max.shifts = vec![Shift {
        block: 5,
        from: 1,
        delta: -1,
    }];
    main.blocks.fill(None);
    main.edges.fill(None);
    let mut profile = Profile::open(&folder.path().join("headcount.db")).unwrap();
    profile.add(&[sample::module(folder.path())], &run).unwrap();
    folder
}

#[test]
fn what_was_not_counted_is_never_shown_as_zero() {
    let folder = partial_folder();
    let mut all = String::new();
    for unit in [
        "module",
        "file",
        "function",
        "line",
        "block",
        "instruction",
        "edge",
    ] {
        for format in ["text", "csv", "json"] {
            let words = ["report", "--all", "--by", unit, "--format", format];
            let (shown, stderr, _) = headcount(folder.path(), &words);
            all.push_str(&format!("$ {}\n{shown}{stderr}\n", words.join(" ")));
        }
    }
    insta::assert_snapshot!("partial-report", all);
}

#[test]
fn a_partial_run_is_annotated_explained_and_listed() {
    let folder = partial_folder();
    let mut all = String::new();
    for words in [
        &["annotate", "max.c"][..],
        &["annotate", "--asm"],
        &["annotate", "main"],
        &["explain", "max"],
        &["explain", "main"],
        &["runs"],
        &["runs", "--format", "csv"],
        &["report", "--runs", "all"],
    ] {
        let (shown, stderr, status) = headcount(folder.path(), words);
        all.push_str(&format!(
            "$ {}\n{shown}{stderr}status {status}\n\n",
            words.join(" ")
        ));
    }
    insta::assert_snapshot!("partial-other-verbs", all);
}

#[test]
fn explain_tells_how_a_function_is_counted() {
    snapshot("explain", &["explain", "max"]);
}

#[test]
fn explain_tells_why_a_function_is_not_counted() {
    let folder = sample::folder();
    let (stdout, _, status) = headcount(folder.path(), &["explain", "start*"]);
    assert_eq!(status, 1);
    assert_eq!(
        stdout,
        "start\\x1b[2J (start.s:7) in FOLDER/max\n  is not counted: it uses a macro, `SAVE_ALL`\n\n"
    );
    let (_, stderr, status) = headcount(folder.path(), &["explain", "nothing"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("no function that was counted is called nothing;"));
}

#[test]
fn runs_are_listed() {
    snapshot("runs", &["runs"]);
    snapshot("runs-csv", &["runs", "--format", "csv"]);
    snapshot("runs-json", &["runs", "--format", "json"]);
}

#[test]
fn profiles_are_merged() {
    let (one, two) = (sample::folder(), sample::folder());
    let other = two.path().join("headcount.db");
    let words = [
        "merge",
        "headcount.db",
        other.to_str().unwrap(),
        "-o",
        "all.db",
    ];
    let (_, stderr, status) = headcount(one.path(), &words);
    assert_eq!(status, 0);
    assert_eq!(stderr, "headcount: all.db: 2 runs added, 2 already there\n");

    std::fs::write(one.path().join("bad.db"), "bad").unwrap();
    let (_, stderr, status) = headcount(
        one.path(),
        &["merge", "bad.db", "headcount.db", "-o", "more.db"],
    );
    assert_eq!(status, 1);
    assert_eq!(
        stderr,
        "headcount: left out: bad.db: not a headcount profile; name another file\n\
         headcount: more.db: 2 runs added\n"
    );
    let (_, _, status) = headcount(one.path(), &["merge", "bad.db", "-o", "none.db"]);
    assert_eq!(status, 2);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = sample::folder();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_headcount"))
        .args(["report", "--by", "instruction"])
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn nothing_in_names_reaches_the_output_raw() {
    let folder = sample::folder();
    for words in [
        vec!["report"],
        vec!["report", "--format", "json"],
        vec!["annotate"],
        vec!["explain", "*"],
        vec!["runs"],
    ] {
        let (stdout, stderr, _) = headcount(folder.path(), &words);
        assert!(!format!("{stdout}{stderr}").contains('\u{1b}'), "{words:?}");
    }
}

#[test]
fn colour_is_for_those_who_want_it() {
    let folder = sample::folder();
    let annotate = |name: &str, value: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_headcount"))
            .args(["annotate", "max.c"])
            .current_dir(folder.path())
            .env_remove("NO_COLOR")
            .env(name, value)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = quietly(folder.path(), &["annotate", "max.c"]);
    assert_eq!(annotate("NO_COLOR", "1"), plain);
    let coloured = annotate("CLICOLOR_FORCE", "1");
    assert!(coloured.contains("\u{1b}[1m\u{1b}[31m"), "{coloured}");
    // What stands in names is still no command.
    assert!(coloured.contains("start\\x1b[2J"), "{coloured}");
}

#[test]
fn output_that_does_not_fit_is_an_error() {
    let folder = sample::folder();
    for verb in ["report", "annotate", "runs"] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_headcount"))
            .arg(verb)
            .current_dir(folder.path())
            .stdout(full)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{verb}");
        let talk = String::from_utf8(output.stderr).unwrap();
        let expected = "headcount: standard output: cannot be written: No space left";
        assert!(talk.starts_with(expected), "{talk}");
    }
}
