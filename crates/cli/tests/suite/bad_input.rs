//! Damaged, foreign and unusable files: an error that names the file and the cure, status 2,
//! nothing lost, and never a panic.

use std::fs;
use std::mem::offset_of;
use std::path::{Path, PathBuf};

use crate::workshop::{HEADCOUNT, Said, Workshop, said};
use headcount_wire::{
    FILE_MAGIC, FileHeader, HEADER_BYTES, PAGE, SLOT_HEADER_BYTES, SLOT_MAGIC, SlotHeader,
};

/// A program that ran once, and its counter file.
struct Scene {
    shop: Workshop,
    file: PathBuf,
    good: Vec<u8>,
}

impl Scene {
    fn new() -> Self {
        let shop = Workshop::with_sources();
        shop.cc(&["gcc", "-O1", "-g", "main.c", "helper.c", "-o", "prog"]);
        shop.must(&["prog"]);
        let file = shop.only_counter_file();
        let good = fs::read(&file).unwrap();
        // Tests are about the program itself.
        fs::remove_file(&shop.kept_modules()[0]).unwrap();
        Self { shop, file, good }
    }

    /// Collects with the counter file changed; both the complaint and the file must be there.
    fn refused(&self, bytes: &[u8], what: &str) -> Said {
        fs::write(&self.file, bytes).unwrap();
        self.complains(&["collect", "--keep"], what)
    }

    /// Something that cannot be collected: says so, and leaves the counter file as it is.
    fn complains(&self, words: &[&str], what: &str) -> Said {
        let before = fs::read(&self.file).unwrap();
        let said = self.shop.headcount(words);
        assert_decent(&said, what);
        assert_eq!(said.status, Some(2), "{what}: {said:?}");
        assert_eq!(
            fs::read(&self.file).unwrap(),
            before,
            "{what}: the file is as it was"
        );
        said
    }

    /// The file was the only trouble: as it was, it is collected.
    fn is_collected_after_all(&self) {
        fs::write(&self.file, &self.good).unwrap();
        let said = self.shop.headcount(&["collect", "-o", "good.db"]);
        assert_eq!(said.status, Some(0), "{said:?}");
        let functions = self.shop.functions_of(&["good.db"]);
        assert_eq!(functions["helper"].calls, 100);
        assert!(!self.file.exists());
    }
}

/// Talks as it should, and does not panic.
fn assert_decent(said: &Said, what: &str) {
    let lines = said.stderr.lines();
    let ours = lines.clone().filter(|line| line.starts_with("headcount: "));
    assert_eq!(ours.count(), lines.count(), "{what}: {said:?}");
    assert!(!said.stderr.contains("panicked"), "{what}: {said:?}");
    assert!(said.status == Some(0) || !said.stderr.is_empty(), "{what}");
}

#[test]
fn a_counter_file_that_was_cut_off_is_named() {
    let scene = Scene::new();
    let whole = scene.good.len();
    let mut lengths = vec![0, 1, 7, 8, 11, 12, 15, 16, 100, PAGE, HEADER_BYTES - 1];
    let slot = HEADER_BYTES;
    lengths.extend([
        slot,
        slot + 1,
        slot + 8,
        slot + PAGE - 1,
        slot + PAGE,
        slot + PAGE + 8,
    ]);
    lengths.extend([whole - PAGE, whole - 8, whole - 1]);
    for length in lengths {
        let said = scene.refused(&scene.good[..length], &format!("cut off at {length}"));
        let name = scene.file.file_name().unwrap().to_str().unwrap();
        assert!(said.stderr.contains(name), "{said:?}");
        assert!(said.stderr.contains("cut off"), "{length}: {said:?}");
        assert!(
            said.stderr.contains("remove it") || said.stderr.contains("run the program again"),
            "{said:?}"
        );
    }
    scene.is_collected_after_all();
}

