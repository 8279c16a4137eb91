//! Which source files may be shown?
//!
//! Debug information names files, and anyone may have written it: a program with
//! `#line 1 "/etc/shadow"` in its source would have root show that file, on a page that is passed on.
//! That the reader may read a file proves nothing, nor does that it is the reader's own: so are the
//! reader's keys. So:
//!
//! - What everybody on this machine can read holds no secret, and is shown wherever it is.
//! - What is private is shown below folders that the user chose: by `--source`, by being there, by
//!   keeping the profile there, or by keeping the counted program there.
//! - In folders that nobody named, what is hidden (`.ssh`, `.env`) stays hidden.
//! - Below the program's folder only what belongs to the program's owner, who could have shown it to
//!   us anyway; and only if it is the very program that was counted, for a profile may name any.
//! - A folder stands for the project that it is part of, as far as its owner's files go: programs are
//!   built in `build` or `target`, and their sources are elsewhere; also beside it, if the files of a
//!   build say so.
//! - Where cargo, rustup and go unpack what they download, there is nothing private.
//!
//! Where a link leads decides, not where it is.

use headcount_monitor::foreign_file;
use headcount_profile::Loaded;
use std::cell::OnceCell;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The folders whose private files may be shown.
pub struct Disclosure {
    /// Named by the user for this, or full of what was downloaded.
    open: Vec<PathBuf>,
    /// The current one, and the profile's.
    near: Vec<PathBuf>,
    /// Files and builds of the programs.
    programs: Vec<(PathBuf, String)>,
    /// The projects of all these, and whose files in them. To know that takes reading programs whole.
    projects: OnceCell<Vec<(PathBuf, u32)>>,
}

impl Disclosure {
    /// Those that the user named come first.
    pub fn new(loaded: &Loaded, named: &[PathBuf], profile: Option<&Path>) -> Self {
        let real = |folder: &Path| folder.canonicalize().ok();
        let mut open: Vec<PathBuf> = named.iter().filter_map(|it| real(it)).collect();
        open.extend(downloads().iter().filter_map(|it| real(it)));
        let beside = profile.and_then(Path::parent);
        let beside = beside.filter(|it| !it.as_os_str().is_empty());
        let near = [Some(Path::new(".")), beside].into_iter().flatten();
        let near = near.filter_map(real).filter(|it| is_somebodys(it));
        let program = |it: &headcount_model::Counted| {
            (PathBuf::from(&it.module.path), it.module.build_id.clone())
        };
        Self {
            open,
            near: near.collect(),
            programs: loaded.counted.iter().map(program).collect(),
            projects: OnceCell::new(),
        }
    }

    /// May a file be shown? Its path has no links in it.
    pub fn allows(&self, path: &Path, about: &Metadata) -> bool {
        let is_plain = |below: &Path| !below.components().any(is_hidden);
        let is_below = |folder: &PathBuf| path.strip_prefix(folder).is_ok_and(is_plain);
        is_everybodys(path, about)
            || self.open.iter().any(|folder| path.starts_with(folder))
            || self.near.iter().any(is_below)
            || self
                .projects()
                .iter()
                .any(|(folder, owner)| *owner == about.uid() && is_below(folder))
    }

    fn projects(&self) -> &[(PathBuf, u32)] {
        self.projects.get_or_init(|| {
            let programs = self.programs.iter();
            let programs = programs.filter_map(|(path, id)| built(path, id));
            let owned = |it: &PathBuf| Some((it.clone(), it.metadata().ok()?.uid()));
            let folders = self.near.iter().filter_map(owned).chain(programs);
            let projects = folders.flat_map(|(it, owner)| {
                let whole = [Some(project(&it)), sources_of(&it)];
                whole.into_iter().flatten().map(move |it| (it, owner))
            });
            let mut all: Vec<_> = projects.collect();
            all.sort();
            all.dedup();
            all
        })
    }
}

