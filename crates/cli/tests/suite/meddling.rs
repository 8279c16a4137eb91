//! What others put in headcount's way: strangers in a shared folder, hostile programs, and files
//! with hostile names in them. Those that need another user are for root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::workshop::{ANSWER, HEADCOUNT, Said, Workshop, is_root, said};

/// Somebody else.
const STRANGER: u32 = 65534;

/// Nothing that anybody does keeps headcount for longer.
const SECONDS: &str = "60";

/// A workshop with the sample program.
fn built(flags: &[&str]) -> Workshop {
    let shop = Workshop::with_sources().with_own_cache();
    let words = ["gcc", "-g", "-o", "it", "main.c", "helper.c"];
    shop.must(&[&words, flags].concat());
    shop
}

/// headcount, which is ended if it takes too long.
fn in_time(shop: &Workshop, words: &[&str]) -> Said {
    let mut command = shop.command("timeout");
    said(command.args([SECONDS, HEADCOUNT]).args(words))
}

fn make_pipe(path: &Path) {
    let _ = fs::remove_file(path);
    let status = Command::new("mkfifo").arg(path).status();
    assert!(status.expect("mkfifo runs").success());
}

fn give_away(path: &Path) {
    chown(path, Some(STRANGER), Some(STRANGER)).expect("root may");
}

/// How many files of the cache have such a name.
fn kept(shop: &Workshop, end: &str) -> usize {
    let files = fs::read_dir(shop.path(".cache/headcount"));
    let names = files.into_iter().flatten().flatten();
    let names = names.map(|it| it.file_name().to_string_lossy().into_owned());
    names.filter(|it| it.ends_with(end)).count()
}