#[test]
fn threads_that_were_cut_off_are_missed() {
    let shop = Workshop::new();
    shop.write(
        "prog.c",
        "#include <pthread.h>\nstatic void *work(void *p) { return p; }\n\
         int main(void) { pthread_t t[3]; for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, work, 0);\n\
         for (int i = 0; i < 3; i++) pthread_join(t[i], 0); return 0; }\n",
    );
    shop.cc(&["gcc", "-pthread", "prog.c", "-o", "prog"]);
    shop.must(&["prog"]);
    let file = shop.only_counter_file();
    let good = fs::read(&file).unwrap();
    let stride = number(&good, offset_of!(FileHeader, stride)) as usize;
    let slots = (good.len() - HEADER_BYTES) / stride;
    assert!(slots >= 2);
    for slot in 0..slots {
        fs::write(&file, &good[..HEADER_BYTES + slot * stride]).unwrap();
        let said = shop.headcount(&["collect"]);
        assert_eq!(said.status, Some(2), "{slot} of {slots} threads: {said:?}");
        assert!(
            said.stderr
                .contains("was cut off, and lacks the counts of some threads"),
            "{said:?}"
        );
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The file with a number in it changed.
fn with(bytes: &[u8], at: usize, number: u64, length: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
    bytes
}

#[test]
fn a_header_that_makes_no_sense_is_refused() {
    let scene = Scene::new();
    let good = &scene.good;
    assert_eq!(number(good, 0), FILE_MAGIC);
    assert_eq!(number(good, HEADER_BYTES), SLOT_MAGIC);
    for (bytes, words) in [
        (with(good, 0, 0, 8), "is no counter file"),
        (
            with(good, offset_of!(FileHeader, version), 77, 4),
            "format 77",
        ),
        (
            with(good, offset_of!(FileHeader, fingerprint), 1, 8),
            "another build",
        ),
        (
            with(good, offset_of!(FileHeader, counters), u64::MAX, 8),
            "damaged header",
        ),
        (
            with(good, offset_of!(FileHeader, counters), 1 << 31, 8),
            "damaged header",
        ),
        (
            with(good, offset_of!(FileHeader, stride), 3, 8),
            "damaged header",
        ),
        (
            with(good, offset_of!(FileHeader, length), u64::MAX, 8),
            "was cut off",
        ),
        (with(good, HEADER_BYTES, 1, 8), "damaged thread"),
        (
            with(
                good,
                HEADER_BYTES + offset_of!(SlotHeader, fingerprint),
                1,
                8,
            ),
            "thread of another build",
        ),
        (
            with(
                good,
                HEADER_BYTES + offset_of!(SlotHeader, counters),
                1 << 40,
                8,
            ),
            "thread of another build",
        ),
    ] {
        let said = scene.refused(&bytes, words);
        assert!(said.stderr.contains(words), "{words}: {said:?}");
    }
    // A header alone, with counters by the billion: nobody has so much memory.
    let stride = headcount_wire::stride(1 << 31);
    let header = with(
        &good[..HEADER_BYTES],
        offset_of!(FileHeader, counters),
        1 << 31,
        8,
    );
    let header = with(&header, offset_of!(FileHeader, stride), stride, 8);
    let header = with(&header, offset_of!(FileHeader, length), 0, 8);
    scene.refused(&header, "a header alone");
    scene.is_collected_after_all();
}

#[test]
fn counts_that_contradict_each_other_are_no_counts() {
    let scene = Scene::new();
    let first = HEADER_BYTES + SLOT_HEADER_BYTES;
    // Two slots with 2^63 in the same counter are more than a number holds.
    let stride = number(&scene.good, offset_of!(FileHeader, stride)) as usize;
    let large = with(&scene.good, first, 1 << 63, 8);
    let both = [&large[..], &large[HEADER_BYTES..HEADER_BYTES + stride]].concat();
    let said = scene.refused(&both, "too much");
    assert!(said.stderr.contains("more than 2^64"), "{said:?}");
    scene.is_collected_after_all();
}

#[test]
fn no_changed_byte_makes_it_panic() {
    let scene = Scene::new();
    let mut seed = 1_u64;
    let mut dice = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize
    };
    let interesting = [
        0..size_of::<FileHeader>().min(128),
        HEADER_BYTES..HEADER_BYTES + size_of::<SlotHeader>(),
        HEADER_BYTES + SLOT_HEADER_BYTES..HEADER_BYTES + SLOT_HEADER_BYTES + 64,
    ];
    for round in 0..40 {
        let mut bytes = scene.good.clone();
        for _ in 0..=dice() % 3 {
            let range = &interesting[dice() % interesting.len()];
            bytes[range.start + dice() % range.len()] = dice() as u8;
        }
        fs::create_dir_all(scene.file.parent().unwrap()).unwrap();
        fs::write(&scene.file, &bytes).unwrap();
        let said = scene.shop.headcount(&["collect", "-o", "fuzzed.db"]);
        assert_decent(&said, &format!("round {round}"));
        assert!(
            matches!(said.status, Some(0 | 2)),
            "round {round}: {said:?}"
        );
        // What could not be collected is still there, or set aside.
        let folder = scene.file.parent().unwrap();
        let aside = folder.join("unread").join(scene.file.file_name().unwrap());
        let is_kept = scene.file.exists() || fs::remove_file(aside).is_ok();
        assert_eq!(is_kept, said.status == Some(2), "round {round}: {said:?}");
    }
}

#[test]
fn what_is_no_file_is_no_counter_file() {
    let scene = Scene::new();
    let folder = scene.file.parent().unwrap();
    std::os::unix::fs::symlink(&scene.file, folder.join("link.counts")).unwrap();
    fs::create_dir(folder.join("folder.counts")).unwrap();
    scene
        .shop
        .must(&["mkfifo", folder.join("pipe.counts").to_str().unwrap()]);
    let said = scene.shop.headcount(&["collect"]);
    assert_decent(&said, "odd files");
    assert_eq!(said.status, Some(2));
    assert_eq!(
        said.stderr.matches("is no regular file").count(),
        3,
        "{said:?}"
    );
    assert!(
        said.stderr.contains("3 counter files were not collected"),
        "{said:?}"
    );
    // They keep nobody from the rest.
    assert_eq!(scene.shop.functions()["helper"].calls, 100);
}

#[test]
fn a_damaged_copy_of_a_program_explains_nothing() {
    let scene = Scene::new();
    let program = fs::read(scene.shop.path("prog")).unwrap();
    fs::rename(scene.shop.path("prog"), scene.shop.path("moved")).unwrap();
    let fingerprint = number(&scene.good, offset_of!(FileHeader, fingerprint));
    let copy = scene
        .file
        .with_file_name(format!("{fingerprint:016x}.module"));
    for (bytes, what) in [
        (&b""[..], "nothing"),
        (b"#!/bin/sh\n", "a script"),
        (&program[..5000], "half a program"),
    ] {
        fs::write(&copy, bytes).unwrap();
        let said = scene.complains(&["collect", "--keep"], what);
        assert!(said.stderr.contains("/prog: is gone"), "{what}: {said:?}");
    }
    fs::remove_file(&copy).unwrap();
    std::os::unix::fs::symlink(scene.shop.path("moved"), &copy).unwrap();
    scene.complains(&["collect", "--keep"], "a link");
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, &program).unwrap();
    scene.is_collected_after_all();
}

