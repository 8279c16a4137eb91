//! Why a file cannot be read at all.

/// Why a file cannot be read at all. (What cannot be counted in a file that can be read is a
/// refusal.)
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is something else.
    #[error("is no ELF file; name an executable or a shared library{hint}")]
    NotElf {
        /// What it seems to be, if that can be told.
        hint: &'static str,
    },
    /// For a processor with 32-bit addresses.
    #[error("is a 32-bit file; only 64-bit x86-64 programs can be counted")]
    Narrow,
    /// For another processor.
    #[error("is for {machine}, not for x86-64; count it on a build for this machine")]
    Machine {
        /// Which one.
        machine: String,
    },
    /// Not yet linked, or a core dump.
    #[error("is {kind}; name an executable or a shared library")]
    Kind {
        /// What it is instead.
        kind: &'static str,
    },
    /// Its headers speak of bytes that are not there.
    #[error("is cut short or damaged ({what}); copy or build it again")]
    Damaged {
        /// What is amiss.
        what: String,
    },
    /// What is changed in it would be noticed.
    #[error("is compiled ahead of time for Mono, whose runtime reads and changes its code")]
    ReadByItsRuntime,
    /// There is nothing to count.
    #[error("has no code; if it holds debug information only, name the program that it belongs to")]
    NoCode,
}
