//! What goes into a profile comes out again, whatever happens to the writer.

mod samples;

use headcount_profile::{Added, Problem, Profile, RunSelection, merge};
use samples::{large, max, run};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn integrity(path: &Path) -> String {
    rusqlite::Connection::open(path)
        .unwrap()
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap()
}

#[test]
fn what_goes_in_comes_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let module = max();
    let mut profile = Profile::create_or_open(&path).unwrap();
    let stored = profile.add(std::slice::from_ref(&module), &run("a", &module, 5));
    assert_eq!(stored.unwrap(), Added::New(1));
    drop(profile);

    let loaded = Profile::open(&path)
        .unwrap()
        .load(&RunSelection::Last)
        .unwrap();
    assert_eq!(loaded.counted.len(), 1);
    assert_eq!(loaded.counted[0].module, module);
    let given = run("a", &module, 5);
    assert_eq!(loaded.counted[0].functions, given.modules[0].functions);
    let info = &loaded.runs[0];
    assert_eq!(info.command, given.command);
    assert_eq!(
        (info.started, info.ended, info.status),
        (given.started, given.ended, given.status)
    );
    assert_eq!(
        (&info.cpu, &info.host, &info.notes, &info.processes),
        (&given.cpu, &given.host, &given.notes, &given.processes)
    );
    assert_eq!(info.modules, [module.path]);
    // One file, and no journal beside it.
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}

#[test]
fn no_profile_is_made_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (link, target) = (folder.path().join("p.db"), folder.path().join("far.db"));
    std::os::unix::fs::symlink("far.db", &link).unwrap();
    let told = |path: &Path| {
        let error = Profile::create_or_open(path).err().unwrap().to_string();
        assert!(error.contains("p.db: is a link to far.db"), "{error}");
    };
    told(&link);
    assert!(!target.exists());
    // Somebody's empty file is no profile either.
    std::fs::write(&target, "").unwrap();
    told(&link);
    assert_eq!(std::fs::read(&target).unwrap(), b"");
    // Nor is what a link leads to by way of another.
    let first = folder.path().join("first.db");
    std::os::unix::fs::symlink("p.db", &first).unwrap();
    let error = Profile::create_or_open(&first).err().unwrap().to_string();
    assert!(error.contains("first.db: is a link to p.db"), "{error}");
    // Where a profile is, it may be reached as the user likes.
    drop(Profile::create_or_open(&target).unwrap());
    let module = max();
    for (path, key) in [(&link, "a"), (&first, "b")] {
        let mut profile = Profile::create_or_open(path).unwrap();
        let added = profile.add(std::slice::from_ref(&module), &run(key, &module, 5));
        added.unwrap();
    }
    assert_eq!(Profile::open(&link).unwrap().runs().unwrap().len(), 2);
    // Nor does a folder that is reached through a link stand in the way.
    let other = folder.path().join("folder");
    std::os::unix::fs::symlink(".", &other).unwrap();
    drop(Profile::create_or_open(&other.join("new.db")).unwrap());
    assert!(folder.path().join("new.db").exists());
}

#[test]
fn runs_are_chosen_and_added_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = Profile::create_or_open(&folder.path().join("p.db")).unwrap();
    let module = max();
    for (key, count) in [("a", 1), ("b", 10), ("c", 100)] {
        profile
            .add(std::slice::from_ref(&module), &run(key, &module, count))
            .unwrap();
    }
    let first_block =
        |which| profile.load(&which).unwrap().counted[0].functions[0].blocks[0].unwrap();
    assert_eq!(first_block(RunSelection::Last), 100);
    assert_eq!(first_block(RunSelection::All), 111);
    assert_eq!(first_block(RunSelection::These(vec![3, 1, 3])), 101);
    let error = profile
        .load(&RunSelection::These(vec![1, 9]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("has no run 9"), "{error}");
    assert_eq!(profile.runs().unwrap().len(), 3);
}

#[test]
fn no_run_is_stored_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = Profile::create_or_open(&folder.path().join("p.db")).unwrap();
    let module = max();
    let it = run("a", &module, 1);
    let modules = [module];
    assert_eq!(profile.add(&modules, &it).unwrap(), Added::New(1));
    assert_eq!(profile.add(&modules, &it).unwrap(), Added::AlreadyThere);
    assert_eq!(profile.runs().unwrap().len(), 1);
}

#[test]
fn two_writers_at_once_both_get_their_runs_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let module = max();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (path, module) = (&path, &module);
            scope.spawn(move || {
                for n in 0..10 {
                    let mut profile = Profile::create_or_open(path).unwrap();
                    let it = run(&format!("{writer}.{n}"), module, 1);
                    profile.add(std::slice::from_ref(module), &it).unwrap();
                }
            });
        }
    });
    let loaded = Profile::open(&path)
        .unwrap()
        .load(&RunSelection::All)
        .unwrap();
    assert_eq!(loaded.runs.len(), 40);
    assert_eq!(loaded.counted[0].functions[0].blocks[0], Some(40));
    assert_eq!(integrity(&path), "ok");
}

