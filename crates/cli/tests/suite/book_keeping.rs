//! A run that was counted is never lost: whatever becomes of the program's files meanwhile, and of
//! the profile.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::workshop::started::Started;
use crate::workshop::{self, HEADCOUNT, Said, Workshop, have};

/// Calls `visit` as often as the argument says.
const VISITS_C: &str = "\
#include <stdlib.h>
static volatile int sink;
__attribute__((noinline)) void visit(int i) { sink = i; }
int main(int argc, char **argv)
{
    for (int i = 0; i < atoi(argv[1]); i++)
        visit(i);
    return 3;
}
";

/// Both ways to count, with what is needed to count all modules.
const ENGINES: [&[&str]; 2] = [
    &["--modules", "all"],
    &["--engine", "breakpoint", "--modules", "*visits*"],
];

/// Where nothing can be stored.
const NOWHERE: &str = "no/such/folder.db";

fn visits() -> Workshop {
    Workshop::with("visits", VISITS_C, &["-O1"])
}

impl Workshop {
    /// Counts what a shell runs. It ends with this status.
    fn count_script(&self, words: &[&str], script: &str, status: i32) -> Said {
        let said = self.counted(&[words, &["--", "sh", "-c", script]].concat());
        assert_eq!(said.status, Some(status), "{script}: {said:?}");
        said
    }

    /// The modules of the last run in which this function ran, each with how often.
    fn modules_with(&self, function: &str) -> Vec<(String, u64)> {
        let words = ["--by", "function", "--only", function, "--format", "csv"];
        let text = self.report(&words);
        let rows = text.lines().skip(1).map(|row| row.split(','));
        let rows = rows.map(|mut row| {
            let module = row.next().unwrap().to_owned();
            (module, row.nth(3).unwrap().parse().unwrap_or(0))
        });
        let mut rows: Vec<_> = rows.filter(|(_, calls)| *calls > 0).collect();
        rows.sort();
        rows
    }

    /// The name that the modules of a file have in reports.
    fn module(&self, name: &str) -> String {
        self.path(name)
            .canonicalize()
            .unwrap()
            .display()
            .to_string()
    }

    /// The folder of the only run that is not stored.
    fn run_folder(&self) -> PathBuf {
        let mut folders = self.counter_files();
        folders.retain(|it| it.extension().is_some_and(|it| it == "run"));
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.remove(0)
    }

    /// Counts the program so that its counts are not stored.
    fn count_and_keep(&self, words: &[&str]) -> PathBuf {
        let said = self.counted(&[&["-o", NOWHERE], words].concat());
        assert_eq!(said.status, Some(3), "{said:?}");
        self.run_folder()
    }

    /// The command that a complaint names, done; it must succeed.
    fn do_what_it_says(&self, said: &Said) {
        let (_, rest) = said.stderr.split_once('`').expect("a command");
        let (command, _) = rest.split_once('`').expect("its end");
        let words = command.strip_prefix("headcount ").expect("one of ours");
        let words: Vec<&str> = words.split(' ').collect();
        let collected = self.headcount(&words);
        assert_eq!(collected.status, Some(0), "{command}: {collected:?}");
    }
}

