//! What newcomers run into: it is named, with its cure, and printed once.

use crate::workshop::{ANSWER, HEADCOUNT, Said, Workshop, have, is_root, said};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_program_without_lines_is_shown_as_instructions() {
    let shop = Workshop::with_sources();
    shop.must(&["gcc", "main.c", "helper.c", "-o", "nodebug"]);
    shop.headcount(&["run", "--modules", "main", "--", "./nodebug"]);
    for (words, name) in [
        (&["annotate", "nodebug"][..], "nodebug"),
        (&["annotate", "helper"], "helper"),
    ] {
        let said = shop.headcount(words);
        assert_eq!(
            (said.stdout.as_str(), said.status),
            ("", Some(2)),
            "{said:?}"
        );
        let told = format!(
            "headcount: nothing to show: nobody knows the source of {name}, for it was built without \
             -g; `headcount annotate --asm {name}` shows its instructions\n"
        );
        assert_eq!(said.stderr, told);
        let said = shop.headcount(&["annotate", "--asm", name]);
        assert!(said.stdout.contains("100 calls"), "{said:?}");
    }
}

/// What somebody with no rights sees, in a folder below that of the workshop.
fn as_nobody(shop: &Workshop, folder: &str, words: &[&str]) -> Said {
    let mut command = shop.command("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.current_dir(shop.path(folder));
    said(command.args(words))
}

/// A program in a folder that nobody may write to, and beside it one that everybody may.
fn read_only() -> Workshop {
    let shop = Workshop::with_sources().with_own_cache();
    fs::create_dir(shop.path("closed")).unwrap();
    fs::create_dir(shop.path("open")).unwrap();
    shop.must(&["gcc", "-g", "main.c", "helper.c", "-o", "closed/prog"]);
    let allow = |path: &str, mode| {
        fs::set_permissions(shop.path(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    allow("", 0o777);
    allow("open", 0o777);
    allow("closed", 0o755);
    shop
}

#[test]
fn a_folder_that_cannot_be_written_is_no_obstacle_if_the_profile_is_elsewhere() {
    if !is_root() {
        return;
    }
    let shop = read_only();
    let run = [HEADCOUNT, "run", "--modules", "main"];
    let there = ["-o", "../open/it.db", "--", "./prog"];
    let counted = as_nobody(&shop, "closed", &[&run[..], &there].concat());
    assert_eq!(counted.status, Some(0), "{counted:?}");
    assert!(
        counted.stderr.contains("added to ../open/it.db"),
        "{counted:?}"
    );
    let report = as_nobody(&shop, "open", &[HEADCOUNT, "report", "it.db"]);
    assert!(report.stdout.contains("helper"), "{report:?}");
    assert!(!shop.path("open/it.counts").exists());
}

#[test]
fn where_nothing_can_be_kept_counts_wait_elsewhere_and_nothing_is_lost() {
    if !is_root() {
        return;
    }
    let shop = read_only();
    let run = [HEADCOUNT, "run", "--modules", "main", "--", "./prog"];
    let counted = as_nobody(&shop, "closed", &run);
    assert_eq!((counted.stdout.as_str(), counted.status), (ANSWER, Some(0)));
    assert!(counted.stderr.contains("headcount.db: "), "{counted:?}");
    // What it says is to be done can be done here.
    let (_, rest) = counted.stderr.split_once("`headcount ").unwrap();
    let (command, _) = rest.split_once('`').unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    let collected = as_nobody(&shop, "closed", &[&[HEADCOUNT], &words[..]].concat());
    assert_eq!(collected.status, Some(0), "{command}: {collected:?}");
    let profile = words.last().unwrap();
    let report = as_nobody(&shop, "closed", &[HEADCOUNT, "report", profile]);
    fs::remove_file(profile).unwrap();
    assert!(report.stdout.contains("helper"), "{report:?}");
}

#[test]
fn where_nothing_can_be_kept_samples_are_kept_elsewhere() {
    if !is_root() {
        return;
    }
    let shop = read_only();
    let time = [HEADCOUNT, "time", "--", "./prog"];
    let timed = as_nobody(&shop, "closed", &time);
    assert_eq!((timed.stdout.as_str(), timed.status), (ANSWER, Some(0)));
    let (_, rest) = timed.stderr.split_once("`headcount report ").unwrap();
    let (profile, _) = rest.split_once('`').unwrap();
    let report = as_nobody(&shop, "closed", &[HEADCOUNT, "report", profile]);
    fs::remove_file(profile).unwrap();
    assert_eq!(report.status, Some(0), "{report:?}");
    assert!(report.stdout.contains("./prog"), "{report:?}");
}

#[test]
fn the_doctor_says_that_nothing_can_be_kept_here() {
    if !is_root() {
        return;
    }
    let shop = read_only();
    let closed = as_nobody(&shop, "closed", &[HEADCOUNT, "doctor"]);
    assert_eq!(closed.status, Some(1), "{closed:?}");
    for line in [
        "NO  counts folder      headcount.counts: Permission denied",
        "NO  profile            headcount.db: Permission denied",
        "set HEADCOUNT_DIR to one, and name a profile there with -o",
        "\nPrograms cannot be counted here yet: see NO above.\n",
    ] {
        assert!(closed.stdout.contains(line), "{line}: {}", closed.stdout);
    }
    let open = as_nobody(&shop, "open", &[HEADCOUNT, "doctor"]);
    assert!(
        open.stdout
            .contains("ok  profile            headcount.db: can be written"),
        "{open:?}"
    );
}

#[test]
fn a_program_for_another_machine_is_told_from_a_broken_one() {
    if !have("aarch64-linux-gnu-gcc") {
        return;
    }
    let shop = Workshop::with_sources();
    shop.must(&["aarch64-linux-gnu-gcc", "main.c", "helper.c", "-o", "arm"]);
    for verb in ["run", "time"] {
        let said = shop.headcount(&[verb, "--", "./arm"]);
        // Where an emulator is registered for such programs, it is that which runs.
        if said.status == Some(126) || !have("qemu-aarch64-static") {
            assert_eq!(said.status, Some(126), "{said:?}");
            assert_eq!(
                said.stderr,
                "headcount: ./arm: is for AArch64, not for x86-64; count it on a build for this \
                 machine\n"
            );
        }
    }
    shop.write("broken", b"\x7fELF\x02");
    fs::set_permissions(shop.path("broken"), fs::Permissions::from_mode(0o755)).unwrap();
    for (verb, why) in [
        ("run", "./broken: Exec format error"),
        ("time", "./broken: cannot run it: Exec format error"),
    ] {
        let said = shop.headcount(&[verb, "--", "./broken"]);
        assert_eq!(said.status, Some(126), "{said:?}");
        assert!(said.stderr.contains(why), "{said:?}");
    }
    // But what has no format may be a script.
    shop.write("script", "echo $1\n");
    fs::set_permissions(shop.path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let said = shop.headcount(&["time", "-q", "--", "./script", "it"]);
    assert_eq!((said.stdout.as_str(), said.status), ("it\n", Some(0)));
}

#[test]
fn what_is_compiled_for_another_machine_is_told_of() {
    let shop = Workshop::new();
    shop.write("one.c", "int one(void) { return 1; }\n");
    let is_for_arm = |object: &str| {
        let bytes = fs::read(shop.path(object)).unwrap();
        assert_eq!(bytes[18], 183, "{object}");
        fs::remove_file(shop.path(object)).unwrap();
    };
    for compiler in [
        &["aarch64-linux-gnu-gcc"][..],
        &["clang", "--target=aarch64-linux-gnu"],
        &["clang", "-target", "aarch64-linux-gnu"],
    ] {
        if !have(compiler[0]) {
            continue;
        }
        for via in ["assembly", "source"] {
            let ours = ["cc", "--via", via, "--"];
            let said = shop.headcount(&[&ours[..], compiler, &["-c", "one.c"]].concat());
            assert_eq!(said.status, Some(0), "{said:?}");
            let told = "headcount: not counted: it is compiled for aarch64";
            let lines = said.stderr.lines().filter(|it| it.starts_with(told));
            assert_eq!(lines.count(), 1, "{said:?}");
            assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
            is_for_arm("one.o");
        }
    }
    // What names our own machine is counted.
    if have("x86_64-linux-gnu-gcc") {
        let said = shop.headcount(&["cc", "--", "x86_64-linux-gnu-gcc", "-c", "one.c"]);
        assert_eq!((said.stderr.as_str(), said.status), ("", Some(0)));
    }
}

#[test]
fn what_is_built_for_32_bits_is_told_of() {
    let shop = Workshop::new();
    shop.write("one.c", "int one(void) { return 1; }\n");
    for via in ["assembly", "source"] {
        let words = ["cc", "--via", via, "--", "gcc", "-m32", "-c", "one.c"];
        let said = shop.headcount(&words);
        assert_eq!(said.status, Some(0), "{said:?}");
        assert_eq!(
            said.stderr,
            "headcount: not counted: -m32 asks for another machine; headcount counts x86-64 programs \
             only\n",
            "{via}"
        );
    }
    let words = ["cc", "--", "gcc", "-m32", "-m64", "-c", "one.c"];
    let said = shop.headcount(&words);
    assert_eq!((said.stderr.as_str(), said.status), ("", Some(0)));
}