/// Not a test of its own: what `a_killed_writer_leaves_whole_runs` starts and kills.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Ok(path) = std::env::var("HEADCOUNT_TEST_VICTIM") else {
        return;
    };
    for n in 0.. {
        let module = large(2000, &n.to_string());
        let mut profile = Profile::create_or_open(path.as_ref()).unwrap();
        let it = run(&format!("{n}"), &module, 3);
        profile.add(&[module], &it).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_whole_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let mut journals = 0;
    for attempt in 0..12 {
        let _ = std::fs::remove_file(&path);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_writes_until_it_is_killed"])
            .env("HEADCOUNT_TEST_VICTIM", &path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(60 + 37 * attempt));
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        journals += u32::from(folder.path().join("p.db-journal").exists());

        let mut profile = Profile::create_or_open(&path).unwrap();
        let runs = profile.runs().unwrap().len() as u64;
        if runs > 0 {
            let loaded = profile.load(&RunSelection::All).unwrap();
            assert_eq!(loaded.counted.len() as u64, runs);
            let whole = |counts: &headcount_model::FunctionCounts| {
                counts
                    .blocks
                    .iter()
                    .chain(&counts.edges)
                    .all(|n| *n == Some(3))
            };
            assert!(
                loaded
                    .counted
                    .iter()
                    .flat_map(|it| &it.functions)
                    .all(whole)
            );
        }
        let module = max();
        profile
            .add(std::slice::from_ref(&module), &run("after", &module, 1))
            .unwrap();
        drop(profile);
        assert_eq!(integrity(&path), "ok");
    }
    assert!(
        journals > 0,
        "no writer was killed in the middle of its work"
    );
}

#[test]
fn files_that_are_no_profiles_are_named_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.db");
    let missing = Profile::open(&path).err().unwrap();
    assert!(matches!(missing.problem, Problem::NotFound), "{missing}");
    assert!(!path.exists());

    for garbage in [
        &b"x"[..],
        b"\x7fELF and so on",
        &[0; 5000],
        &[0xff; 100_000],
    ] {
        std::fs::write(&path, garbage).unwrap();
        for open in [Profile::open, Profile::create_or_open] {
            let error = open(&path).err().unwrap();
            assert!(matches!(error.problem, Problem::NotAProfile), "{error}");
            assert!(error.to_string().contains("it.db: not a headcount profile"));
        }
        assert_eq!(std::fs::read(&path).unwrap(), garbage);
    }

    std::fs::remove_file(&path).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE runs (a)").unwrap();
    drop(other);
    let error = Profile::create_or_open(&path).err().unwrap();
    assert!(matches!(error.problem, Problem::NotAProfile), "{error}");

    let error = Profile::create_or_open(folder.path()).err().unwrap();
    assert!(matches!(error.problem, Problem::NotAProfile), "{error}");
    let nowhere = folder.path().join("no/such/folder.db");
    let error = Profile::create_or_open(&nowhere).err().unwrap();
    assert!(
        error.to_string().contains("folder does not exist"),
        "{error}"
    );
}

#[test]
fn an_empty_file_becomes_a_profile_but_holds_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.db");
    std::fs::write(&path, "").unwrap();
    let error = Profile::open(&path).err().unwrap();
    assert!(matches!(error.problem, Problem::NoRuns), "{error}");
    let profile = Profile::create_or_open(&path).unwrap();
    let error = profile.load(&RunSelection::Last).unwrap_err();
    assert!(matches!(error.problem, Problem::NoRuns), "{error}");
}

#[test]
fn another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.db");
    drop(Profile::create_or_open(&path).unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 2).unwrap();
    drop(db);
    let error = Profile::create_or_open(&path).err().unwrap().to_string();
    assert!(error.contains("its format is 2"), "{error}");
    assert!(error.contains("count again"), "{error}");
}

#[test]
fn a_table_that_is_not_ours_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.db");
    drop(Profile::create_or_open(&path).unwrap());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch("DROP TABLE files; CREATE VIEW files AS SELECT 1 AS module")
        .unwrap();
    drop(db);
    let error = Profile::open(&path).err().unwrap();
    assert!(matches!(error.problem, Problem::Damaged(_)), "{error}");
}

