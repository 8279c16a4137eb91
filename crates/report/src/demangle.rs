//! The linker's names as the programmer wrote them.

use std::borrow::Cow;
use std::fmt;

/// A demangled name longer than this is less readable than the linker's. Some short names, made
/// to, would otherwise grow without end.
const LONGEST: usize = 4096;

/// The name as written in Rust or C++, if the linker's name is one of theirs.
pub fn demangle(name: &str) -> Cow<'_, str> {
    if let Some(rust) = rust(name) {
        return Cow::Owned(rust);
    }
    match cpp(name) {
        Some(cpp) => Cow::Owned(cpp),
        None => Cow::Borrowed(name),
    }
}

fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded::default();
    // The alternate form leaves out the hash: it says nothing to people.
    fmt::write(&mut text, format_args!("{demangled:#}")).ok()?;
    Some(text.0)
}

fn cpp(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    let mut text = Bounded::default();
    let options = cpp_demangle::DemangleOptions::default();
    symbol.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

#[derive(Default)]
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.0.len() + more.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_written() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_ZN5shape4areaEi"), "shape::area(int)");
        assert_eq!(
            demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_Z3foov.cold"), "foo() [clone .cold]");
    }

    #[test]
    fn what_only_looks_mangled_is_left_alone() {
        for name in ["_Z", "_ZN", "_R", "_Z9", "", "_ZNSt", "__libc_start_main"] {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn a_name_made_to_explode_stays_short() {
        // Each argument pair refers to the one before it twice.
        let mut name = String::from("_Z1fI1aE");
        name.push_str("St4pairI1aS_E");
        for digit in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars() {
            name.push_str(&format!("St4pairIS{digit}_S{digit}_E"));
        }
        assert!(demangle(&name).len() <= LONGEST);
    }
}
