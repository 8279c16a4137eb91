//! The linker's names as the programmer wrote them.

use crate::glob::Pattern;
use std::borrow::Cow;
use std::fmt;

/// A demangled name longer than this is less readable than the linker's. Some short names, made
/// to, would otherwise grow without end.
const LONGEST: usize = 4096;

/// The name as written in Rust or C++, if the linker's name is one of theirs.
pub fn demangle(name: &str) -> Cow<'_, str> {
    match written(name) {
        Some(written) => Cow::Owned(written),
        None => Cow::Borrowed(name),
    }
}

/// A name of C++ without what the function takes: `max(int, int)` is a `max`.
pub fn without_parameters(written: &str) -> &str {
    let name = written.trim_end_matches(" const");
    let Some(inside) = name.strip_suffix(')') else {
        return written;
    };
    let mut depth = 1;
    for (at, it) in inside.char_indices().rev() {
        match it {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return match &name[..at] {
                "" => written,
                before if before.ends_with("operator") => written,
                before => before,
            };
        }
    }
    written
}

/// Whether a pattern is about the end of a function's path, from any of its parts on, whatever its types
/// and parameters are: `Sum::join` is `(anonymous namespace)::Sum::join(long, long) const`, and
/// `Stealer::steal` is `deque::Stealer<T>::steal`.
pub fn is_end_of_path(pattern: &Pattern, written: &str) -> bool {
    let path = without_types(without_parameters(written));
    let mut depth = 0_i32;
    let mut begins = path.char_indices().filter(|(at, c)| {
        let is_outside = depth == 0;
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        let before = &path[..*at];
        is_outside && (before.is_empty() || before.ends_with("::") || before.ends_with(' '))
    });
    begins.any(|(at, _)| pattern.matches(&path[at..]))
}

/// A path without what stands between `<` and `>`, but for the type that a method of Rust is of.
fn without_types(path: &str) -> Cow<'_, str> {
    if path.contains("operator") || !path.contains('<') {
        return path.into();
    }
    let mut depth = 0_i32;
    let mut end = 0;
    let mut kept = String::new();
    for (at, c) in path.char_indices() {
        depth += i32::from(c == '<');
        if depth == 0 {
            kept.push(c);
        }
        // `->` of a closure's type ends nothing.
        if c == '>' && !path[..at].ends_with('-') {
            depth -= 1;
            if depth == 0 && end == 0 {
                end = at;
            }
        }
    }
    if !path.starts_with('<') || end == 0 {
        return kept.into();
    }
    let of = path[1..end].split(" as ").next().unwrap_or_default();
    format!("{}{kept}", without_types(of)).into()
}

fn written(name: &str) -> Option<String> {
    set_up_of_globals(name).or_else(|| symbol(name))
}

fn symbol(name: &str) -> Option<String> {
    // A version of the symbol: `name@@GLIBCXX_3.4`.
    let (name, version) = name.split_at(name.find('@').unwrap_or(name.len()));
    let written = rust(name).or_else(|| thunk(name)).or_else(|| cpp(name))?;
    Some(written + version)
}

/// What a compiler makes of a file to construct its global variables, and to destroy them, is named
/// after one of its symbols.
fn set_up_of_globals(name: &str) -> Option<String> {
    const KINDS: [(&str, &str); 4] = [
        ("_GLOBAL__sub_I_", "constructors"),
        ("_GLOBAL__sub_D_", "destructors"),
        ("_GLOBAL__I_", "constructors"),
        ("_GLOBAL__D_", "destructors"),
    ];
    KINDS.iter().find_map(|(start, kind)| {
        let symbol = symbol(name.strip_prefix(start)?)?;
        Some(format!("global {kind} keyed to {symbol}"))
    })
}

/// A function that moves `this` and jumps to another: `_ZThn8_` and what the other is called.
fn thunk(name: &str) -> Option<String> {
    let (kind, rest) = match name.strip_prefix("_ZT")?.split_at_checked(1)? {
        ("h", rest) => ("non-virtual thunk", after_numbers(rest, 1)?),
        ("v", rest) => ("virtual thunk", after_numbers(rest, 2)?),
        ("c", rest) => ("covariant return thunk", after_offset(after_offset(rest)?)?),
        _ => return None,
    };
    Some(format!("{kind} to {}", cpp(&format!("_Z{rest}"))?))
}

