//! What Debian's `icont` makes of a source, byte for byte.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use headcount_icon::{Error, Found, Translation, translate};

/// The Icon program library: package icon-ipl.
pub const LIBRARY: &str = "/usr/lib/icon-ipl";

/// A fresh folder for a test.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs `icont` in a folder. Whether it was content.
pub fn icont(folder: &Path, words: &[&str]) -> bool {
    let output = Command::new("icont")
        .args(words)
        .current_dir(folder)
        .output()
        .expect("the packages icont, iconx and icon-ipl are needed");
    output.status.success()
}

/// Our translation of a file in a folder. What it includes is there, or in the library.
pub fn ours(folder: &Path, name: &str) -> Result<Translation, Error> {
    let text = std::fs::read(folder.join(name)).expect(name);
    translate(name.as_bytes(), text.into(), &mut |wanted| {
        let wanted = std::str::from_utf8(wanted).ok()?;
        let found = |name: String| {
            let text: Rc<[u8]> = std::fs::read(folder.join(&name)).ok()?.into();
            Some(Found {
                name: name.into_bytes(),
                text,
            })
        };
        found(wanted.to_owned()).or_else(|| found(format!("{LIBRARY}/{wanted}")))
    })
}

/// Our translation of a text alone.
pub fn ours_alone(text: &[u8]) -> Result<Translation, Error> {
    translate(b"alone.icn", text.into(), &mut |_| None)
}

/// What `icont` and we disagree about in a file, if we do.
pub fn difference(folder: &Path, name: &str) -> Option<String> {
    let stem = name.strip_suffix(".icn").unwrap_or(name);
    let theirs = icont(folder, &["-s", "-c", name]);
    match (theirs, ours(folder, name)) {
        (false, Err(_)) => None,
        (false, Ok(_)) => Some("icont refuses it, we do not".to_owned()),
        (true, Err(error)) => Some(format!("we refuse it: {error}")),
        (true, Ok(ours)) => {
            let made = [("u1", ours.first_file()), ("u2", ours.second_file())];
            made.into_iter().find_map(|(ending, ours)| {
                let path = folder.join(format!("{stem}.{ending}"));
                let theirs = std::fs::read(&path).unwrap();
                (ours != theirs).then(|| format!(".{ending}: {}", first_lines(&theirs, &ours)))
            })
        }
    }
}

fn first_lines(theirs: &[u8], ours: &[u8]) -> String {
    let lines = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text).into_owned();
        text.lines().map(str::to_owned).collect()
    };
    let (theirs, ours) = (lines(theirs), lines(ours));
    let same = theirs.iter().zip(&ours).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(3);
    let some =
        |lines: &[String]| lines[from.min(lines.len())..(same + 4).min(lines.len())].join(" | ");
    format!(
        "line {}: icont {} -- we {}",
        same + 1,
        some(&theirs),
        some(&ours)
    )
}

/// Numbers that look like chance, and are the same in every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}
