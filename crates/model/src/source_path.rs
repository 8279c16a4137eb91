//! The names of source files.

/// A path that a compiler names, whole: in the folder it ran in, and without detours. A header that
/// is included as `a/../common/bits.h` and as `common/bits.h` is one file.
pub fn source_path(base: &str, path: &str) -> String {
    let whole = match path.starts_with('/') || base.is_empty() {
        true => path.to_owned(),
        false => format!("{}/{path}", base.trim_end_matches('/')),
    };
    let root = if whole.starts_with('/') { "/" } else { "" };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match (part, parts.last()) {
            ("" | ".", _) => (),
            ("..", Some(last)) if *last != ".." => _ = parts.pop(),
            ("..", None) if !root.is_empty() => (),
            _ => parts.push(part),
        }
    }
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::source_path;

    #[test]
    fn a_path_is_joined_once_and_without_detours() {
        for (base, path, whole) in [
            ("/build", "a.c", "/build/a.c"),
            ("/build", "./a.c", "/build/a.c"),
            ("/build/", ".", "/build"),
            ("/build", "", "/build"),
            ("/build", "/usr/a.h", "/usr/a.h"),
            ("/build/x", "../common/a.h", "/build/common/a.h"),
            ("/build", "x/../../y//a.h", "/y/a.h"),
            ("/build", "../../../a.h", "/a.h"),
            ("", "./a.c", "a.c"),
            ("", "../a.c", "../a.c"),
            ("x", "../../a.c", "../a.c"),
        ] {
            assert_eq!(source_path(base, path), whole, "{base} {path}");
        }
    }
}
