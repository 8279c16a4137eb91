//! What did the linker put where?
//!
//! Addresses are taken through the global offset table, in assembly: the compiler would assume
//! that a symbol's address is never null, but these may be, being weak (`entry.s` says so).

use core::arch::asm;

macro_rules! address_of {
    ($symbol:literal) => {{
        let address: u64;
        // SAFETY: reads one word of the global offset table.
        unsafe {
            asm!(concat!("movq ", $symbol, "@GOTPCREL(%rip), {}"), out(reg) address,
                options(att_syntax, nostack, nomem, pure));
        }
        address
    }};
}

/// Address and number of this module's counters.
pub fn counters() -> (u64, u64) {
    let start = address_of!("__start_headcount_counters");
    let stop = address_of!("__stop_headcount_counters");
    (start, stop.wrapping_sub(start) / 8)
}

/// The identities of the objects this module was linked from.
pub fn ids() -> &'static [u8] {
    let start = address_of!("__start_headcount_ids");
    let stop = address_of!("__stop_headcount_ids");
    if start == 0 {
        return &[];
    }
    // SAFETY: the linker's symbols enclose the section, which is never written.
    unsafe { core::slice::from_raw_parts(start as *const u8, stop.wrapping_sub(start) as usize) }
}

/// C's `environ`: pointers to settings, up to a null pointer.
pub fn environment() -> *const *const u8 {
    match address_of!("environ") as *const *const *const u8 {
        environ if environ.is_null() => core::ptr::null(),
        // SAFETY: if it is there, it is libc's variable.
        environ => unsafe { *environ },
    }
}

/// Tells `headcount.after_fork` where to look.
pub fn set_detector(address: u64) {
    // SAFETY: writes a variable of `entry.s`, always the same value.
    unsafe {
        asm!("movq {}, headcount_detector(%rip)", in(reg) address,
            options(att_syntax, nostack, preserves_flags));
    }
}

/// A value of the auxiliary vector, if libc has a way to say it.
pub fn auxiliary(key: u64) -> Option<u64> {
    type Get = extern "C" fn(u64) -> u64;
    match address_of!("getauxval") {
        0 => None,
        // SAFETY: its type, from libc. It takes no lock, and sets `errno` only for keys that the
        // kernel does not pass; it passes ours.
        get => Some(unsafe { core::mem::transmute::<u64, Get>(get) }(key)),
    }
}

type Handler = extern "C" fn();

/// Has libc call this in every child after `fork`, as long as this module is loaded.
pub fn call_after_fork(child: Handler) {
    let owner = address_of!("__dso_handle");
    let glibc = address_of!("__register_atfork");
    let others = address_of!("pthread_atfork");
    if glibc != 0 && owner != 0 {
        type Register = extern "C" fn(u64, u64, Handler, u64) -> i32;
        // SAFETY: its type, from glibc's `register-atfork.c`.
        let register = unsafe { core::mem::transmute::<u64, Register>(glibc) };
        register(0, 0, child, owner);
    } else if glibc == 0 && others != 0 {
        type Register = extern "C" fn(u64, u64, Handler) -> i32;
        // SAFETY: its type, from POSIX. (Musl, which never unloads a library.)
        let register = unsafe { core::mem::transmute::<u64, Register>(others) };
        register(0, 0, child);
    }
}