#[test]
fn counts_are_kept_beside_the_profile_while_a_program_runs() {
    let shop = visits();
    fs::create_dir(shop.path("elsewhere")).unwrap();
    let listed = |words: &[&str]| {
        let said = shop.headcount(&[words, &["--", "ls", "-a"]].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
        said.stdout
    };
    let alone = workshop::said(shop.command("ls").arg("-a")).stdout;
    assert_eq!(listed(&["run", "-q", "-o", "elsewhere/it.db"]), alone);
    // What a killed headcount leaves there is found there.
    let keeps = "kill -9 $PPID; sleep 60";
    let killed = shop.headcount(&["run", "-q", "-o", "elsewhere/it.db", "sh", "-c", keeps]);
    assert_eq!(killed.status, None, "{killed:?}");
    let kept = shop.path("elsewhere/it.counts");
    assert!(kept.exists());
    let runs = shop.headcount(&["runs", "elsewhere/it.db"]);
    assert_eq!(runs.stdout.matches("sleep 60").count(), 1, "{runs:?}");
    assert!(!kept.exists());
    // It may have been killed before it wrote anything.
    for journal in [None, Some(""), Some("{\"run\":{\"vers")] {
        let folder = kept.join("999999999-1.run");
        fs::create_dir_all(&folder).unwrap();
        if let Some(text) = journal {
            fs::write(folder.join("journal"), text).unwrap();
        }
        let again = shop.headcount(&["runs", "elsewhere/it.db"]);
        assert_eq!(
            (again.stdout, again.stderr),
            (runs.stdout.clone(), String::new())
        );
        assert!(!kept.exists(), "{journal:?}");
    }
    // Nobody else may choose where they go.
    fs::create_dir(shop.path("trap")).unwrap();
    std::os::unix::fs::symlink("../trap", &kept).unwrap();
    let seen = listed(&["run", "-q", "-o", "elsewhere/it.db"]);
    assert!(seen.contains("headcount.counts"), "{seen}");
}

#[test]
fn a_program_under_two_names_is_one_module() {
    let shop = visits();
    shop.must(&["cp", "visits", "othervisits"]);
    for engine in ENGINES {
        shop.forget();
        shop.count_script(engine, "./visits 2; ./othervisits 5", 3);
        let both = [(shop.module("visits"), 7)];
        assert_eq!(shop.modules_with("visit"), both, "{engine:?}");
    }
}

#[test]
fn what_was_kept_of_a_program_under_two_names_is_collected() {
    let shop = visits();
    shop.must(&["cp", "visits", "othervisits"]);
    for engine in ENGINES {
        shop.forget();
        let words = [&["-o", NOWHERE], engine].concat();
        shop.count_script(&words, "./visits 2; ./othervisits 5", 3);
        let said = shop.headcount(&["collect"]);
        assert_eq!(said.status, Some(0), "{engine:?}: {said:?}");
        let both = [(shop.module("visits"), 7)];
        assert_eq!(shop.modules_with("visit"), both, "{engine:?}");
        assert!(shop.counter_files().is_empty());
    }
}

#[test]
fn a_library_in_two_folders_is_one_module() {
    let shop = Workshop::with(
        "loads",
        "#include <dlfcn.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void (*visit)(int) = dlsym(dlopen(argv[i], RTLD_NOW), \"visit\");
        visit(i);
    }
    return 3;
}
",
        &[],
    );
    fs::create_dir(shop.path("a")).unwrap();
    fs::create_dir(shop.path("b")).unwrap();
    shop.build("a/libvisits.so", VISITS_C, &["-O1", "-shared", "-fPIC"]);
    shop.must(&["cp", "a/libvisits.so", "b"]);
    for engine in ENGINES {
        shop.forget();
        let words = ["./loads", "a/libvisits.so", "b/libvisits.so"];
        let said = shop.counted(&[engine, &words].concat());
        assert_eq!(said.status, Some(3), "{engine:?}: {said:?}");
        let both = [(shop.module("a/libvisits.so"), 2)];
        assert_eq!(shop.modules_with("visit"), both, "{engine:?}");
    }
}

#[test]
fn a_program_that_is_replaced_by_its_copy_is_one_module() {
    let shop = visits();
    for engine in ENGINES {
        shop.forget();
        let script = "./visits 2; cp visits copy; mv copy visits; ./visits 5";
        shop.count_script(engine, script, 3);
        let both = [(shop.module("visits"), 7)];
        assert_eq!(shop.modules_with("visit"), both, "{engine:?}");
    }
}

#[test]
fn different_programs_with_the_same_build_id_are_told_apart() {
    let shop = Workshop::new();
    let flags = ["-O1", "-Wl,--build-id=0x1234"];
    shop.build("visits", VISITS_C, &flags);
    // As long, with the same names and the same blocks.
    let other = VISITS_C.replace("sink = i", "sink = ~i");
    shop.build(
        "othervisits",
        &VISITS_C.replace("sink = i", "sink = -i"),
        &flags,
    );
    shop.build("stillothervisits", &other, &flags);
    shop.must(&["cp", "visits", "strippedvisits"]);
    shop.must(&["strip", "strippedvisits"]);
    for engine in ENGINES {
        shop.forget();
        let script = "./visits 2; ./othervisits 5; ./stillothervisits 9; ./strippedvisits 4";
        shop.count_script(engine, script, 3);
        let mut each = [
            (shop.module("visits"), 2),
            (shop.module("othervisits"), 5),
            (shop.module("stillothervisits"), 9),
        ];
        each.sort();
        assert_eq!(shop.modules_with("visit"), each, "{engine:?}");
    }
}

