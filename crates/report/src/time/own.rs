//! Which code is the user's own?

use crate::annotate::is_of_the_system;
use headcount_model::{Frame, SampledModule, Samples, Site};

/// Where libraries of others are kept in source form.
const OTHERS: [&str; 5] = [
    "/.cargo/registry/",
    "/.cargo/git/",
    "/.rustup/",
    "/rust/deps/",
    "/go/pkg/mod/",
];

/// Whether a source file came with the system, or with a library of others.
fn is_others(file: &str) -> bool {
    is_of_the_system(file) || OTHERS.iter().any(|it| file.contains(it))
}

/// Whether a program or library came with the system. What is in no file at all was made by a runtime.
fn is_system_module(module: Option<&SampledModule>) -> bool {
    let Some(path) = module.map(|it| it.path.as_str()) else {
        return true;
    };
    let folders = [
        "/usr/lib/",
        "/usr/lib32/",
        "/usr/lib64/",
        "/usr/libexec/",
        "/usr/bin/",
        "/usr/sbin/",
        "/lib/",
        "/lib32/",
        "/lib64/",
        "/bin/",
        "/sbin/",
        "[",
    ];
    folders.iter().any(|it| path.starts_with(it))
}

/// Whether a frame at a site is the user's own code.
pub fn is_own(samples: &Samples, site: &Site, frame: &Frame) -> bool {
    let module = site.module.and_then(|it| samples.modules.get(it as usize));
    !is_system_module(module) && !is_others(&frame.file)
}