/// The example in `schema.sql`.
#[test]
fn anyone_can_ask_the_file_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.db");
    let module = max();
    let mut profile = Profile::create_or_open(&path).unwrap();
    profile
        .add(std::slice::from_ref(&module), &run("a", &module, 5))
        .unwrap();
    let schema = include_str!("../src/schema.sql");
    let lines = schema.lines().skip_while(|line| !line.contains("SELECT"));
    let query: Vec<&str> = lines
        .map(|line| line.trim_start_matches("-- "))
        .take_while(|line| *line != "--")
        .collect();
    let db = rusqlite::Connection::open(&path).unwrap();
    let largest: (String, i64) = db
        .query_row(&query.join("\n"), [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(largest, ("main".into(), 4));
}

/// Whatever is cut off or changed, the answer is an error or the truth about another profile;
/// never a panic.
#[test]
fn truncated_and_scribbled_profiles_do_not_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.db");
    let module = large(200, "x");
    let mut profile = Profile::create_or_open(&path).unwrap();
    profile
        .add(std::slice::from_ref(&module), &run("a", &module, 1))
        .unwrap();
    drop(profile);
    let whole = std::fs::read(&path).unwrap();
    let mut refused = 0;
    let mut read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let loaded = Profile::open(&path).and_then(|it| it.load(&RunSelection::All));
        refused += u32::from(loaded.is_err());
        loaded
    };
    // The last page may hold nothing that could be missed.
    for pages in 0..whole.len() / 8192 - 1 {
        let cut = read(&whole[..pages * 8192 + 100]);
        assert!(cut.is_err(), "{pages} pages of {}", whole.len() / 8192);
    }
    let mut seed = 1_u64;
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..4 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 20) as usize % bytes.len();
            bytes[at] ^= (seed >> 56) as u8 | 1;
        }
        let _ = read(&bytes);
    }
    assert!(refused > 50);
}

/// Not a test of its own: what `a_read_only_profile_can_be_read` starts as another user.
#[test]
fn child_that_may_only_read() {
    let Ok(path) = std::env::var("HEADCOUNT_TEST_READER") else {
        return;
    };
    let mut profile = Profile::open(path.as_ref()).unwrap();
    assert_eq!(profile.load(&RunSelection::All).unwrap().runs.len(), 1);
    let module = max();
    let error = profile
        .add(std::slice::from_ref(&module), &run("b", &module, 1))
        .unwrap_err();
    assert!(matches!(error.problem, Problem::ReadOnly), "{error}");
}

#[test]
fn a_read_only_profile_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.db");
    let module = max();
    Profile::create_or_open(&path)
        .unwrap()
        .add(std::slice::from_ref(&module), &run("a", &module, 1))
        .unwrap();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&path, 0o444);
    mode(folder.path(), 0o555);
    let reader = folder.path().join("reader");
    let root = std::fs::copy(std::env::current_exe().unwrap(), &reader).is_ok();
    let mut command = match root {
        // Root may write anywhere: become nobody, who can still reach a copy of this program.
        true => Command::new(&reader),
        false => Command::new(std::env::current_exe().unwrap()),
    };
    if root {
        command.uid(65534);
    }
    let status = command
        .args(["--exact", "child_that_may_only_read"])
        .env("HEADCOUNT_TEST_READER", &path)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    mode(folder.path(), 0o755);
    assert!(status.success());
}

#[test]
fn merging_takes_every_run_once_and_skips_what_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (one, two) = (max(), large(50, "two"));
    for (name, keys, module) in [
        ("1.db", ["a", "b"], &one),
        ("2.db", ["b", "c"], &one),
        ("3.db", ["d", "e"], &two),
    ] {
        let mut profile = Profile::create_or_open(&file(name)).unwrap();
        for key in keys {
            profile
                .add(std::slice::from_ref(module), &run(key, module, 1))
                .unwrap();
        }
    }
    std::fs::write(file("bad.db"), "no profile at all").unwrap();
    let mut torn = std::fs::read(file("3.db")).unwrap();
    torn.truncate(torn.len() - 8192);
    std::fs::write(file("torn.db"), torn).unwrap();

    let inputs = ["1.db", "bad.db", "2.db", "torn.db", "missing.db", "3.db"].map(file);
    let mut seen = 0;
    let merged = merge(&inputs, &file("all.db"), |_| seen += 1).unwrap();
    assert_eq!((seen, merged.added, merged.already_there), (6, 5, 1));
    assert_eq!(merged.broken.len(), 3, "{:?}", merged.broken);
    let all = Profile::open(&file("all.db")).unwrap();
    let loaded = all.load(&RunSelection::All).unwrap();
    let counts = |n: usize| loaded.counted[n].functions[0].blocks[0];
    assert_eq!((counts(0), counts(1)), (Some(2), Some(3))); // /bin/large, /home/u/max
    assert_eq!(loaded.counted[1].module, one);

    // Again, and with the output among the inputs: nothing new.
    let mut inputs = inputs.to_vec();
    inputs.push(file("all.db"));
    let merged = merge(&inputs, &file("all.db"), |_| ()).unwrap();
    assert_eq!((merged.added, merged.already_there), (0, 6));

    let merged = merge(&[file("bad.db")], &file("none.db"), |_| ()).unwrap();
    assert_eq!(merged.broken.len(), 1);
    assert!(!file("none.db").exists());
}