#[test]
fn a_broken_map_is_named() {
    let scene = Scene::new();
    let program = fs::read(scene.shop.path("prog")).unwrap();
    let map = section(&scene.shop, ".headcount");
    let half = &map[..map.len() / 2];
    let mut wrong = map.clone();
    for byte in &mut wrong[9..40] {
        *byte ^= 0x55;
    }
    let garbage: Vec<u8> = (0..777_u32).map(|i| ((i * i) >> 3) as u8).collect();
    for (bytes, what) in [
        (&garbage[..], "garbage"),
        (&[], "empty"),
        (half, "half"),
        (&wrong, "changed"),
        (&map[..9], "a head"),
    ] {
        fs::write(scene.shop.path("prog"), &program).unwrap();
        scene.shop.write("section", bytes);
        scene
            .shop
            .must(&["objcopy", "--update-section", ".headcount=section", "prog"]);
        let said = scene.complains(&["collect"], what);
        assert!(said.stderr.contains("/prog: "), "{what}: {said:?}");
        assert!(said.stderr.contains("--program"), "{what}: {said:?}");
    }
    for missing in [".headcount", "headcount_ids", "headcount_counters"] {
        fs::write(scene.shop.path("prog"), &program).unwrap();
        scene.shop.must(&[
            "objcopy",
            "--rename-section",
            &format!("{missing}=renamed"),
            "prog",
        ]);
        let said = scene.complains(&["collect"], missing);
        assert!(
            said.stderr.contains(&format!("has no section {missing}")),
            "{said:?}"
        );
    }
    for (bytes, what) in [
        (&b""[..], "an empty program"),
        (b"#!/bin/sh\n", "a script"),
        (&program[..5000], "half a program"),
    ] {
        fs::write(scene.shop.path("prog"), bytes).unwrap();
        scene.complains(&["collect"], what);
    }
    fs::write(scene.shop.path("prog"), &program).unwrap();
    scene.is_collected_after_all();
}

/// The bytes of a section of `prog`.
fn section(shop: &Workshop, name: &str) -> Vec<u8> {
    let dump = format!("{name}=dumped");
    shop.must(&["objcopy", "--dump-section", &dump, "prog", "copy"]);
    fs::read(shop.path("dumped")).unwrap()
}

#[test]
fn a_profile_that_cannot_be_written_is_named() {
    let scene = Scene::new();
    let shop = &scene.shop;
    fs::create_dir(shop.path("folder.db")).unwrap();
    shop.write("garbage.db", "garbage");
    shop.write("almost.db", b"SQLite format 3\0and then garbage".repeat(40));
    for profile in [
        "folder.db",
        "garbage.db",
        "almost.db",
        "/proc/x.db",
        "/none/x.db",
        "/dev/full",
    ] {
        let said = scene.complains(&["collect", "-o", profile], profile);
        assert!(
            said.stderr.starts_with(&format!("headcount: {profile}: ")),
            "{said:?}"
        );
    }
    assert_eq!(fs::read(shop.path("garbage.db")).unwrap(), b"garbage");
    scene.is_collected_after_all();
}

