//! Where was each thread, a thousand times a second?
//!
//! The kernel takes the samples: a software clock of each thread runs while that is on a processor,
//! and interrupts it again and again. What the registers and the top of the stack were goes into a ring
//! of memory, which headcount reads while the program runs. The program is neither stopped nor
//! changed, and nothing is installed in it; children, threads and programs that it becomes are
//! followed by the kernel.
//!
//! [`run`] starts a program, [`attach`] looks at one that runs, and a [`Background`] at one that is
//! counted at the same time. All answer with [`Samples`]: call
//! stacks with the number of samples of each, thread by thread, and how long each thread was on a
//! processor and off it.

mod background;
mod clocks;
mod error;
mod launch;
mod modules;
mod naming;
mod processes;
mod record;
mod sampler;
mod stacks;
mod stopping;

pub use background::Background;
pub use error::Error;
pub use headcount_model::Samples;
pub use sampler::{Outcome, Settings, attach, is_allowed, run};
pub use stopping::stop_regularly;
