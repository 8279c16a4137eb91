//! Why counts differ where nothing changed: known sources of variation, told by name.

use crate::glob::base_name;

/// Why a function may differ between two runs of one build, where that is known.
pub fn cause(module: &str, function: &str) -> Option<&'static str> {
    let module = base_name(module);
    let is_loader = module.starts_with("ld-") || module.starts_with("ld.so");
    if is_loader || function.starts_with("_dl_") {
        return Some("start-up: follows the environment and the paths of libraries");
    }
    let by_processor = ["_avx", "_evex", "_sse2", "_sse4", "_ssse3", "_erms"];
    if by_processor.iter().any(|part| function.contains(part)) {
        return Some("chosen by the processor's features");
    }
    let name = function.to_ascii_lowercase();
    let of_hashing = ["hash", "siphash", "randomstate", "robin_hood"];
    if of_hashing.iter().any(|part| name.contains(part)) {
        return Some("may follow a hash seed");
    }
    let of_memory = [
        "malloc",
        "calloc",
        "realloc",
        "free",
        "_int_malloc",
        "_int_free",
        "_int_realloc",
        "malloc_consolidate",
        "sysmalloc",
        "unlink_chunk",
        "unlink_chunk.constprop.0",
    ];
    if of_memory.contains(&function) {
        return Some("may follow addresses and sizes of memory");
    }
    None
}

/// What to say if two sides did not run on the same kind of processor.
pub fn other_processor(old: &[String], new: &[String]) -> Option<String> {
    let first = |cpus: &[String]| cpus.iter().find(|it| !it.is_empty()).cloned();
    let (old, new) = (first(old)?, first(new)?);
    (old != new).then(|| {
        format!(
            "The processors differ ({old}; {new}): libraries choose other code, and counts differ \
             for that reason alone. --only names what is to be compared."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_to_vary_is_named() {
        let known = |module, function| cause(module, function).unwrap_or("-");
        assert!(known("/lib64/ld-linux-x86-64.so.2", "do_lookup_x").starts_with("start-up"));
        assert!(known("libc.so.6", "__memmove_avx_unaligned_erms").starts_with("chosen"));
        assert!(known("a", "<core::hash::sip::Hasher<S>>::write").ends_with("hash seed"));
        assert_eq!(known("a", "main"), "-");
    }

    #[test]
    fn other_processors_are_named() {
        let cpus = |name: &str| vec![String::new(), name.to_owned()];
        assert_eq!(other_processor(&cpus("a"), &cpus("a")), None);
        assert_eq!(other_processor(&cpus("a"), &[]), None);
        assert!(other_processor(&cpus("a"), &cpus("b")).is_some());
    }
}
