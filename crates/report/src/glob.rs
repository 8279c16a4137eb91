//! Patterns that users type: `*` is any text, `?` is any one character.

/// A pattern for names of functions and files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Vec<char>);

impl Pattern {
    /// The pattern a user typed. Every text is one.
    pub fn new(text: &str) -> Self {
        Self(text.chars().collect())
    }

    /// Is all of `name` of this form?
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut in_pattern) = (0, 0);
        // After a mismatch the last star, and only that one, takes one character more.
        let mut last_star: Option<(usize, usize)> = None;
        while at < name.len() {
            match self.0.get(in_pattern) {
                Some('*') => {
                    last_star = Some((in_pattern, at));
                    in_pattern += 1;
                }
                Some(c) if *c == '?' || *c == name[at] => {
                    in_pattern += 1;
                    at += 1;
                }
                _ => match last_star {
                    None => return false,
                    Some((star, taken)) => {
                        in_pattern = star + 1;
                        at = taken + 1;
                        last_star = Some((star, at));
                    }
                },
            }
        }
        self.0[in_pattern..].iter().all(|c| *c == '*')
    }

    /// Is the path, or an end of it that begins after a `/`, of this form?
    pub fn matches_path(&self, path: &str) -> bool {
        let mut ends = path.match_indices('/').map(|(slash, _)| &path[slash + 1..]);
        self.matches(path) || ends.any(|end| self.matches(end))
    }

    /// Is the path of a module of this form, or its file name without what begins with `.so`?
    pub fn matches_module(&self, path: &str) -> bool {
        let name = base_name(path).split_once(".so");
        self.matches_path(path) || name.is_some_and(|(name, _)| self.matches(name))
    }
}

/// The last parts of a path, as many as tell it from the others.
pub fn short_name<'a>(path: &'a str, all: &[String]) -> &'a str {
    let is_like = |end: &str| {
        let mut others = all.iter().filter(|it| *it != path);
        others.any(|it| {
            it.strip_suffix(end)
                .is_some_and(|it| it.is_empty() || it.ends_with('/'))
        })
    };
    let slashes = path.rmatch_indices('/');
    let mut ends = slashes.map(|(slash, _)| &path[slash + 1..]);
    ends.find(|end| !is_like(end)).unwrap_or(path)
}

/// The last part of a path.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        let is = |pattern: &str, name: &str| Pattern::new(pattern).matches(name);
        assert!(is("max", "max") && !is("max", "maxi") && !is("max", "imax"));
        assert!(is("m*x", "mx") && is("m*x", "matrix") && !is("m*x", "matrices"));
        assert!(is("*", "") && is("**", "x") && !is("", "x") && is("", ""));
        assert!(is("?ax", "max") && !is("?ax", "ax") && is("?", "é"));
        assert!(is("a*b*c", "a-b-b-c") && !is("a*b*c", "a-c-b"));
        assert!(is("std::*::new(*)", "std::vec::Vec<T>::new(int)"));
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        assert!(!Pattern::new(&("a*".repeat(40) + "c")).matches(&"a".repeat(5000)));
    }

    #[test]
    fn a_library_matches_without_its_version() {
        let is = |pattern: &str, path: &str| Pattern::new(pattern).matches_module(path);
        for name in [
            "libm",
            "libm.so.6",
            "lib/libm.so.6",
            "libm*",
            "/lib/libm.so.6",
        ] {
            assert!(is(name, "/lib/libm.so.6"), "{name}");
        }
        assert!(!is("libm.so", "/lib/libm.so.6") && !is("m", "/lib/libm.so.6"));
        assert!(is("max", "/home/u/max") && !is("home", "/home/u/max"));
    }

    #[test]
    fn short_names_tell_paths_apart() {
        let all = [
            "/a/one/lib.so",
            "/b/one/lib.so",
            "/b/two/lib.so",
            "/b/it",
            "it",
        ];
        let all = all.map(str::to_owned);
        let short: Vec<&str> = all.iter().map(|it| short_name(it, &all)).collect();
        let expected = ["a/one/lib.so", "b/one/lib.so", "two/lib.so", "b/it", "it"];
        assert_eq!(short, expected);
        assert_eq!(short_name("/lib/libc.so.6", &all), "libc.so.6");
    }

    #[test]
    fn a_path_matches_by_its_last_parts() {
        assert!(Pattern::new("max.c").matches_path("/home/u/max.c"));
        assert!(Pattern::new("u/*.c").matches_path("/home/u/max.c"));
        assert!(!Pattern::new("ax.c").matches_path("/home/u/max.c"));
        assert!(Pattern::new("*/u/*").matches_path("/home/u/max.c"));
        assert!(!Pattern::new("u").matches_path("/home/u/max.c"));
    }
}