/// What follows `h8_` or `v0_n24_`.
fn after_offset(name: &str) -> Option<&str> {
    match name.split_at_checked(1)? {
        ("h", rest) => after_numbers(rest, 1),
        ("v", rest) => after_numbers(rest, 2),
        _ => None,
    }
}

/// What follows so many numbers, each with `_` behind it, and with `n` before it where it is
/// negative.
fn after_numbers(mut name: &str, count: usize) -> Option<&str> {
    for _ in 0..count {
        let (number, rest) = name.split_once('_')?;
        let digits = number.strip_prefix('n').unwrap_or(number);
        if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
            return None;
        }
        name = rest;
    }
    Some(name)
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
    fn a_function_is_named_by_the_end_of_its_path() {
        let is = |pattern: &str, name: &str| is_end_of_path(&Pattern::new(pattern), name);
        let join = "(anonymous namespace)::Sum<int>::join(std::map<a::b, c>, long) const";
        for pattern in [
            "join",
            "Sum::join",
            "S*::join",
            "(anonymous namespace)::Sum::join",
        ] {
            assert!(is(pattern, join), "{pattern}");
        }
        for pattern in ["oin", "um::join", "namespace)::Sum::join", "c", "b", "Sum"] {
            assert!(!is(pattern, join), "{pattern}");
        }
        let loops = "void std::__introsort_loop<int*, long>(int*, int*)";
        assert!(is("std::__introsort_loop", loops) && is("__introsort_loop", loops));
        assert!(is("Stealer::steal", "deque::Stealer<T>::steal"));
        assert!(is(
            "Reader::read",
            "<std::io::Reader<R> as std::io::Read>::read"
        ));
        assert!(is("max", "max") && !is("max", "climax"));
        assert!(is("A::operator<", "n::A::operator<(n::A const&)"));
        assert!(is("f", "a::g<fn() -> b>::f"));
    }

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
    fn what_compilers_add_to_a_name_stays_readable() {
        for (name, written) in [
            ("_Z3foov.part.0", "foo() [clone .part.0]"),
            ("_Z3foov.constprop.0", "foo() [clone .constprop.0]"),
            ("_Z3foov.isra.0.cold", "foo() [clone .isra.0] [clone .cold]"),
            ("_Z3foov._omp_fn.0", "foo() [clone ._omp_fn.0]"),
            ("_Z3foov@@V_1.2", "foo()@@V_1.2"),
            ("_Z3foov.cold@V_1.2", "foo() [clone .cold]@V_1.2"),
            ("_Z3foov@plt", "foo()@plt"),
            ("_ZGVZ3foovE1x", "guard variable for foo()::x"),
            ("_ZThn8_N1A1fEv", "non-virtual thunk to A::f()"),
            ("_ZTv0_n24_N1AD1Ev", "virtual thunk to A::~A()"),
            ("_ZTch0_v0_n32_N1A1fEv", "covariant return thunk to A::f()"),
            (
                "_ZTh8_N1A1fEv.cold",
                "non-virtual thunk to A::f() [clone .cold]",
            ),
            (
                "_GLOBAL__sub_I__Z3foov",
                "global constructors keyed to foo()",
            ),
            ("_GLOBAL__D__Z3foov", "global destructors keyed to foo()"),
        ] {
            assert_eq!(demangle(name), written);
        }
    }

    #[test]
    fn parameters_are_no_part_of_a_short_name() {
        for (written, short) in [
            ("max(int, int)", "max"),
            ("A::f(void (*)(int)) const", "A::f"),
            ("A::operator()(int)", "A::operator()"),
            ("A::operator()", "A::operator()"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("(anonymous namespace)", "(anonymous namespace)"),
            ("f)", "f)"),
            ("main", "main"),
        ] {
            assert_eq!(without_parameters(written), short);
        }
    }

    #[test]
    fn what_only_looks_mangled_is_left_alone() {
        for name in [
            "_Z",
            "_ZN",
            "_R",
            "_Z9",
            "",
            "_ZNSt",
            "__libc_start_main",
            "memcpy@@GLIBC_2.14",
            "_ZTh",
            "_ZThn_N1A1fEv",
            "_ZTc",
            "_GLOBAL__sub_I_prog.cc",
            "_GLOBAL__sub_I_",
        ] {
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
