//! Programs that have more rights than their users lose them while they are counted. Whoever counts
//! them is told.

use crate::workshop::{HEADCOUNT, Said, Workshop, have, is_root, said};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Says in whose name it acts.
const WHO_C: &str = "\
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    printf(\"%d %d\\n\", geteuid() == 0, getegid() == 0);
    return 0;
}
";

const NOTE: &str = "the kernel starts it without that privilege while it is counted";

/// In a folder that everybody may use, a program with this mode.
fn who(mode: u32) -> Workshop {
    let shop = Workshop::with("who", WHO_C, &[]).with_own_cache();
    fs::set_permissions(shop.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(shop.path("who"), fs::Permissions::from_mode(mode)).unwrap();
    shop
}

/// What somebody with no rights sees.
fn as_nobody(shop: &Workshop, words: &[&str]) -> Said {
    let mut command = shop.command("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    said(command.args(words))
}

/// Whether programs get the rights of their files here; if not, says so.
fn gets_rights(shop: &Workshop, expected: &str) -> bool {
    let alone = as_nobody(shop, &["./who"]);
    let gets = alone.stdout == expected;
    if !gets {
        eprintln!("skipped: programs get no rights from their files here: {alone:?}");
    }
    gets
}

#[test]
fn a_program_that_loses_its_rights_is_told_of() {
    if !is_root() {
        return;
    }
    for (mode, alone, what) in [
        (0o4755, "1 0\n", "is set-user-ID"),
        (0o2755, "0 1\n", "is set-group-ID"),
    ] {
        let shop = who(mode);
        if !gets_rights(&shop, alone) {
            return;
        }
        let run = [HEADCOUNT, "run", "--modules", "main"];
        for engine in ["detour", "breakpoint"] {
            for command in [&["./who"][..], &["sh", "-c", "./who; :"]] {
                let engine = ["--engine", engine, "--"];
                let said = as_nobody(&shop, &[&run[..], &engine, command].concat());
                assert_eq!(
                    (said.stdout.as_str(), said.status),
                    ("0 0\n", Some(0)),
                    "{said:?}"
                );
                let told = said.stderr.lines().filter(|it| it.contains(NOTE));
                let told: Vec<&str> = told.collect();
                assert_eq!(told.len(), 1, "{said:?}");
                let begin = format!("headcount: {} {what}: ", shop.path("who").display());
                assert!(told[0].starts_with(&begin), "{said:?}");
                let report = as_nobody(&shop, &[HEADCOUNT, "report"]);
                assert!(report.stdout.contains(NOTE), "{report:?}");
            }
        }
        // Root loses nothing.
        shop.forget();
        let said = shop.headcount(&["run", "--", "./who"]);
        assert_eq!(said.stdout, "1 1\n", "{said:?}");
        assert!(!said.stderr.contains(NOTE), "{said:?}");
    }
}

#[test]
fn a_program_that_has_nothing_to_lose_is_not_told_of() {
    if !is_root() {
        return;
    }
    let run = [HEADCOUNT, "run", "--modules", "main", "--"];
    let shop = who(0o4755);
    // Alone it would get nothing either.
    let set = ["setpriv", "--no-new-privs"];
    let said = as_nobody(&shop, &[&set, &run[..], &["./who"]].concat());
    assert_eq!(
        (said.stdout.as_str(), said.status),
        ("0 0\n", Some(0)),
        "{said:?}"
    );
    assert!(!said.stderr.contains(NOTE), "{said:?}");
    let shop = who(0o755);
    let said = as_nobody(&shop, &[&run[..], &["./who"]].concat());
    assert_eq!(
        (said.stdout.as_str(), said.status),
        ("0 0\n", Some(0)),
        "{said:?}"
    );
    assert!(!said.stderr.contains(NOTE), "{said:?}");
}

#[test]
fn a_program_that_loses_capabilities_is_told_of() {
    if !is_root() || !have("setcap") {
        return;
    }
    let shop = who(0o755);
    let set = shop.run(&["setcap", "cap_net_raw=ep", "who"]);
    if set.status != Some(0) {
        eprintln!("skipped: no capabilities for files here: {set:?}");
        return;
    }
    let run = [HEADCOUNT, "run", "--modules", "main", "--", "./who"];
    let said = as_nobody(&shop, &run);
    assert_eq!(said.status, Some(0), "{said:?}");
    let told = format!(
        "{} has capabilities of its own: {NOTE}",
        shop.path("who").display()
    );
    assert!(said.stderr.contains(&told), "{said:?}");
    let said = shop.headcount(&["run", "-o", "root.db", "--", "./who"]);
    assert!(!said.stderr.contains(NOTE), "{said:?}");
}

#[test]
fn why_a_program_with_other_rights_has_no_samples_is_told() {
    if !is_root() {
        return;
    }
    const WHY: &str = "The kernel allows no samples of who, nor of what it starts";
    for (mode, command) in [
        (0o4755, &["./who"][..]),
        (0o4755, &["sh", "-c", "./who; :"]),
        (0o711, &["./who"]),
    ] {
        let shop = who(mode);
        let said = as_nobody(&shop, &[&[HEADCOUNT, "time", "--"], command].concat());
        assert_eq!(said.status, Some(0), "{said:?}");
        if said.stderr.contains("does not allow sampling") {
            eprintln!("skipped: {}", said.stderr);
            return;
        }
        assert!(said.stderr.contains(WHY), "{mode:o} {command:?}: {said:?}");
        let report = as_nobody(&shop, &[HEADCOUNT, "report"]);
        assert!(report.stdout.contains(WHY), "{report:?}");
        // Root may see everything, and others what is nobody's secret.
        let said = shop.headcount(&["time", "-o", "root.db", "--", "./who"]);
        assert!(!said.stderr.contains("allows no samples"), "{said:?}");
    }
    let shop = who(0o755);
    let said = as_nobody(&shop, &[HEADCOUNT, "time", "--", "sh", "-c", "./who; :"]);
    assert!(!said.stderr.contains("allows no samples"), "{said:?}");
}

#[test]
fn a_program_that_may_not_be_read_runs_all_the_same() {
    if !is_root() {
        return;
    }
    for mode in [0o711, 0o4711] {
        let shop = who(mode);
        for engine in ["detour", "breakpoint"] {
            for (command, status) in [
                (&["./who"][..], 0),
                (&["sh", "-c", "./who; exit 7"], 7),
                (&["sh", "-c", "exec ./who"], 0),
            ] {
                let run = [HEADCOUNT, "run", "--engine", engine, "--"];
                let said = as_nobody(&shop, &[&run[..], command].concat());
                let (stdout, ended) = (said.stdout.as_str(), said.status);
                assert_eq!((stdout, ended), ("0 0\n", Some(status)), "{said:?}");
                let told = "headcount: who may be executed by its user, but not read";
                assert_eq!(said.stderr.matches(told).count(), 1, "{said:?}");
            }
        }
    }
}