/// What builds do to a program's file while others run.
const CHANGES: [&str; 6] = [
    "rm F",
    "cp other copy; mv copy F",
    ": > F",
    "cp other F",
    "printf x >> F",
    "dd if=/dev/zero of=F bs=64 seek=64 count=64 conv=notrunc 2>/dev/null",
];

#[test]
fn a_program_that_is_changed_when_it_has_ended_is_counted() {
    let shop = visits();
    shop.build("other", "int main(void) { return 0; }", &[]);
    shop.must(&["cp", "visits", "safe"]);
    for engine in ENGINES {
        for change in CHANGES {
            shop.forget();
            shop.must(&["cp", "--remove-destination", "safe", "visits"]);
            let name = shop.module("visits");
            let change = change.replace('F', "visits");
            let said = shop.count_script(engine, &format!("./visits 2; {change}; exit 3"), 3);
            assert_eq!(said.stderr, "", "{change}");
            assert_eq!(shop.modules_with("visit"), [(name, 2)], "{change}");
        }
    }
}

#[test]
fn a_library_that_is_changed_while_it_is_loaded_is_counted() {
    let shop = Workshop::with(
        "loads",
        "#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    void (*visit)(int) = dlsym(dlopen(argv[1], RTLD_NOW), \"visit\");
    visit(1);
    visit(2);
    system(argv[2]);
    _exit(3);
}
",
        &[],
    );
    shop.build("other", "int main(void) { return 0; }", &[]);
    shop.build("safe", VISITS_C, &["-O1", "-shared", "-fPIC"]);
    for engine in ENGINES {
        for change in CHANGES {
            shop.forget();
            shop.must(&["cp", "--remove-destination", "safe", "libvisits.so"]);
            let name = shop.module("libvisits.so");
            let change = change.replace('F', "libvisits.so");
            let words = ["./loads", "./libvisits.so", &change];
            let said = shop.counted(&[engine, &words].concat());
            assert_eq!(said.status, Some(3), "{change}: {said:?}");
            assert_eq!(said.stderr, "", "{change}");
            assert_eq!(shop.modules_with("visit"), [(name, 2)], "{change}");
        }
    }
}

#[test]
fn a_program_that_was_changed_during_a_run_that_is_not_stored_is_collected() {
    let shop = visits();
    shop.build("other", "int main(void) { return 0; }", &[]);
    shop.must(&["cp", "visits", "safe"]);
    for engine in ENGINES {
        for change in CHANGES {
            shop.forget();
            shop.must(&["cp", "--remove-destination", "safe", "visits"]);
            let name = shop.module("visits");
            let change = change.replace('F', "visits");
            let words = [&["-o", NOWHERE], engine].concat();
            let said = shop.count_script(&words, &format!("./visits 2; {change}; exit 3"), 3);
            shop.do_what_it_says(&said);
            let profile = ["folder-2.db"];
            let found = shop.functions_of(&profile);
            assert_eq!(found["visit"].calls, 2, "{change}");
            let modules = shop.report(&["-i", "folder-2.db", "--by", "module", "--format", "csv"]);
            assert!(modules.contains(&name), "{change}: {modules}");
            fs::remove_file(shop.path("folder-2.db")).unwrap();
        }
    }
}

#[test]
fn a_program_that_is_written_over_and_run_again_is_two_modules() {
    let shop = Workshop::new();
    let flags = ["-O1", "-Wl,--build-id=0x1234"];
    shop.build("safe", VISITS_C, &flags);
    shop.build("other", &VISITS_C.replace("sink = i", "sink = -i"), &flags);
    for engine in ENGINES {
        shop.forget();
        shop.must(&["cp", "--remove-destination", "safe", "visits"]);
        let name = shop.module("visits");
        let script = "./visits 2; cat other > visits; ./visits 5; cat safe > visits; ./visits 6";
        shop.count_script(engine, script, 3);
        let each = [(name.clone(), 5), (name, 8)];
        assert_eq!(shop.modules_with("visit"), each, "{engine:?}");
    }
}

