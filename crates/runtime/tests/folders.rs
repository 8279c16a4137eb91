//! Where the counters go; and where they go when they cannot.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{CounterFile, Slot, Workshop, files_in, succeed};
use headcount_wire::{self as wire, failure};

#[test]
fn the_folder_can_be_chosen() {
    let shop = Workshop::new("chosen");
    let program = shop.build("gcc", "once.c", &[]);
    let chosen = shop.folder.join("elsewhere");
    succeed(program.command().env(wire::FOLDER_VARIABLE, &chosen));
    assert_eq!(files_in(&chosen)[0].total(1), 1_000_000);
    succeed(program.command().env(wire::FOLDER_VARIABLE, "relative"));
    assert_eq!(
        files_in(&shop.folder.join("relative"))[0].total(1),
        1_000_000
    );
    assert_eq!(shop.files().len(), 0);
    succeed(program.command().env(wire::FOLDER_VARIABLE, ""));
    assert_eq!(shop.only_file().total(1), 1_000_000);
}

#[test]
fn only_the_owner_may_read_the_counts() {
    let shop = Workshop::new("private");
    let program = shop.build("gcc", "once.c", &[]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 777; exec ./once"])
        .current_dir(&shop.folder);
    succeed(&mut command);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&shop.only_file().path), 0o600);
    fs::remove_dir_all(shop.folder.join(wire::DEFAULT_FOLDER)).unwrap();
    program.run();
    assert_eq!(mode(&shop.folder.join(wire::DEFAULT_FOLDER)), 0o700);
}

#[test]
fn a_link_in_the_place_of_the_folder_is_not_followed() {
    let shop = Workshop::new("link");
    let program = shop.build("gcc", "once.c", &[]);
    let other = shop.folder.join("other");
    fs::create_dir(&other).unwrap();
    symlink(&other, shop.folder.join(wire::DEFAULT_FOLDER)).unwrap();
    assert_eq!(program.run().stdout, b"3\n");
    assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
}

/// Starts `waits.c` and waits for it to have counted.
fn start(command: &mut Command) -> Child {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    child
}

fn finish(mut child: Child) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// The headers and slots in a process's memory, as one would find them in a core dump.
fn in_memory(child: &Child) -> (Vec<CounterFile>, Vec<Slot>) {
    let maps = fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap();
    let memory = fs::File::open(format!("/proc/{}/mem", child.id())).unwrap();
    let (mut headers, mut slots) = (Vec::new(), Vec::new());
    for line in maps
        .lines()
        .filter(|line| line.contains(" rw-p ") && line.contains(" 00:00 0"))
    {
        let (start, rest) = line.split_once('-').unwrap();
        let end = rest.split_once(' ').unwrap().0;
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = (number(start), number(end));
        for page in (start..end.min(start + (1 << 24))).step_by(wire::PAGE) {
            let mut bytes = vec![0; (end - page).min(1 << 16) as usize];
            if memory.read_exact_at(&mut bytes[..8], page).is_err() {
                break;
            }
            let magic = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            if magic == wire::FILE_MAGIC || magic == wire::SLOT_MAGIC {
                memory.read_exact_at(&mut bytes, page).unwrap();
            }
            if magic == wire::FILE_MAGIC {
                headers.push(CounterFile::parse(&bytes[..wire::HEADER_BYTES]));
            }
            slots.extend(Slot::parse(&bytes));
        }
    }
    (headers, slots)
}

#[test]
fn without_a_file_the_counts_are_in_memory() {
    let shop = Workshop::new("memory");
    let program = shop.build("gcc", "waits.c", &[]);
    // Nobody, not even root, can make a folder there.
    let child = start(
        program
            .command()
            .env(wire::FOLDER_VARIABLE, "/proc/no/such/folder"),
    );
    let (headers, slots) = in_memory(&child);
    assert_eq!(headers.len(), 1);
    assert_eq!(headers[0].failures, failure::NO_FILE);
    assert_eq!(slots.len(), 2);
    let total = |counter: usize| slots.iter().map(|slot| slot.counts[counter]).sum::<u64>();
    assert_eq!((total(0), total(1)), (1, 1000));
    finish(child);
}