#[test]
fn nothing_is_kept_of_files_that_somebody_else_can_have_written() {
    let shop = built(&["-static"]);
    let count = || {
        let _ = fs::remove_dir_all(shop.path(".cache"));
        let said = in_time(&shop, &["run", "-q", "-o", "it.db", "--", "./it"]);
        assert_eq!(
            (said.stdout.as_str(), said.status),
            (ANSWER, Some(0)),
            "{said:?}"
        );
        (kept(&shop, ".prepared"), kept(&shop, ".facts"))
    };
    // Of what the monitor prepared: where code is, the routines that ran, and who used them.
    assert_eq!(count(), (3, 1));
    fs::set_permissions(shop.path("it"), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(count(), (0, 0));
    fs::set_permissions(shop.path("it"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(count(), (3, 1));
    if is_root() {
        give_away(&shop.path("it"));
        assert_eq!(count(), (0, 0));
    }
}

#[test]
fn a_folder_of_somebody_elses_is_not_used_for_counts() {
    if !is_root() {
        return;
    }
    let shop = built(&[]);
    let folder = shop.path("headcount.counts");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    give_away(&folder);
    let count = || {
        let said = in_time(&shop, &["run", "-q", "--", "./it"]);
        assert_eq!(
            (said.stdout.as_str(), said.status),
            (ANSWER, Some(0)),
            "{said:?}"
        );
        assert_eq!(said.stderr, "");
    };
    let watched = |folder: &str, work: &dyn Fn()| {
        let before = shop.path(folder).metadata().unwrap();
        work();
        let now = shop.path(folder).metadata().unwrap();
        assert_eq!(
            before.mtime_nsec(),
            now.mtime_nsec(),
            "something was in {folder}"
        );
    };
    // It is counted elsewhere.
    watched("headcount.counts", &count);

    // A link leads to a place that somebody else chose.
    fs::remove_dir(&folder).unwrap();
    fs::create_dir(shop.path("elsewhere")).unwrap();
    symlink("elsewhere", &folder).unwrap();
    watched("elsewhere", &count);
    assert_eq!(shop.functions()["helper"].calls, 100);
    assert_eq!(
        in_time(&shop, &["runs", "--format", "csv"])
            .stdout
            .lines()
            .count(),
        3
    );
}

#[test]
fn the_folder_that_the_user_names_may_be_one_for_all() {
    let shop = built(&[]);
    let folder = shop.path("for-all");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
    symlink("for-all", shop.path("link")).unwrap();
    for name in ["for-all", "link", "new/one"] {
        let mut command = shop.command(HEADCOUNT);
        command.env("HEADCOUNT_DIR", shop.path(name));
        let said = said(command.args(["run", "-q", "-o", "my.db", "--", "./it"]));
        assert_eq!(
            (said.stdout.as_str(), said.status),
            (ANSWER, Some(0)),
            "{said:?}"
        );
    }
    assert_eq!(kept(&shop, "runs"), 0);
}

#[test]
fn what_a_link_leads_to_is_not_collected_by_accident() {
    let shop = Workshop::with_sources();
    shop.cc(&["gcc", "-o", "it", "main.c", "helper.c"]);
    assert_eq!(shop.must(&["./it"]), ANSWER);
    let folder = tempfile::tempdir().unwrap();
    symlink(
        shop.path("headcount.counts"),
        folder.path().join("headcount.counts"),
    )
    .unwrap();
    let mut report = shop.command(HEADCOUNT);
    let said = said(report.arg("report").current_dir(folder.path()));
    assert_eq!(said.status, Some(2), "{said:?}");
    assert_eq!(shop.counter_files().len(), 1);
}

#[test]
fn a_journal_that_somebody_else_put_beside_a_profile_is_not_played_back() {
    let shop = built(&[]);
    assert_eq!(in_time(&shop, &["run", "-q", "--", "./it"]).status, Some(0));
    let journal = shop.path("headcount.db-journal");
    let refused = || {
        let said = in_time(&shop, &["report"]);
        assert_eq!(said.status, Some(2), "{said:?}");
        assert!(
            said.stderr.contains("headcount.db-journal lies beside it"),
            "{said:?}"
        );
        fs::remove_file(&journal).unwrap();
    };
    make_pipe(&journal);
    refused();
    symlink("elsewhere", &journal).unwrap();
    refused();
    if is_root() {
        // One that cuts the profile off after its first page.
        let mut bytes = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
        bytes.extend([
            0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0x20, 0,
        ]);
        bytes.resize(512, 0);
        fs::write(&journal, bytes).unwrap();
        give_away(&journal);
        refused();
    }
    assert_eq!(shop.functions()["helper"].calls, 100);
}

#[test]
fn a_run_whose_folder_is_exchanged_counts_in_its_own() {
    let shop = built(&[]);
    shop.write("wait.sh", "until [ -e go ]; do :; done; exec ./it\n");
    let mut command = shop.command(HEADCOUNT);
    command.args(["run", "-q", "-o", "my.db", "--", "sh", "wait.sh"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.expect("it starts");
    let run = first_entry(&shop.path("my.counts"));
    fs::rename(&run, shop.path("taken")).unwrap();
    fs::create_dir(&run).unwrap();
    fs::write(run.join("windows"), "mine").unwrap();
    fs::write(run.join("precious"), "mine, too").unwrap();
    shop.write("go", "");
    let output = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), ANSWER);
    assert_eq!(fs::read_to_string(run.join("windows")).unwrap(), "mine");
    assert!(run.join("precious").exists());
    let said = in_time(
        &shop,
        &["report", "my.db", "--format", "csv", "--only", "helper"],
    );
    assert!(
        said.stdout.contains(",helper,") && said.stdout.contains(",100,"),
        "{said:?}"
    );
}

/// Waits until something is in a folder.
fn first_entry(folder: &Path) -> std::path::PathBuf {
    let begin = Instant::now();
    loop {
        let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let windows = entries.find(|it| it.path().join("windows").exists());
        if let Some(run) = windows {
            // Until the program runs.
            std::thread::sleep(Duration::from_millis(300));
            return run.path();
        }
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "it does not begin"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn counter_files_of_others_are_left_to_them() {
    if !is_root() {
        return;
    }
    let shop = Workshop::with_sources();
    shop.cc(&["gcc", "-o", "it", "main.c", "helper.c"]);
    assert_eq!(shop.must(&["./it"]), ANSWER);
    let file = shop.only_counter_file();
    give_away(&file);
    let report = in_time(&shop, &["report"]);
    assert_eq!(report.status, Some(2), "{report:?}");
    let collect = in_time(&shop, &["collect"]);
    let words = "is not collected: it belongs to another user, who can collect it";
    assert!(collect.stderr.contains(words), "{collect:?}");
    assert!(file.exists());
    chown(&file, Some(0), Some(0)).unwrap();
    assert_eq!(in_time(&shop, &["report"]).status, Some(0));
    assert!(!file.exists());
}

#[test]
fn a_folder_that_is_locked_for_ever_keeps_nobody_for_ever() {
    let shop = Workshop::with_sources();
    shop.cc(&["gcc", "-o", "it", "main.c", "helper.c"]);
    assert_eq!(shop.must(&["./it"]), ANSWER);
    let lock = fs::File::open(shop.path("headcount.counts")).unwrap();
    lock.lock().unwrap();
    let collect = in_time(&shop, &["collect"]);
    assert_eq!(collect.status, Some(2), "{collect:?}");
    assert!(
        collect
            .stderr
            .contains("is still locked by another process"),
        "{collect:?}"
    );
    drop(lock);
    assert_eq!(in_time(&shop, &["collect"]).status, Some(0));
}

/// Gives the program a link to a file with debug information.
fn link_to(shop: &Workshop, section: &str, content: &[u8]) {
    shop.write("link", content);
    let add = format!("{section}=link");
    shop.must(&[
        "objcopy",
        "--strip-debug",
        "--add-section",
        &add,
        "it",
        "it",
    ]);
}

#[test]
fn links_to_debug_information_lead_to_files_only() {
    for target in ["pipe", "/dev/zero", "/dev/tty", "/proc/kmsg"] {
        let shop = built(&["-Wl,--build-id=none"]);
        if target == "pipe" {
            make_pipe(&shop.path("pipe"));
        }
        // Its name, filled up to four bytes, and a checksum.
        let mut content = target.as_bytes().to_vec();
        content.resize(content.len() / 4 * 4 + 4, 0);
        content.extend([1, 2, 3, 4]);
        link_to(&shop, ".gnu_debuglink", &content);
        let mut content = target.as_bytes().to_vec();
        content.extend([0, 1, 2, 3, 4]);
        shop.write("link", content);
        shop.must(&[
            "objcopy",
            "--add-section",
            ".gnu_debugaltlink=link",
            "it",
            "it",
        ]);
        for engine in ["detour", "breakpoint"] {
            let words = ["run", "-q", "--engine", engine, "-o", "it.db", "--", "./it"];
            let said = in_time(&shop, &words);
            assert_eq!(
                (said.stdout.as_str(), said.status),
                (ANSWER, Some(0)),
                "{said:?}"
            );
        }
    }
}

#[test]
fn a_profile_is_a_file() {
    let shop = built(&[]);
    make_pipe(&shop.path("p.db"));
    symlink("/dev/zero", shop.path("zero.db")).unwrap();
    make_pipe(&shop.path("p.counts"));
    for name in ["p.db", "zero.db"] {
        for words in [
            &["report", name][..],
            &["runs", "-i", name],
            &["collect", "-o", name],
        ] {
            let said = in_time(&shop, words);
            assert_eq!(said.status, Some(2), "{words:?}: {said:?}");
        }
        let said = in_time(&shop, &["run", "-o", name, "--", "./it"]);
        assert_eq!(
            (said.stdout.as_str(), said.status),
            (ANSWER, Some(0)),
            "{said:?}"
        );
    }
}

#[test]
fn a_program_is_a_file() {
    let shop = Workshop::new();
    make_pipe(&shop.path("it"));
    fs::set_permissions(shop.path("it"), fs::Permissions::from_mode(0o755)).unwrap();
    let said = in_time(&shop, &["run", "--", "./it"]);
    assert_eq!(said.status, Some(126), "{said:?}");
}

#[test]
fn a_library_that_is_replaced_by_a_pipe_keeps_nobody_waiting() {
    let shop = Workshop::new();
    shop.write("lib.c", "int one(void) { return 1; }\n");
    shop.must(&["gcc", "-shared", "-fPIC", "-o", "lib.so", "lib.c"]);
    let text = "
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
    int file = open(\"lib.so\", O_RDONLY);
    struct stat it;
    fstat(file, &it);
    unlink(\"lib.so\");
    mkfifo(\"lib.so (deleted)\", 0666);
    mkfifo(\"lib.so\", 0666);
    mmap(0, it.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    puts(\"done\");
    return 7;
}
";
    shop.write("swap.c", text);
    shop.must(&["gcc", "-o", "swap", "swap.c"]);
    for engine in ["detour", "breakpoint"] {
        shop.must(&["gcc", "-shared", "-fPIC", "-o", "lib.so", "lib.c"]);
        let words = [
            "run",
            "-q",
            "--engine",
            engine,
            "--modules",
            "all",
            "--",
            "./swap",
        ];
        let said = in_time(&shop, &words);
        assert_eq!(
            (said.stdout.as_str(), said.status),
            ("done\n", Some(7)),
            "{said:?}"
        );
        for name in ["lib.so", "lib.so (deleted)"] {
            fs::remove_file(shop.path(name)).unwrap();
        }
    }
}

#[test]
fn debug_information_that_unpacks_to_gigabytes_is_not_read() {
    let shop = built(&["-gz=zlib"]);
    let mut file = fs::read(shop.path("it")).unwrap();
    make_bomb(&mut file, b".debug_str\0", 6 << 30);
    shop.write("it", file);
    let mut command = shop.command("sh");
    let limited = format!("ulimit -v 3000000; exec '{HEADCOUNT}' run -q -o it.db -- ./it");
    let said = said(command.args(["-c", &limited]));
    assert_eq!(
        (said.stdout.as_str(), said.status),
        (ANSWER, Some(0)),
        "{said:?}"
    );
    let report = in_time(&shop, &["report", "it.db"]);
    assert!(
        report.stdout.contains("its debug information is not read"),
        "{report:?}"
    );
}

/// Says in the header of a compressed section that it unpacks to so many bytes, and puts zeros
/// behind what it has.
fn make_bomb(file: &mut Vec<u8>, name: &[u8], bytes: u64) {
    let word = |file: &[u8], at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let half = |file: &[u8], at: usize| u16::from_le_bytes([file[at], file[at + 1]]) as usize;
    let table = word(file, 40) as usize;
    let (sections, names) = (half(file, 60), half(file, 62));
    let offset = |file: &[u8], section: usize| word(file, table + 64 * section + 24) as usize;
    let names = offset(file, names);
    let section = (0..sections).find(|section| {
        let at = table + 64 * section;
        let start = names + u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        file[start..].starts_with(name)
    });
    let section = section.expect("there is such a section");
    let mut body = vec![0; 24];
    body[0] = 1; // ELFCOMPRESS_ZLIB
    body[8..16].copy_from_slice(&bytes.to_le_bytes());
    body[16] = 1;
    let mut packer = flate2::write::ZlibEncoder::new(body, flate2::Compression::fast());
    let zeros = vec![0; 1 << 20];
    for _ in 0..bytes >> 20 {
        std::io::Write::write_all(&mut packer, &zeros).unwrap();
    }
    let body = packer.finish().unwrap();
    let (at, place) = (file.len() as u64, table + 64 * section);
    file[place + 8..place + 16].copy_from_slice(&0x800_u64.to_le_bytes()); // SHF_COMPRESSED
    file[place + 24..place + 32].copy_from_slice(&at.to_le_bytes());
    file[place + 32..place + 40].copy_from_slice(&(body.len() as u64).to_le_bytes());
    file.extend(body);
}

#[test]
fn a_program_with_a_line_break_in_its_path_is_counted() {
    let shop = built(&[]);
    fs::create_dir(shop.path("two\nlines")).unwrap();
    fs::rename(shop.path("it"), shop.path("two\nlines/it")).unwrap();
    for engine in ["detour", "breakpoint"] {
        let words = [
            "run",
            "-q",
            "--engine",
            engine,
            "-o",
            "it.db",
            "--",
            "two\nlines/it",
        ];
        let said = in_time(&shop, &words);
        assert_eq!(
            (said.stdout.as_str(), said.status),
            (ANSWER, Some(0)),
            "{said:?}"
        );
        let said = in_time(&shop, &["report", "it.db", "--only", "helper", "--json"]);
        assert!(
            said.stdout.contains("\"calls\": 100") || said.stdout.contains("\"calls\":100"),
            "{said:?}"
        );
    }
}

#[test]
fn a_program_that_cuts_off_its_counters_harms_itself_only() {
    let shop = built(&[]);
    shop.write(
        "cut.sh",
        "file=$(sed -n 's|.* \\(/.*/windows\\)$|\\1|p' /proc/$$/maps | head -n 1)\n\
         : > \"$file\"\n\
         ./it\n",
    );
    let said = in_time(&shop, &["run", "-q", "-o", "it.db", "--", "sh", "cut.sh"]);
    assert!(said.status.is_some_and(|it| it != 124), "{said:?}");
    // Whatever became of it, the next run is counted.
    let said = in_time(&shop, &["run", "-q", "-o", "other.db", "--", "./it"]);
    assert_eq!(
        (said.stdout.as_str(), said.status),
        (ANSWER, Some(0)),
        "{said:?}"
    );
    assert_eq!(said.stderr, "");
}

#[test]
fn what_a_run_leaves_is_for_the_user_alone() {
    let shop = built(&[]);
    let said = in_time(&shop, &["run", "-q", "--", "./it"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    for path in [".cache/headcount", "headcount.db"] {
        let mode = shop.path(path).metadata().unwrap().mode();
        assert_eq!(mode & 0o022, 0, "{path}");
    }
}