#[test]
fn a_program_that_others_own_is_counted_when_it_is_changed() {
    // Who is not its owner gets no lease on a file.
    let shop = visits();
    shop.build("other", "int main(void) { return 0; }", &[]);
    shop.must(&["cp", "visits", "safe"]);
    for change in CHANGES {
        shop.forget();
        shop.must(&["cp", "--remove-destination", "safe", "visits"]);
        let name = shop.module("visits");
        let change = change.replace('F', "visits");
        let script = format!(
            "chown 12345 visits && exec setpriv --bounding-set=-lease --inh-caps=-lease '{HEADCOUNT}' \
             run -q -- sh -c './visits 2; {change}; exit 3'"
        );
        let said = shop.run(&["sh", "-c", &script]);
        if said.stderr.contains("chown") || said.stderr.contains("setpriv") {
            eprintln!("skipped: we may not do that here: {said:?}");
            return;
        }
        assert_eq!(
            (said.status, said.stderr.as_str()),
            (Some(3), ""),
            "{change}"
        );
        assert_eq!(shop.modules_with("visit"), [(name, 2)], "{change}");
    }
}

#[test]
fn a_program_that_only_its_own_processes_can_see_is_counted() {
    let shop = visits();
    let script = "mount -t tmpfs none /mnt && cp visits /mnt && /mnt/visits 2";
    let words = ["unshare", "-rm", "sh", "-c", script];
    if !have("unshare") || shop.run(&words).status != Some(3) {
        eprintln!("skipped: no mounts of our own can be had here");
        return;
    }
    let said = shop.counted(&[&["--"], &words[..]].concat());
    assert_eq!(said.status, Some(3), "{said:?}");
    assert_eq!(shop.modules_with("visit"), [("/mnt/visits".to_owned(), 2)]);
}