#[test]
fn a_name_that_sqlite_would_interpret_is_just_a_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in [":memory:", "file:x.db?mode=memory", "a b'\"%.db"] {
        let path = folder.path().join(name);
        drop(Profile::create_or_open(&path).unwrap());
        assert!(path.is_file(), "{name}");
    }
}

#[test]
fn a_large_module_is_stored_in_a_moment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.db");
    let module = large(50_000, "x");
    let it = run("a", &module, 3);
    let begin = Instant::now();
    let mut profile = Profile::create_or_open(&path).unwrap();
    profile.add(std::slice::from_ref(&module), &it).unwrap();
    let stored = begin.elapsed();
    let loaded = profile.load(&RunSelection::All).unwrap();
    let read = begin.elapsed() - stored;
    assert_eq!(loaded.counted[0].module, module);
    eprintln!("stored in {stored:?}, read in {read:?}");
    assert!(stored < Duration::from_secs(10), "{stored:?}");
}

#[test]
fn what_is_removed_is_gone_and_its_space_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.db");
    let mut profile = Profile::create_or_open(&path).unwrap();
    let (small, big) = (max(), large(20_000, "big"));
    for key in ["1", "2", "3"] {
        profile
            .add(std::slice::from_ref(&small), &run(key, &small, 5))
            .unwrap();
        profile
            .add(
                std::slice::from_ref(&big),
                &run(&format!("{key} big"), &big, 1),
            )
            .unwrap();
    }
    let before = profile.load(&RunSelection::These(vec![1, 3, 5])).unwrap();
    let size = || path.metadata().unwrap().len();
    let full = size();

    // A number that is not there: nothing is removed.
    let error = profile.remove(&vec![2, 77].into()).unwrap_err();
    assert!(
        matches!(error.problem, Problem::NoSuchRun { wanted: 77 }),
        "{error}"
    );
    assert_eq!((profile.runs().unwrap().len(), size()), (6, full));

    let removed = profile.remove(&vec![2].into()).unwrap();
    assert_eq!((removed.runs, removed.modules), (1, 0));
    let removed = profile.remove(&vec![4, 6].into()).unwrap();
    assert_eq!((removed.runs, removed.modules), (2, 1));
    assert!(
        removed.bytes > 0 && size() * 2 < full,
        "{} of {full}",
        size()
    );
    assert_eq!(profile.load(&RunSelection::All).unwrap(), before);
    assert_eq!(integrity(&path), "ok");
    for table in ["processes", "threads", "loaded"] {
        let count = |sql: &str| -> i64 {
            let db = rusqlite::Connection::open(&path).unwrap();
            db.query_row(sql, [], |row| row.get(0)).unwrap()
        };
        let orphans = match table {
            "processes" => "SELECT count(*) FROM processes WHERE run NOT IN (SELECT id FROM runs)",
            "threads" => {
                "SELECT count(*) FROM threads WHERE process NOT IN (SELECT id FROM processes)"
            }
            _ => "SELECT count(*) FROM loaded WHERE process NOT IN (SELECT id FROM processes)",
        };
        assert_eq!(count(orphans), 0, "{table}");
    }

    // What is left can be added to, and the module that was removed is as new.
    profile
        .add(std::slice::from_ref(&big), &run("4 big", &big, 1))
        .unwrap();
    let loaded = profile.load(&RunSelection::Last).unwrap();
    assert_eq!(loaded.counted[0].module, big);
}

#[test]
fn the_last_commands_can_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut profile = Profile::create_or_open(&folder.path().join("p.db")).unwrap();
    for (key, batch) in [("1", "a"), ("2", "b"), ("3", "b"), ("4", "c"), ("5", "c")] {
        let mut run = run(key, &max(), 5);
        run.batch = batch.into();
        profile.add(&[max()], &run).unwrap();
    }
    let left = |profile: &Profile| -> Vec<i64> {
        profile.runs().unwrap().iter().map(|it| it.id).collect()
    };
    assert_eq!(profile.remove_all_but_last(7).unwrap().runs, 0);
    assert_eq!(profile.remove_all_but_last(2).unwrap().runs, 1);
    assert_eq!(left(&profile), [2, 3, 4, 5]);
    assert_eq!(profile.remove_all_but_last(1).unwrap().runs, 2);
    assert_eq!(left(&profile), [4, 5]);
    let removed = profile.remove_all_but_last(0).unwrap();
    assert_eq!((removed.runs, removed.modules), (2, 1));
}
