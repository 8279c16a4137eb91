//! Words that a compiler is told in a file (`@file`), read and written as gcc and clang do.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Files may name files, themselves included.
const MOST_FILES: usize = 2000;

/// The words, with those that files hold in the places of the files. What is no file stays.
pub fn expanded(words: &[OsString]) -> Vec<OsString> {
    let mut left = MOST_FILES;
    let mut found = Vec::with_capacity(words.len());
    // The next word is the last of these.
    let mut todo: Vec<OsString> = words.iter().rev().cloned().collect();
    while let Some(word) = todo.pop() {
        match held_by(&word).filter(|_| left > 0) {
            Some(words) => {
                left -= 1;
                todo.extend(words.into_iter().rev());
            }
            None => found.push(word),
        }
    }
    found
}

/// Whether some of the words are in a file.
pub fn has_any(words: &[OsString]) -> bool {
    words.iter().any(|word| held_by(word).is_some())
}

fn held_by(word: &OsStr) -> Option<Vec<OsString>> {
    let path = OsStr::from_bytes(word.as_bytes().strip_prefix(b"@")?);
    // Compilers do not read pipes, which can be read only once.
    let is_file = fs::metadata(path).is_ok_and(|it| it.is_file());
    is_file.then(|| fs::read(path).ok())?.map(|it| words(&it))
}

/// The words of a text: white space is between them, unless a backslash or quotes take it in. A
/// backslash is one in quotes, too.
pub fn words(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut letters = text.iter().copied();
    while let Some(letter) = letters.next() {
        match letter {
            b'\\' => word.get_or_insert_default().extend(letters.next()),
            _ if quote == Some(letter) => quote = None,
            b'\'' | b'"' if quote.is_none() => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            _ if quote.is_none() && (letter.is_ascii_whitespace() || letter == b'\x0b') => {
                words.extend(word.take().map(OsString::from_vec));
            }
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

/// A text with these words.
pub fn text(words: &[OsString]) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        text.push(b'"');
        for letter in word.as_bytes() {
            if matches!(letter, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(*letter);
        }
        text.extend(b"\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[OsString]) -> Vec<&str> {
        words.iter().filter_map(|word| word.to_str()).collect()
    }

    #[test]
    fn quotes_and_backslashes_keep_a_word_together() {
        let text = br#"-c  'a b.c'	"-DX=\"1 2\"" c\ d
            '' -o 'it'"'"s '\'' "it's" end"#;
        assert_eq!(
            strings(&words(text)),
            [
                "-c",
                "a b.c",
                "-DX=\"1 2\"",
                "c d",
                "",
                "-o",
                "it's",
                "'",
                "it's",
                "end"
            ]
        );
        assert_eq!(strings(&words(b" \n")), Vec::<&str>::new());
        assert_eq!(strings(&words(b"\"open")), ["open"]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let all = ["", "a b", "\"q\"", "back\\slash", "it's", "@x", "a\nb"];
        let all: Vec<OsString> = all.into_iter().map(OsString::from).collect();
        assert_eq!(words(&text(&all)), all);
    }

    #[test]
    fn files_name_files_but_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let at = |name: &str| format!("@{}", path(name).display());
        fs::write(path("outer"), format!("-a {} -d", at("inner"))).unwrap();
        fs::write(path("inner"), "-b -c").unwrap();
        fs::write(path("round"), format!("x {}", at("round"))).unwrap();
        let read = |words: &[String]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            expanded(&words)
        };
        let missing = at("missing");
        let found = read(&[at("outer"), missing.clone(), "-e".into()]);
        assert_eq!(strings(&found), ["-a", "-b", "-c", "-d", &missing, "-e"]);
        assert_eq!(read(&[at("round")]).len(), MOST_FILES + 1);
    }
}