#[test]
fn a_library_that_was_replaced_before_we_came_is_counted_or_named() {
    let shop = Workshop::new();
    shop.build("libvisits.so", VISITS_C, &["-O1", "-shared", "-fPIC"]);
    shop.build(
        "server",
        "#include <stdio.h>
#include <unistd.h>
void visit(int);
int main(void)
{
    puts(\"started\");
    fflush(stdout);
    for (int i = 0;; i++) {
        visit(i);
        usleep(1000);
    }
}
",
        &["./libvisits.so"],
    );
    let server = Started::new(&mut shop.command(shop.path("server")));
    let name = shop.module("libvisits.so");
    shop.must(&["cp", "libvisits.so", "copy"]);
    shop.must(&["mv", "copy", "libvisits.so"]);
    let pid = server.child.id().to_string();
    let said = shop.headcount(&["attach", "--for", "1s", &pid]);
    assert_eq!(said.status, Some(0), "{said:?}");
    // The kernel hands a file without a name to those alone who may do everything.
    let reason = "its file was removed or replaced before headcount came";
    let is_named = said
        .stderr
        .contains(&format!("{name} is not counted: {reason}."));
    let is_counted = matches!(&shop.modules_with("visit")[..], [(path, _)] if *path == name);
    assert!(is_named != is_counted, "{said:?}");
}

/// More than is read at once when a program has ended.
const LARGE_C: &str = "char large[17 << 20] = { 1 };\n";

#[test]
fn a_large_program_that_is_removed_is_reported_later() {
    let source = format!("{LARGE_C}{VISITS_C}");
    let shop = Workshop::with("visits", &source, &["-O1"]).with_own_cache();
    shop.build("other", "int main(void) { return 0; }", &[]);
    shop.must(&["cp", "visits", "safe"]);
    for change in CHANGES {
        shop.forget();
        let _ = fs::remove_dir_all(shop.path(".cache"));
        shop.must(&["cp", "--remove-destination", "safe", "visits"]);
        let name = shop.module("visits");
        let change = change.replace('F', "visits");
        shop.count_script(&[], &format!("./visits 2; {change}; exit 3"), 3);
        assert!(shop.run_folder().exists());
        assert_eq!(shop.modules_with("visit"), [(name, 2)], "{change}");
    }
    // One that is removed later is lost, and nothing else.
    shop.forget();
    let _ = fs::remove_dir_all(shop.path(".cache"));
    shop.must(&["cp", "--remove-destination", "safe", "visits"]);
    shop.count_script(&[], "./visits 2", 3);
    fs::remove_file(shop.path("visits")).unwrap();
    let said = shop.headcount(&["report", "--by", "module"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.contains("libc.so.6"), "{said:?}");
    assert!(said.stdout.contains("visits: No such file"), "{said:?}");
}

#[test]
fn counts_survive_a_kill_when_the_program_was_written_over() {
    let shop = Workshop::with(
        "rewrites",
        "#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    system(\"./visits 2; : > visits\");
    puts(\"started\");
    fflush(stdout);
    getchar();
    return 0;
}
",
        &[],
    );
    shop.build("visits", VISITS_C, &["-O1"]);
    let name = shop.module("visits");
    let mut command = shop.command(HEADCOUNT);
    let mut headcount = Started::new(command.args(["run", "-q", "./rewrites"]));
    headcount.child.kill().unwrap();
    headcount.child.wait().unwrap();
    assert_eq!(shop.modules_with("visit"), [(name, 2)]);
}

#[test]
fn a_module_that_is_lost_takes_no_other_with_it() {
    let shop = visits();
    shop.must(&["cp", "visits", "safe"]);
    let folder = shop.count_and_keep(&["./visits", "2"]);
    shop.build("visits", "int main(void) { return 0; }", &[]);
    let said = shop.headcount(&["report", "--by", "module"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.contains("libc.so.6"), "{said:?}");
    let lost = format!("{}: was rebuilt since", shop.module("visits"));
    assert!(said.stdout.contains(&lost), "{said:?}");
    assert!(!folder.exists());
}

#[test]
fn a_run_of_which_nothing_is_left_waits_for_its_program() {
    let shop = visits();
    shop.must(&["cp", "visits", "safe"]);
    let folder = shop.count_and_keep(&["--modules", "main", "./visits", "2"]);
    fs::remove_file(shop.path("visits")).unwrap();
    let said = shop.headcount(&["collect"]);
    assert_eq!(said.status, Some(2), "{said:?}");
    assert!(said.stderr.contains("visits: No such file"), "{said:?}");
    assert!(folder.exists());
    shop.must(&["cp", "safe", "visits"]);
    let said = shop.headcount(&["collect"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert_eq!(shop.calls("visit"), Some(2));
}

#[test]
fn trouble_with_the_profile_is_none_of_the_programs() {
    let shop = visits();
    let words = |profile: &'static str| ["--modules", "main", "-o", profile, "./visits", "2"];
    shop.write("garbage.db", "garbage");
    // The format's number is in SQLite's header.
    assert_eq!(shop.counted(&words("later.db")).status, Some(3));
    let later = fs::File::options().write(true).open(shop.path("later.db"));
    later
        .unwrap()
        .write_all_at(&99_u32.to_be_bytes(), 60)
        .unwrap();
    // What is there stays as it was.
    let content = |profile: &str| match profile.starts_with("/dev") {
        true => None,
        false => fs::read(shop.path(profile)).ok(),
    };
    for (profile, what) in [
        ("garbage.db", "not a headcount profile"),
        ("later.db", "another version made it"),
        (NOWHERE, "its folder does not exist"),
        ("/dev/full", "not a headcount profile"),
    ] {
        let before = content(profile);
        let said = shop.counted(&words(profile));
        assert_eq!(said.status, Some(3), "{said:?}");
        assert!(said.stderr.contains(what), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        shop.do_what_it_says(&said);
        let stem = Path::new(profile).file_stem().unwrap().to_str().unwrap();
        let found = shop.functions_of(&[&format!("{stem}-2.db")]);
        assert_eq!(found["visit"].calls, 2);
        assert!(shop.counter_files().is_empty(), "{profile}");
        assert_eq!(content(profile), before);
    }
    // Who asks for nothing but the counts must be told.
    let said = shop.headcount(&["stat", "-o", "garbage.db", "./visits", "2"]);
    assert_eq!(said.status, Some(125), "{said:?}");
}

#[test]
fn a_full_disk_is_none_of_the_programs() {
    if !have("unshare") {
        return;
    }
    let shop = visits();
    fs::create_dir(shop.path("small")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=8m none small && head -c 8160k /dev/zero > small/filler || exit 77
         '{HEADCOUNT}' run -q --modules main -o small/x.db ./visits 2; echo status $?
         export HEADCOUNT_DIR=large
         '{HEADCOUNT}' run -q --modules main -o small/x.db ./visits 2; echo status $?
         rm small/filler; '{HEADCOUNT}' collect -o small/x.db; cp small/x.db large.db"
    );
    let said = shop.run(&["unshare", "-rm", "sh", "-c", &script]);
    if !said.stdout.contains("status") {
        eprintln!("skipped: no small disk can be made here: {said:?}");
        return;
    }
    assert!(said.stdout.starts_with("status 3\nstatus 3\n"), "{said:?}");
    // Not even the counts have room beside the profile; elsewhere, they have.
    let ended = "counting ended before the program did: No space left on device";
    assert_eq!(said.stderr.matches(ended).count(), 1, "{said:?}");
    assert!(said.stderr.contains("no room on the disk"), "{said:?}");
    let command = "`headcount collect large -o small/x.db` takes them";
    assert!(said.stderr.contains(command), "{said:?}");
    assert_eq!(shop.functions_of(&["large.db"])["visit"].calls, 2);
}

/// Every way in which a file of a run's folder can be broken.
fn damages(whole: u64) -> Vec<Option<u64>> {
    vec![None, Some(0), Some(whole / 2), Some(whole - 1)]
}

fn damage(path: &Path, length: Option<u64>) {
    match length {
        None => fs::remove_file(path).unwrap(),
        Some(length) => {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_len(length).unwrap();
        }
    }
}

#[test]
fn counts_that_are_damaged_keep_nobody_from_reading() {
    let shop = visits();
    let said = shop.counted(&["--modules", "main", "./visits", "7"]);
    assert_eq!(said.status, Some(3), "{said:?}");
    let before = shop.report(&[]);
    shop.must(&["cp", "headcount.db", "before.db"]);
    let folder = shop.count_and_keep(&["--modules", "main", "./visits", "2"]);
    shop.must(&["cp", "-a", folder.to_str().unwrap(), "whole"]);
    for name in ["windows", "routines", "journal"] {
        let whole = fs::metadata(shop.path("whole").join(name)).unwrap().len();
        for length in damages(whole) {
            let _ = fs::remove_dir_all(shop.path("headcount.counts"));
            fs::create_dir(shop.path("headcount.counts")).unwrap();
            shop.must(&["cp", "-a", "whole", folder.to_str().unwrap()]);
            damage(&folder.join(name), length);
            let said = shop.headcount(&["report"]);
            assert_eq!(said.status, Some(0), "{name} {length:?}: {said:?}");
            // That of a headcount that was killed may end anywhere.
            if name == "journal" && !folder.exists() {
                let note = "headcount was stopped while it counted";
                assert!(said.stdout.contains(note), "{name} {length:?}: {said:?}");
                shop.must(&["cp", "before.db", "headcount.db"]);
                continue;
            }
            assert_eq!(said.stdout, before, "{name} {length:?}");
            let complaint = format!(
                "headcount.counts/{}: cannot be collected",
                file_name(&folder)
            );
            assert_eq!(said.stderr.matches(&complaint).count(), 1, "{said:?}");
            assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        }
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[test]
fn what_is_no_folder_of_counts_keeps_nobody_from_reading() {
    let shop = visits();
    let said = shop.counted(&["--modules", "main", "./visits", "7"]);
    assert_eq!(said.status, Some(3), "{said:?}");
    let before = shop.report(&[]);
    shop.write("headcount.counts", "a file where a folder should be");
    let said = shop.headcount(&["report"]);
    assert_eq!((said.status, said.stdout), (Some(0), before));
    assert!(said.stderr.contains("headcount.counts: cannot be read"));
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
}

/// Makes children that all have the same process number, as many as the argument says.
const REUSES_C: &str = "\
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) void child(void) { sink = 1; }
int main(int argc, char **argv)
{
    int first = fork();
    if (first == 0)
        _exit(0);
    waitpid(first, 0, 0);
    for (int i = 0; i < atoi(argv[1]); i++) {
        struct clone_args arguments = {
            .exit_signal = SIGCHLD, .set_tid = (unsigned long)&first, .set_tid_size = 1 };
        long pid = syscall(SYS_clone3, &arguments, sizeof arguments);
        if (pid < 0)
            return errno == EEXIST ? 78 : 77;
        if (pid == 0) {
            child();
            _exit(0);
        }
        waitpid(pid, 0, 0);
    }
    return 0;
}
";

#[test]
fn processes_that_have_the_same_number_are_several() {
    let shop = Workshop::with("reuses", REUSES_C, &["-O1"]);
    if shop.run(&["reuses", "1"]).status == Some(77) {
        eprintln!("skipped: process numbers cannot be chosen here");
        return;
    }
    for engine in ["detour", "breakpoint"] {
        let words = [
            "run",
            "--modules",
            "main",
            "--engine",
            engine,
            "./reuses",
            "20",
        ];
        let said = shop.headcount(&words);
        assert_eq!(said.status, Some(0), "{said:?}");
        assert!(said.stderr.contains("22 processes, 22 threads"), "{said:?}");
        assert_eq!(shop.calls("child"), Some(20));
        let runs = shop.must(&[HEADCOUNT, "runs", "--json"]);
        assert!(runs.contains("\"processes\": 22"), "{runs}");
    }
}
