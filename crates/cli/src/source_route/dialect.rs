//! How is a counter incremented, in C?

use std::fmt::Write as _;

use headcount_asm::map::{CODE, CODE_LENGTH, MAGIC};
use headcount_csource::{Dialect, Probe};
use headcount_model::library;
use headcount_wire::MAP_SECTION;

/// The label of a text's counters.
pub const COUNTERS: &str = ".Lhc_counters";

/// As in assembler text: is there a libc, which makes room for thread-local variables?
const HAS_LIBC: &str = "cmpq $0, __libc_start_main@GOTPCREL(%%rip); ";

/// The beginning of a declaration that only its initialiser is there for.
const UNUSED: &str = "__attribute__((__unused__)) int";

/// For gcc and clang on x86-64 Linux: probes are the ones that `headcount cc` puts into assembler
/// text, so threads are exact and counts outlive the program.
pub struct Gnu;

impl Gnu {
    /// Code in the midst of a function, where the 128 bytes below the stack pointer may be in use.
    fn call(door: &str) -> String {
        format!("leaq -128(%%rsp), %%rsp; call {door}; leaq 128(%%rsp), %%rsp")
    }
}

impl Dialect for Gnu {
    fn statement(&self, probe: Probe, out: &mut String) {
        let counter = format!("{COUNTERS}+{}", probe.counter * 8);
        let _ = write!(out, "__asm__ __volatile__(\"");
        if probe.marks_code {
            let head = u64::from(CODE_LENGTH) << 32 | u64::from(MAGIC);
            let _ = write!(
                out,
                ".pushsection {MAP_SECTION},\\\"R\\\",@progbits; \
                 .quad {head:#x}, {CODE}, {counter}; .popsection; "
            );
        }
        let _ = write!(out, "incq %%gs:{counter}(%%rip)\":::\"cc\");");
    }

    fn expression(&self, probe: Probe, out: &mut String) {
        out.push_str("__extension__({");
        self.statement(probe, out);
        out.push_str("})");
    }

    fn declaration(&self, probe: Probe, out: &mut String) {
        let counter = probe.counter;
        let _ = write!(out, "{UNUSED} headcount_at_{counter} = __extension__({{");
        self.statement(probe, out);
        out.push_str(" 0;});");
    }

    fn fall_through(&self) -> &str {
        "__attribute__((__fallthrough__));"
    }

    /// What is seldom needed stands at the end of the section that the function is in: in one of
    /// its own, it would keep the linker from removing functions.
    fn enter(&self) -> String {
        let call = Self::call("headcount.enter");
        format!(
            "__asm__ __volatile__(\"{HAS_LIBC}je 8770f; \
             movq headcount.ready@gottpoff(%%rip), %%r11; cmpb $0, %%fs:(%%r11); je 8771f; 8772: \
             .subsection 1; \
             8770: cmpb $0, headcount.begun(%%rip); jne 8772b; \
             8771: {call}; jmp 8772b; .previous\":::\"r11\",\"cc\");"
        )
    }

    fn enter_declaration(&self) -> String {
        let enter = self.enter();
        format!("{UNUSED} headcount_entered = __extension__({{{enter} 0;}});")
    }

    fn around_fork(&self, name: &str) -> Option<(String, String)> {
        let forget = match library::starts_elsewhere(name) {
            true => format!(
                "__asm__ __volatile__(\"{HAS_LIBC}je 8773f; \
                 movq headcount.ready@gottpoff(%%rip), %%r11; movb $0, %%fs:(%%r11); 8773:\"\
                 :::\"r11\",\"cc\",\"memory\");"
            ),
            false => String::new(),
        };
        let kind = if name == "syscall" { "long" } else { "int" };
        let call = Self::call("headcount.after_fork");
        Some((
            format!("__extension__({{{forget}{kind} headcount_made = "),
            format!("; __asm__ __volatile__(\"{call}\":::\"cc\",\"memory\"); headcount_made;}})"),
        ))
    }
}
