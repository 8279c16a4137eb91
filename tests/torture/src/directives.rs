//! What do the DejaGnu comments of a test program ask for?
//!
//! The comments hold Tcl lists, `{ dg-options "-fwrapv" { target lp64 } }`.
//! Only what `gcc.c-torture` uses is understood; a requirement we do not know
//! is not met, so such a program is left out by name and never silently.

/// The machine all selectors are asked about.
const TRIPLET: &str = "x86_64-pc-linux-gnu";

/// What x86-64 Linux has, in DejaGnu's words (`target-supports.exp`).
const EFFECTIVE_TARGETS: &[&str] = &[
    "alloca",
    "c99_runtime",
    "dfp",
    "double64plus",
    "fileio",
    "fpic",
    "indirect_jumps",
    "int128",
    "int32",
    "int32plus",
    "label_values",
    "longlong64",
    "lp64",
    "mmap",
    "return_address",
    "signal",
    "stdint_types",
    "trampolines",
    "untyped_assembly",
    "unwrapped",
];

/// How to treat one program at one set of flags.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Directives {
    pub options: Vec<String>,
    /// Why the program is not for this machine.
    pub skip: Option<String>,
}

pub fn read(source: &str, flags: &[String]) -> Directives {
    let mut found = Directives::default();
    for directive in directives_in(source) {
        let words = words(directive);
        match words.split_first() {
            Some((&"dg-options" | &"dg-additional-options", rest)) => {
                found.options.extend(options(rest));
            }
            Some((&"dg-require-effective-target", [target, ..])) if !holds(target) => {
                found.skip = Some(format!("needs effective target {target}"));
            }
            Some((&"dg-skip-if", [reason, selector, filters @ ..]))
                if holds(selector) && concerns(filters, flags) =>
            {
                found.skip = Some(format!("skipped by the suite: {reason}"));
            }
            _ => {}
        }
    }
    found
}

/// The insides of every `{ dg-… }`.
fn directives_in(source: &str) -> impl Iterator<Item = &str> {
    source.match_indices("{ dg-").filter_map(|(at, _)| {
        let body = &source[at + 1..];
        closing_brace(body).map(|end| body[..end].trim())
    })
}

fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 1;
    text.char_indices().find_map(|(at, letter)| {
        depth += match letter {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        (depth == 0).then_some(at)
    })
}

/// The elements of a Tcl list, their outer quotes or braces removed.
fn words(list: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = list.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '{' => split(&rest[1..], closing_brace(&rest[1..]), 1),
            '"' => split(&rest[1..], rest[1..].find('"'), 1),
            _ => split(rest, rest.find(char::is_whitespace), 0),
        };
        found.push(word);
        rest = after.trim_start();
    }
    found
}

fn split(text: &str, end: Option<usize>, closing: usize) -> (&str, &str) {
    let end = end.unwrap_or(text.len());
    (&text[..end], text.get(end + closing..).unwrap_or(""))
}

fn options(arguments: &[&str]) -> Vec<String> {
    match arguments {
        [options] => split_options(options),
        [options, selector, ..] if holds(selector) => split_options(options),
        _ => Vec::new(),
    }
}

fn split_options(options: &str) -> Vec<String> {
    options
        .split_whitespace()
        .map(|option| option.trim_matches('"').to_owned())
        .collect()
}

/// Is this selector true of x86-64 Linux?
fn holds(selector: &str) -> bool {
    let words = words(selector);
    let words = words.strip_prefix(&["target"]).unwrap_or(&words);
    if let Some(at) = words.iter().position(|word| *word == "||") {
        return any_holds(&words[..at]) || any_holds(&words[at + 1..]);
    }
    if let Some(at) = words.iter().position(|word| *word == "&&") {
        return any_holds(&words[..at]) && any_holds(&words[at + 1..]);
    }
    any_holds(words)
}

fn any_holds(words: &[&str]) -> bool {
    match words {
        ["!", rest @ ..] => !any_holds(rest),
        [word] if word.contains(char::is_whitespace) => holds(word),
        _ => words.iter().any(|word| atom_holds(word)),
    }
}

fn atom_holds(atom: &str) -> bool {
    EFFECTIVE_TARGETS.contains(&atom) || (atom.contains('-') && matches_glob(atom, TRIPLET))
}

/// Do the include and exclude lists of a `dg-skip-if` speak of these flags?
fn concerns(filters: &[&str], flags: &[String]) -> bool {
    let mentions = |list: &str| {
        words(list)
            .iter()
            .any(|pattern| *pattern == "*" || flags.iter().any(|flag| flag == pattern))
    };
    let included = filters.first().is_none_or(|list| mentions(list));
    let excluded = filters.get(1).is_some_and(|list| mentions(list));
    included && !excluded
}

/// Shell patterns with `*` and `?`, as in target triplets.
pub fn matches_glob(pattern: &str, text: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = &pattern[1..];
            text.char_indices()
                .any(|(at, _)| matches_glob(rest, &text[at..]))
                || rest.is_empty()
        }
        Some(first) => text.chars().next().is_some_and(|letter| {
            (first == '?' || first == letter)
                && matches_glob(&pattern[first.len_utf8()..], &text[letter.len_utf8()..])
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_o0(source: &str) -> Directives {
        read(source, &["-O0".to_owned()])
    }

    #[test]
    fn options_are_taken_when_their_target_is_ours() {
        let source = r#"
            /* { dg-options "-fwrapv -Wno-psabi" } */
            /* { dg-additional-options "-mno-stv" { target i?86-*-* x86_64-*-* } } */
            /* { dg-options "-mtune=i686" { target { { i?86-*-* x86_64-*-* } && ia32 } } } */
            /* { dg-additional-options "-DSIGNAL_SUPPRESS" { target { ! signal } } } */
            /* { dg-options "-mno-eabi" { target powerpc-*-eabi* } } */
            /* { dg-options { "-fno-common" } } */"#;
        assert_eq!(
            at_o0(source).options,
            ["-fwrapv", "-Wno-psabi", "-mno-stv", "-fno-common"]
        );
    }

    #[test]
    fn an_unknown_requirement_is_a_named_skip() {
        let source = "/* { dg-require-effective-target int32plus } */";
        assert_eq!(at_o0(source).skip, None);
        let source = "{ dg-require-effective-target vect_unheard_of }";
        assert_eq!(
            at_o0(source).skip.unwrap(),
            "needs effective target vect_unheard_of"
        );
    }

    #[test]
    fn skips_look_at_the_machine_and_at_the_flags() {
        assert_eq!(at_o0(r#"{ dg-skip-if "io" { freestanding } }"#).skip, None);
        assert_eq!(
            at_o0(r#"{ dg-skip-if "x" { ! { i?86-*-* x86_64-*-* } } }"#).skip,
            None
        );
        assert_eq!(
            at_o0(r#"{ dg-skip-if "more" { *-*-* } "-O1" "" }"#).skip,
            None
        );
        assert_eq!(
            at_o0(r#"{ dg-skip-if "a" { ! alloca } { "-O0" } { "" } }"#).skip,
            None
        );
        assert!(
            at_o0(r#"{ dg-skip-if "more" { *-*-* } { "-O0" } { "" } }"#)
                .skip
                .is_some()
        );
    }
}
