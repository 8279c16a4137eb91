//! Which ways lead to where a program gives up: a panic, a failed assertion, a smashed stack?
//!
//! Compilers and libraries put such checks wherever an index or a sum might go wrong. Nobody wrote a
//! branch there, and a test that goes these ways is hard to come by; so they are left out where
//! branches are told, unless they were gone, or somebody asks for them.

use crate::branches::{Branch, branches};
use crate::callees::{Callee, Callees};
use crate::names::Named;
use headcount_model::{EdgeKind, Function};

/// Knows which branches are worth telling.
pub struct Checks<'a> {
    callees: &'a Callees<'a>,
    /// Whether all ways are wanted.
    with_all: bool,
}

impl<'a> Checks<'a> {
    pub fn new(callees: &'a Callees<'a>, with_all: bool) -> Self {
        Self { callees, with_all }
    }

    /// The branches of a function, without the ways that nobody went and that lead to where it gives
    /// up. What has one way left is no branch.
    pub fn branches(&self, module: usize, named: &Named<'_>) -> Vec<Branch> {
        let mut all = branches(named.function, named.counts);
        if self.with_all {
            return all;
        }
        for branch in &mut all {
            branch.ways.retain(|way| {
                let gives_up = |to| self.gives_up(module, named.function, to);
                !way.count.is_never() || !way.to.is_some_and(gives_up)
            });
        }
        all.retain(|it| it.ways.len() > 1);
        all
    }

    /// Whether a block leads nowhere else.
    fn gives_up(&self, module: usize, function: &Function, block: u32) -> bool {
        /// Arguments are made ready in between.
        const FURTHEST: usize = 4;
        let mut at = block;
        for _ in 0..FURTHEST {
            let Some(block) = function.blocks.get(at as usize) else {
                return false;
            };
            let calls = self.callees.called_by(module, block);
            if let Some(first) = calls.first() {
                return self.is_failure(first);
            }
            let mut next = function.edges.iter().filter(|it| it.from == Some(at));
            match (next.next(), next.next()) {
                (Some(only), None) if matches!(only.kind, EdgeKind::Fall | EdgeKind::Jump) => {
                    match only.to {
                        Some(to) => at = to,
                        None => return false,
                    }
                }
                _ => return false,
            }
        }
        false
    }

    fn is_failure(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Function(id) => is_failure(self.callees.name(*id)),
            Callee::Named(name) => is_failure(name),
            Callee::Address(_) | Callee::Unknown => false,
        }
    }
}

/// Whether a function, by the linker's name, is called only to give up.
fn is_failure(name: &str) -> bool {
    let name = name.strip_suffix("@plt").unwrap_or(name);
    let of_c = [
        "__stack_chk_fail",
        "__assert_fail",
        "__chk_fail",
        "__fortify_fail",
    ];
    let begins = [
        "__ubsan_handle_",
        "__asan_report_",
        "runtime.panic",
        "runtime.goPanic",
    ];
    if of_c.contains(&name) || begins.iter().any(|it| name.starts_with(it)) {
        return true;
    }
    is_failure_of_a_library(&crate::demangle(name))
}

/// The same for the standard libraries of C++ and Rust.
fn is_failure_of_a_library(name: &str) -> bool {
    if name.starts_with("std::__throw_") || name.starts_with("__cxa_throw_bad_") {
        return true;
    }
    let name = name.trim_start_matches('<');
    let crates = ["core::", "std::", "alloc::"];
    if !crates.iter().any(|it| name.starts_with(it)) {
        return false;
    }
    let last = name
        .rsplit("::")
        .find(|it| !it.starts_with('{') && !it.starts_with('<'));
    let last = last.unwrap_or(name);
    let failures = ["handle_error", "handle_alloc_error", "capacity_overflow"];
    name.contains("::panicking::")
        || failures.contains(&last)
        || last.starts_with("panic")
        || last.ends_with("_fail")
        || last.ends_with("_failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gives_up_is_known_by_its_name() {
        for name in [
            "__stack_chk_fail@plt",
            "__assert_fail",
            "_ZSt20__throw_length_errorPKc@plt",
            "_ZN4core9panicking18panic_bounds_check17h0123456789abcdefE",
            "_RNvNtNtCsh_4core9panicking11panic_const24panic_const_add_overflow",
            "_ZN4core6option13unwrap_failed17h0123456789abcdefE",
            "_ZN5alloc7raw_vec12handle_error17h0123456789abcdefE",
            "runtime.panicIndex",
        ] {
            assert!(is_failure(name), "{name}");
        }
        for name in [
            "abort",
            "exit",
            "_ZN4main9panicking4failE",
            "unwrap_failed",
            "_ZN3std2io5stdio6_print17h0123456789abcdefE",
        ] {
            assert!(!is_failure(name), "{name}");
        }
    }
}