#[test]
fn a_limit_on_file_size_sends_no_signal() {
    let shop = Workshop::new("limit");
    let program = shop.build("gcc", "waits.c", &[]);
    let limited = |blocks: u32| {
        let mut command = Command::new("bash");
        let script = format!("ulimit -f {blocks}; exec {}", program.program.display());
        command.args(["-c", &script]).current_dir(&shop.folder);
        command
    };
    // Not even the header fits: in memory.
    let child = start(&mut limited(8));
    assert_eq!(in_memory(&child).0[0].failures, failure::NO_FILE);
    finish(child);
    assert_eq!(shop.files().len(), 0, "what was begun is removed");
    // The header and one slot fit: the second thread is counted in memory.
    let child = start(&mut limited(24));
    let (_, slots) = in_memory(&child);
    assert_eq!((slots.len(), slots[0].counts[1]), (1, 1000));
    finish(child);
    let file = shop.only_file();
    assert_eq!(
        (file.failures, file.total(0)),
        (failure::THREAD_IN_MEMORY, 1)
    );
}

#[test]
fn a_full_disk_sends_no_signal() {
    let shop = Workshop::new("full");
    let program = shop.build("gcc", "threads.c", &["-DCOUNTERS=4096", "-DROUNDS=1000"]);
    let disk = shop.folder.join("disk");
    fs::create_dir(&disk).unwrap();
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=128k", "none"])
        .arg(&disk);
    if !mount.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: may not mount a small disk");
        return;
    }
    let output = program.command().env(wire::FOLDER_VARIABLE, &disk).output();
    let files = files_in(&disk);
    succeed(Command::new("umount").arg(&disk));
    assert!(output.unwrap().status.success());
    assert_eq!(
        (files.len(), files[0].failures),
        (1, failure::THREAD_IN_MEMORY)
    );
    assert!(files[0].slots.len() < 9);
    assert_eq!(files[0].total(1), 1000 * files[0].slots.len() as u64);
}

#[test]
fn a_file_that_is_gone_leaves_new_threads_in_memory() {
    let shop = Workshop::new("gone");
    let program = shop.build(
        "gcc",
        "waits.c",
        &["-DBEFORE_THREAD=system(\"rm -r headcount.counts\")"],
    );
    let child = start(&mut program.command());
    let (_, slots) = in_memory(&child);
    assert_eq!((slots.len(), slots[0].counts[1]), (1, 1000));
    finish(child);
}

#[test]
fn a_program_with_more_rights_than_its_caller_writes_no_file() {
    let shop = Workshop::new("setuid");
    let program = shop.build("gcc", "waits.c", &[]);
    if std::os::unix::fs::chown(&program.program, Some(65534), None).is_err() {
        eprintln!("skipped: may not give a file away");
        return;
    }
    fs::set_permissions(&program.program, fs::Permissions::from_mode(0o4755)).unwrap();
    fs::set_permissions(&shop.folder, fs::Permissions::from_mode(0o777)).unwrap();
    finish(start(&mut program.command()));
    assert!(!shop.folder.join(wire::DEFAULT_FOLDER).exists());
}

#[test]
fn a_bare_root_without_proc_will_do() {
    let shop = Workshop::new("chroot");
    shop.build("gcc", "forks.c", &["-static"]);
    let mut command = Command::new("chroot");
    command.arg(&shop.folder).arg("/forks");
    if !command.output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: may not change the root");
        return;
    }
    let file = shop.only_file();
    assert!(
        file.path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("unknown.")
    );
    let totals = [0, 1, 2, 3].map(|counter| file.total(counter));
    assert_eq!(
        (totals, file.failures),
        ([1, 3_000_000, 2_000_000, 1_000_000], 0)
    );
}