#[test]
fn a_full_disk_loses_nothing() {
    let scene = Scene::new();
    let shop = &scene.shop;
    // A limit on the size of files, in blocks of 512 bytes or a kibibyte.
    for blocks in [1, 8, 30] {
        let script = format!("ulimit -f {blocks} && exec '{HEADCOUNT}' collect -o limited.db");
        let before = fs::read(&scene.file).unwrap();
        let said = shop.run(&["sh", "-c", &script]);
        assert_decent(&said, "ulimit -f");
        assert_eq!(said.status, Some(2), "{said:?}");
        assert!(said.stderr.contains("limited.db: "), "{said:?}");
        assert!(said.stderr.contains("nothing was stored"), "{said:?}");
        assert_eq!(fs::read(&scene.file).unwrap(), before);
    }
    // A disk that is full in earnest, where we may make one.
    fs::create_dir(shop.path("small")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=32k none small && '{HEADCOUNT}' collect -o small/x.db; echo status $?; ls small/x.db"
    );
    let said = shop.run(&["unshare", "-rm", "sh", "-c", &script]);
    match said.stdout.contains("status")
        && !said.stderr.contains("mount")
        && !said.stderr.contains("unshare")
    {
        true => {
            assert!(said.stdout.starts_with("status 2"), "{said:?}");
            assert!(
                said.stderr
                    .contains("small/x.db: no room on the disk; nothing was stored"),
                "{said:?}"
            );
        }
        false => eprintln!("skipped: no small disk can be made here: {said:?}"),
    }
    assert!(scene.file.exists());
    // What a failed try left behind is no obstacle.
    let said = shop.headcount(&["collect", "-o", "limited.db"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert_eq!(shop.functions_of(&["limited.db"])["helper"].calls, 100);
}

#[test]
fn a_folder_that_cannot_be_read_is_named() {
    let shop = Workshop::new();
    shop.write("file", "");
    let said = shop.headcount(&["collect", "file"]);
    assert_decent(&said, "a file for a folder");
    assert_eq!(said.status, Some(2));
    assert!(said.stderr.starts_with("headcount: file: "), "{said:?}");
    let said = shop.headcount(&["collect", "none"]);
    assert_eq!(said.status, Some(2));
    assert!(
        said.stderr
            .starts_with("headcount: none: no counter files of yours; run a program"),
        "{said:?}"
    );
}

#[test]
fn a_running_program_is_not_in_the_way_of_a_broken_file() {
    // Reading verbs go on with what there is.
    let scene = Scene::new();
    scene.shop.must(&["prog"]);
    fs::write(&scene.file, "broken").unwrap();
    let said = said(
        scene
            .shop
            .command(HEADCOUNT)
            .args(["report", "--format", "csv"]),
    );
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(said.stdout.contains(",helper,"), "{said:?}");
    assert!(said.stderr.contains("is no counter file"), "{said:?}");
    assert!(Path::new(&scene.file).exists());
}

#[test]
fn a_profile_is_not_made_through_a_link_and_no_count_is_lost() {
    let shop = Workshop::with("it", "int main(void) { return 3; }\n", &[]);
    std::os::unix::fs::symlink("elsewhere", shop.path("link.db")).unwrap();
    let said = shop.counted_alone(&["-o", "link.db", "./it"]);
    assert_eq!(said.status, Some(3), "{said:?}");
    let told = "link.db: is a link to elsewhere, where no profile is";
    assert!(said.stderr.contains(told), "{said:?}");
    assert!(!shop.path("elsewhere").exists());
    let kept = shop.headcount(&["collect", "link.counts", "-o", "other.db"]);
    assert_eq!(kept.status, Some(0), "{kept:?}");
    let report = shop.headcount(&["report", "other.db", "--only", "main"]);
    assert!(report.stdout.contains("main"), "{report:?}");
    // One that leads to a profile is as good as the profile.
    std::os::unix::fs::symlink("other.db", shop.path("headcount.db")).unwrap();
    let said = shop.counted_alone(&["./it"]);
    assert_eq!((said.stderr.as_str(), said.status), ("", Some(3)));
    let runs = shop.headcount(&["runs", "other.db", "--format", "csv"]);
    assert_eq!(runs.stdout.lines().count(), 3, "{runs:?}");
}
