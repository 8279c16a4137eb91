//! Debug information may name any file. What is private is shown only where the user wants it to be,
//! and what is written of it is as private.

use crate::workshop::{HEADCOUNT, Said, Workshop, is_root, said};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

/// A word that no report has of itself.
const SECRET: &str = "open sesame";

const NOBODY: u32 = 65534;

/// A program whose `main` claims to be in another file.
fn claiming(file: &Path) -> String {
    format!(
        "#line 1 \"{}\"\nint main(void)\n{{\n    return 0;\n}}\n",
        file.display()
    )
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

/// Writes a file of four lines that only its owner may read.
fn keep(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{SECRET}\n1\n2\n3\n")).unwrap();
    set_mode(path, 0o600);
}

/// A folder with a program, counted, that claims to be in a file.
fn counted(file: &Path) -> Workshop {
    let shop = Workshop::with("it", &claiming(file), &[]);
    shop.must_count_alone(&["./it"]);
    shop
}

/// What annotate says in a folder, of the profile of another.
fn annotate(shop: &Workshop, folder: &Path, words: &[&str]) -> Said {
    let mut command = shop.command(HEADCOUNT);
    command.current_dir(folder).args(["annotate", "-i"]);
    said(command.arg(shop.path("headcount.db")).args(words))
}

#[track_caller]
fn assert_shown(said: &Said) {
    assert!(said.stdout.contains(SECRET), "{said:?}");
    assert!(!said.stderr.contains("not shown"), "{said:?}");
}

#[track_caller]
fn assert_kept(said: &Said, file: &Path) {
    assert!(!said.stdout.contains(SECRET), "{said:?}");
    let told = format!("{}: not shown, because it is private", file.display());
    assert_eq!(said.stderr.matches(&told).count(), 1, "{said:?}");
    assert!(said.stderr.contains("--source DIR"), "{said:?}");
}

#[test]
fn a_private_file_elsewhere_is_not_shown_unless_its_folder_is_named() {
    let elsewhere = Workshop::new();
    let file = elsewhere.path("etc/shadow");
    keep(&file);
    let shop = counted(&file);
    for words in [
        &["annotate"][..],
        &["annotate", "--json"],
        &["annotate", "--asm"],
    ] {
        assert_kept(&shop.headcount(words), &file);
    }
    let page = shop.headcount(&["html", "-o", "page.html"]);
    assert_kept(&page, &file);
    let folder = elsewhere.path("etc");
    let named = ["annotate", "--source", folder.to_str().unwrap()];
    assert_shown(&shop.headcount(&named));
    // Whoever goes there wants it, too.
    assert_shown(&annotate(&shop, &folder, &[]));
}

#[test]
fn what_everybody_can_read_is_shown_wherever_it_is() {
    let elsewhere = Workshop::new();
    let file = elsewhere.path("include/it.h");
    keep(&file);
    let shop = counted(&file);
    set_mode(&file, 0o644);
    set_mode(&elsewhere.path(""), 0o700);
    // It is in a folder that is private.
    assert_kept(&shop.headcount(&["annotate"]), &file);
    set_mode(&elsewhere.path(""), 0o755);
    assert_shown(&shop.headcount(&["annotate"]));
}

#[test]
fn a_link_to_a_private_file_is_not_a_way_around() {
    let elsewhere = Workshop::new();
    keep(&elsewhere.path("shadow"));
    let shop = Workshop::with("it", &claiming(Path::new("innocent.c")), &[]);
    symlink(elsewhere.path("shadow"), shop.path("innocent.c")).unwrap();
    shop.must_count_alone(&["./it"]);
    let file = Path::new("innocent.c");
    assert_kept(&shop.headcount(&["annotate"]), file);
    assert_kept(&shop.headcount(&["annotate", "--write", ".bb"]), file);
    assert!(!shop.path("innocent.c.bb").exists());
}

#[test]
fn what_is_hidden_in_a_folder_that_nobody_named_stays_hidden() {
    let home = Workshop::new();
    let key = home.path(".ssh/id_rsa");
    keep(&key);
    let shop = counted(&key);
    let shown = Path::new(".ssh/id_rsa");
    assert_kept(&annotate(&shop, &home.path(""), &[]), shown);
    assert_shown(&annotate(&shop, &home.path(".ssh"), &[]));
    assert_shown(&annotate(&shop, &home.path(""), &["--source", ".ssh"]));
}

#[test]
fn sources_of_a_private_project_are_shown_from_elsewhere() {
    let project = Workshop::new();
    let (source, program) = (project.path("src/it.c"), project.path("target/it"));
    keep(&source);
    fs::create_dir_all(project.path("target")).unwrap();
    project.write("main.c", claiming(&source));
    project.must(&["gcc", "-g", "main.c", "-o", "target/it"]);
    let shop = Workshop::new();
    shop.must_count_alone(&[program.to_str().unwrap()]);
    // Nothing says that `src` is of the same project.
    assert_kept(&shop.headcount(&["annotate"]), &source);
    let home = format!(
        "CMAKE_HOME_DIRECTORY:INTERNAL={}\n",
        project.path("src").display()
    );
    project.write("target/CMakeCache.txt", home);
    assert_shown(&shop.headcount(&["annotate"]));
    fs::remove_file(project.path("target/CMakeCache.txt")).unwrap();
    assert_kept(&shop.headcount(&["annotate"]), &source);
    fs::create_dir(project.path(".git")).unwrap();
    assert_shown(&shop.headcount(&["annotate"]));
    if is_root() {
        // What is somebody else's is none of the program's business.
        chown(&program, Some(NOBODY), Some(NOBODY)).unwrap();
        assert_kept(&shop.headcount(&["annotate"]), &source);
        chown(&program, Some(0), Some(0)).unwrap();
    }
    // Another program in that place proves nothing.
    project.must(&["gcc", "-g", "-O2", "-DOTHER", "main.c", "-o", "target/it"]);
    assert_kept(&shop.headcount(&["annotate"]), &source);
}

#[test]
fn what_is_written_of_a_private_source_is_private() {
    let shop = Workshop::with("it", "int main(void)\n{\n    return 0;\n}\n", &[]);
    shop.must_count_alone(&["./it"]);
    let html = ["html", "-o", "out"];
    let listing = ["annotate", "-o", "out"];
    let json = ["annotate", "--json", "-o", "out"];
    let beside = ["annotate", "--write", ".out"];
    for (words, name) in [
        (&html[..], "out"),
        (&listing, "out"),
        (&json, "out"),
        (&beside, "it.c.out"),
    ] {
        let out = shop.path(name);
        for (folder, source, before, after) in [
            (0o755, 0o644, None, 0o644),
            (0o755, 0o640, None, 0o600),
            (0o755, 0o600, None, 0o600),
            (0o755, 0o600, Some(0o664), 0o600),
            (0o755, 0o640, Some(0o666), 0o600),
            (0o755, 0o644, Some(0o604), 0o604),
            (0o700, 0o644, None, 0o600),
        ] {
            set_mode(&shop.path("."), folder);
            let _ = fs::remove_file(&out);
            if let Some(before) = before {
                fs::write(&out, "").unwrap();
                set_mode(&out, before);
            }
            set_mode(&shop.path("it.c"), source);
            let said = shop.headcount(words);
            assert_eq!(said.status, Some(0), "{said:?}");
            assert_eq!(mode(&out), after, "{words:?}: {source:o} {before:?}");
            assert!(out.metadata().unwrap().len() > 0);
        }
    }
}
