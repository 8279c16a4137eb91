//! What a clock saw of a program: where its threads were, again and again.

use crate::LinkAddr;

/// The samples of one run. What is numbered is numbered from 0, by its place in a list here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Nanoseconds on a processor that one sample stands for.
    pub interval: u64,
    /// Whether the program was counted at the same time: then it did other things besides its own.
    pub is_counted: bool,
    /// Records that the kernel had no room for, and samples that it held back.
    pub lost: u64,
    /// The files that code was in.
    pub modules: Vec<SampledModule>,
    /// The instructions that were seen.
    pub sites: Vec<Site>,
    /// The call stacks, as a tree.
    pub stacks: Vec<Stack>,
    /// The threads.
    pub threads: Vec<SampledThread>,
}

/// A file with code that was seen to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledModule {
    /// Where it was.
    pub path: String,
    /// What its bytes are: the middle part of [`Module::build_id`](crate::Module::build_id). Empty, if
    /// nobody could read it.
    pub file_id: String,
}

/// An instruction that a thread was at, or the last byte of a call that it was in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The module it is in: none for code that was made while the program ran.
    pub module: Option<u32>,
    /// Where; in no module, where it was in memory.
    pub address: LinkAddr,
    /// Where the function begins that it was compiled into, if the file says.
    pub function: Option<LinkAddr>,
    /// The function it was compiled into, and then those that were inlined there, if the file says.
    pub frames: Vec<Frame>,
}

/// A function at a site, or inlined there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    /// The linker's name.
    pub function: String,
    /// Where it is in the source; empty if that is not known.
    pub file: String,
    /// The line; 0 if that is not known.
    pub line: u32,
}

/// A call stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stack {
    /// The stack without its innermost site: one of the stacks before it. None, if that is all.
    pub caller: Option<u32>,
    /// The innermost site.
    pub site: u32,
    /// Whether there are callers that nobody could find.
    pub is_cut: bool,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledThread {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Nanoseconds on a processor, in the program and in the kernel.
    pub on_processor: u64,
    /// Nanoseconds for which it waited.
    pub waiting: u64,
    /// Nanoseconds for which it could have gone on, but no processor was free.
    pub ready: u64,
    /// The stacks it was seen with, each with how often.
    pub samples: Vec<(u32, u64)>,
}

impl Samples {
    /// How many there are.
    pub fn total(&self) -> u64 {
        let counts = self.threads.iter().flat_map(|it| &it.samples);
        counts.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// A stack, then its caller, and so on to the outermost.
    pub fn path(&self, stack: u32) -> impl Iterator<Item = &Stack> {
        let at = |stack: u32| self.stacks.get(stack as usize);
        std::iter::successors(at(stack), move |it| at(it.caller?))
    }

    /// Whether callers of a stack could not be found.
    pub fn is_cut(&self, stack: u32) -> bool {
        self.path(stack).any(|it| it.is_cut)
    }
}
