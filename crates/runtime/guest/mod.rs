//! What runs inside a counted program.
//!
//! House rules: we are guests. Nothing is allocated, locked against the program or printed; libc
//! is not called, but for one registration at start; no signal handler is installed, no
//! descriptor kept, no register changed. A failure is a bit in the header of the counter file.
//!
//! `entry.s` has the doors: they save the registers and call the functions below. Then, in
//! reading order: `slot.rs` (a thread gets its counters), `table.rs` with `lane.rs` and
//! `registration.rs` (what the modules of a process agree on), `module.rs`, `file.rs`, `keep.rs`.

#[cfg(not(any(test, clippy)))]
mod builtins;
mod delta;
mod facts;
mod file;
mod keep;
mod kernel;
mod lane;
mod linker;
mod module;
mod registration;
mod scratch;
mod slot;
mod table;

use core::sync::atomic::Ordering::*;

/// A thread comes to this module for the first time. Says whether it need not come again.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn headcount_set_up() -> bool {
    let _signals = kernel::BlockedSignals::all();
    let module = module::this();
    module.get_to_know();
    match module.place() {
        Some((table, Some(number))) => slot::settle(table, module, number),
        Some((table, None)) => slot::give_up(table, module),
        None => true,
    }
}

/// The module has been loaded, and its first thread is set up.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn headcount_construct(child_handler: extern "C" fn()) {
    if module::this().registered_for_fork.swap(1, Relaxed) == 0 {
        linker::call_after_fork(child_handler);
    }
}

/// We may be in a child that was just forked.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn headcount_adopt() {
    if let Some((table, _)) = module::this()
        .place()
        .filter(|(table, _)| table.is_inherited())
    {
        let _signals = kernel::BlockedSignals::all();
        if let Ok(me) = lane::Thread::current() {
            slot::adopt(table, &me);
        }
    }
}

/// The program ends, or the module is closed: we cannot tell which, and other threads may still
/// be counting. So everything stays mapped. If the module turns out to be gone when another one
/// is loaded, its ranges are unmapped then (`Table::register`).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn headcount_finish() {
    let module = module::this();
    module.finish();
    if let Some((table, Some(number))) = module.place() {
        slot::mark_exited(table, number);
        if let Some(registration) = table.registration(number) {
            registration.close();
        }
    }
}
