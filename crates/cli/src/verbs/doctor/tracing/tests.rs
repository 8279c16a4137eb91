//! Machines that nobody has at hand.

use super::*;
use crate::verbs::doctor::{Verdict, can};

/// A machine where everything works.
fn good() -> Facts {
    Facts {
        trial: Ok(()),
        scope: Some(0),
        capable: false,
        filtered: false,
        container: None,
        proc: Proc::Open,
        release: "6.1.0-18-amd64".to_owned(),
    }
}

fn named(facts: &Facts, name: &str) -> Finding {
    let mut all = findings(facts).into_iter();
    all.find(|it| it.name == name).expect("it is looked at")
}

#[test]
fn a_good_machine_has_nothing_to_cure() {
    for finding in findings(&good()) {
        assert!(finding.verdict == Verdict::Good, "{}", finding.name);
        assert_eq!(finding.cure, "", "{}", finding.name);
    }
    assert!(can(Way::Run, &findings(&good())));
}

#[test]
fn what_is_not_good_names_a_cure() {
    let machines = [
        Facts {
            scope: Some(1),
            ..good()
        },
        Facts {
            scope: Some(2),
            ..good()
        },
        Facts {
            scope: Some(3),
            ..good()
        },
        Facts {
            proc: Proc::Hiding,
            ..good()
        },
        Facts {
            proc: Proc::Missing,
            ..good()
        },
        Facts {
            release: "4.19.0".to_owned(),
            ..good()
        },
        Facts {
            trial: Err((Step::Fork, ErrorKind::WouldBlock)),
            ..good()
        },
        Facts {
            trial: Err((Step::SystemCall, ErrorKind::Other)),
            ..good()
        },
    ];
    for (number, facts) in machines.iter().enumerate() {
        let findings = findings(facts);
        let mut ill = findings.iter().filter(|it| it.verdict != Verdict::Good);
        assert!(ill.clone().count() > 0, "machine {number}");
        assert!(ill.all(|it| !it.cure.is_empty()), "machine {number}");
    }
}

#[test]
fn each_ptrace_scope_says_whom_attach_reaches() {
    let attaching = |scope, capable| {
        let finding = named(
            &Facts {
                scope,
                capable,
                ..good()
            },
            "attaching",
        );
        (
            finding.verdict == Verdict::Good,
            finding.found,
            finding.cure,
        )
    };
    for (scope, capable, is_good, part) in [
        (None, false, true, "your own processes (no Yama)"),
        (None, true, true, "any process"),
        (Some(0), false, true, "your own processes (ptrace_scope 0)"),
        (Some(1), false, false, "only to children"),
        (Some(1), true, true, "any process"),
        (Some(2), false, false, "only root"),
        (Some(2), true, true, "any process"),
        (Some(3), false, false, "nobody"),
        (Some(3), true, false, "nobody"),
    ] {
        let (verdict, found, _) = attaching(scope, capable);
        assert_eq!(verdict, is_good, "{scope:?} {capable}");
        assert!(found.contains(part), "{scope:?} {capable}: {found}");
    }
    let (_, _, cure) = attaching(Some(1), false);
    assert!(
        cure.contains("sudo sysctl kernel.yama.ptrace_scope=0"),
        "{cure}"
    );
    assert!(cure.contains("--cap-add=SYS_PTRACE"), "{cure}");
}

#[test]
fn a_trial_that_fails_is_explained_by_what_stands_in_the_way() {
    let refused = Facts {
        trial: Err((Step::Trace, ErrorKind::PermissionDenied)),
        ..good()
    };
    for (facts, part) in [
        (
            Facts {
                container: Some("docker"),
                ..refused.clone()
            },
            "--cap-add=SYS_PTRACE",
        ),
        (
            Facts {
                filtered: true,
                ..refused.clone()
            },
            "seccomp=unconfined",
        ),
        (
            Facts {
                scope: Some(3),
                ..refused.clone()
            },
            "reboot",
        ),
        (
            Facts {
                scope: Some(2),
                ..refused.clone()
            },
            "ptrace_scope=1",
        ),
        (
            Facts {
                proc: Proc::Missing,
                ..refused.clone()
            },
            "mount -t proc",
        ),
        (refused, "as root"),
    ] {
        let finding = named(&facts, "tracing a child");
        assert!(finding.verdict == Verdict::Bad);
        assert!(finding.cure.contains(part), "{}", finding.cure);
        assert!(!can(Way::Run, &findings(&facts)));
        assert!(can(Way::Build, &findings(&facts)));
        assert!(named(&facts, "attaching").verdict == Verdict::Less);
    }
}

#[test]
fn memory_that_cannot_be_written_is_named() {
    let facts = Facts {
        trial: Err((Step::Memory, ErrorKind::PermissionDenied)),
        ..good()
    };
    assert!(
        named(&facts, "tracing a child")
            .found
            .contains("/proc/PID/mem")
    );
}

#[test]
fn the_texts_of_the_kernel_are_understood() {
    let status = "Name:\tcat\nCapEff:\t0000000000080000\nSeccomp:\t2\nSeccomp_filters:\t1\n";
    assert!(has_ptrace(status));
    assert!(is_filtered(status));
    let other = "CapEff:\t000001fffff7ffff\nSeccomp:\t0\n";
    assert!(!has_ptrace(other));
    assert!(!is_filtered(other));
    assert!(!has_ptrace("CapEff:\tzz\n") && !has_ptrace(""));

    assert!(proc("proc /proc proc rw,nosuid 0 0\n") == Proc::Open);
    assert!(proc("proc /proc proc rw,hidepid=0 0 0\n") == Proc::Open);
    assert!(proc("proc /proc proc rw,hidepid=invisible 0 0\n") == Proc::Hiding);
    assert!(proc("proc /proc proc rw,gid=4,hidepid=2 0 0\n") == Proc::Hiding);
    let twice = "proc /proc proc rw,hidepid=2 0 0\nproc /proc proc rw 0 0\n";
    assert!(proc(twice) == Proc::Open);
    assert!(proc("proc /chroot/proc proc rw 0 0\n") == Proc::Missing);
    assert!(proc("") == Proc::Missing);

    for (release, recent) in [
        ("5.3.0", true),
        ("5.2.21-generic", false),
        ("4.19.0", false),
        ("6.18.44-fc", true),
        ("10.0", true),
        ("unknown", true),
        ("", true),
    ] {
        assert_eq!(is_recent(release), recent, "{release}");
    }
    assert_eq!(
        container_in("0::/system.slice/docker-1234.scope\n"),
        Some("docker")
    );
    assert_eq!(container_in("0::/init.scope\n"), None);
}