/// The folder of a program, and its owner; if it is still the program that was counted.
fn built(program: &Path, build_id: &str) -> Option<(PathBuf, u32)> {
    let program = program.canonicalize().ok()?;
    let folder = program.parent().filter(|it| is_somebodys(it))?;
    let about = program.metadata().ok().filter(Metadata::is_file)?;
    let bytes = foreign_file::bytes(&program).ok()?;
    let is_it = headcount_binary::is_build((*bytes).as_ref(), build_id);
    is_it.then(|| (folder.to_owned(), about.uid()))
}

/// The folder of the project that a folder is part of, or itself: the next one that is under version
/// control; else the next one that something is built in, with those around it that are the same.
fn project(folder: &Path) -> PathBuf {
    const VERSIONS: [&str; 3] = [".git", ".hg", ".svn"];
    const BUILDS: [&str; 11] = [
        "CMakeCache.txt",
        "CMakeLists.txt",
        "Cargo.toml",
        "GNUmakefile",
        "Makefile",
        "Makefile.in",
        "build.ninja",
        "configure",
        "go.mod",
        "makefile",
        "meson.build",
    ];
    let is_within = |it: &&Path| is_somebodys(it) && !is_home(it);
    let around: Vec<&Path> = folder.ancestors().take_while(is_within).collect();
    let has = |folder: &Path, marks: &[&str]| marks.iter().any(|it| folder.join(it).exists());
    let under_control = around.iter().find(|it| has(it, &VERSIONS));
    let is_built_in = |it: &&&Path| has(it, &BUILDS);
    let built_in = || {
        let from = around.iter().skip_while(|it| !is_built_in(it));
        from.take_while(is_built_in).last()
    };
    let project = under_control.or_else(built_in);
    project.copied().unwrap_or(folder).to_owned()
}

/// Where the sources of a folder are that something is built in, if they are beside it.
fn sources_of(folder: &Path) -> Option<PathBuf> {
    const SAYS: [(&str, &str); 2] = [
        ("CMakeCache.txt", "CMAKE_HOME_DIRECTORY:INTERNAL="),
        ("Makefile", "srcdir = "),
    ];
    const LARGEST: u64 = 1 << 24;
    let around = folder.ancestors().take_while(|it| is_somebodys(it));
    let said = |build: &Path| {
        SAYS.iter().find_map(|(file, words)| {
            let text = foreign_file::read(&build.join(file), LARGEST).ok()?;
            let text = String::from_utf8_lossy(&text);
            let folder = text.lines().find_map(|line| line.strip_prefix(words))?;
            let sources = build.join(folder.trim()).canonicalize().ok()?;
            let is_beside = sources.starts_with(build.parent()?) && !is_home(&sources);
            (is_beside && is_somebodys(&sources)).then_some(sources)
        })
    };
    around.into_iter().find_map(said)
}

/// Can everybody read a file? What the kernel says in `/proc` and `/sys` depends on who asks.
pub fn is_everybodys(path: &Path, about: &Metadata) -> bool {
    let mut around = path.ancestors().skip(1);
    let is_kernels = ["/proc", "/sys"].iter().any(|it| path.starts_with(it));
    about.mode() & 0o004 != 0
        && !is_kernels
        && around.all(|folder| folder.metadata().is_ok_and(|it| it.mode() & 0o001 != 0))
}

/// Is a folder some user's or some project's? In those of the system lies what concerns no program,
/// and so it does where everybody may write.
fn is_somebodys(folder: &Path) -> bool {
    const THEMSELVES: [&str; 13] = [
        "/",
        "/home",
        "/media",
        "/mnt",
        "/opt",
        "/run",
        "/srv",
        "/tmp",
        "/usr",
        "/usr/local",
        "/var",
        "/var/lib",
        "/var/tmp",
    ];
    const WHOLE: [&str; 18] = [
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/proc",
        "/run/credentials",
        "/run/secrets",
        "/sbin",
        "/sys",
        "/usr/bin",
        "/usr/lib",
        "/usr/sbin",
        "/usr/share",
        "/var/log",
    ];
    let is_systems = THEMSELVES.iter().any(|it| folder == Path::new(it))
        || WHOLE.iter().any(|it| folder.starts_with(it));
    !is_systems && folder.metadata().is_ok_and(|it| it.mode() & 0o002 == 0)
}

fn is_hidden(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."))
}

/// Where tools of languages unpack the sources that they download.
fn downloads() -> Vec<PathBuf> {
    let under = |variable: &str, otherwise: &str| {
        let said = std::env::var_os(variable).filter(|it| !it.is_empty());
        let said = said.map(PathBuf::from).filter(|it| it.is_absolute());
        said.or_else(|| Some(home()?.join(otherwise)))
    };
    let cargo = under("CARGO_HOME", ".cargo");
    let inside = |folder: &Option<PathBuf>, path: &str| Some(folder.as_ref()?.join(path));
    let all = [
        inside(&cargo, "registry/src"),
        inside(&cargo, "git/checkouts"),
        inside(&under("RUSTUP_HOME", ".rustup"), "toolchains"),
        inside(&under("GOPATH", "go"), "pkg/mod"),
    ];
    all.into_iter().flatten().collect()
}

/// Is this where all that somebody has is?
fn is_home(folder: &Path) -> bool {
    folder == Path::new("/root")
        || folder.parent() == Some(Path::new("/home"))
        || home().is_some_and(|it| it == folder)
}

/// The user's folder, if it is the user's (`sudo` may leave another's).
fn home() -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME")?)
        .canonicalize()
        .ok()?;
    let is_own = home.metadata().is_ok_and(|it| foreign_file::is_own(&it));
    is_own.then_some(home)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn folders_of_the_system_are_nobodys() {
        for folder in [
            "/",
            "/etc",
            "/etc/ssl",
            "/usr/lib/debug",
            "/proc/self",
            "/tmp",
        ] {
            assert!(!is_somebodys(Path::new(folder)), "{folder}");
        }
        let own = tempfile::tempdir().unwrap();
        assert!(is_somebodys(own.path()));
    }

    #[test]
    fn a_project_is_found_from_where_it_is_built() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
        let make = |path: &str| {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "").unwrap();
        };
        fs::create_dir_all(at("plain/bin")).unwrap();
        assert_eq!(project(&at("plain/bin")), at("plain/bin"));
        for mark in ["cmake/CMakeLists.txt", "cmake/build/Makefile"] {
            make(mark);
        }
        fs::create_dir_all(at("cmake/build/tests")).unwrap();
        assert_eq!(project(&at("cmake/build/tests")), at("cmake"));
        for mark in [
            "work/Cargo.toml",
            "work/.git/HEAD",
            "work/crates/it/Cargo.toml",
        ] {
            make(mark);
        }
        assert_eq!(project(&at("work/crates/it")), at("work"));
        // What lies around a project is none of it.
        make("around/Makefile");
        make("around/projects/it/Makefile");
        assert_eq!(project(&at("around/projects/it")), at("around/projects/it"));
    }

    #[test]
    fn hidden_is_what_begins_with_a_dot() {
        let is = |path: &str| Path::new(path).components().any(is_hidden);
        assert!(is(".ssh/id_rsa") && is("a/.env"));
        assert!(!is("a/b.c") && !is("./a"));
    }

    #[test]
    fn what_everybody_can_read_is_no_secret() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.c");
        fs::write(&file, "").unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let is = || is_everybodys(&file, &file.metadata().unwrap());
        for (outside, inside, expected) in [
            (0o755, 0o644, true),
            (0o711, 0o604, true),
            (0o700, 0o644, false),
            (0o755, 0o640, false),
        ] {
            set(folder.path(), outside);
            set(&file, inside);
            assert_eq!(is(), expected, "{outside:o} {inside:o}");
        }
    }
}
