//! Programs that no symbol and no table tells of, counted by `headcount run`.

use crate::workshop::{Workshop, c_programs};
use std::collections::BTreeMap;

/// Programs that do the same each time.
const PROGRAMS: [&str; 13] = [
    "_exit_skips_the_handlers",
    "a_function_that_never_returns",
    "a_library_calls_back",
    "a_signal_handler_runs",
    "a_switch_with_a_jump_table",
    "case_falls_through",
    "computed_goto",
    "constructors_and_destructors",
    "duffs_device",
    "exit_deep_in_a_chain_of_calls",
    "jumps_are_reckoned",
    "longjmp_drops_three_frames",
    "tail_calls_are_jumps",
];

/// How often each instruction of the last run's program ran, of those that did.
fn instructions(shop: &Workshop) -> BTreeMap<String, u64> {
    let report = shop.report(&["--by", "instruction", "--format", "csv"]);
    let rows = report.lines().skip(1).filter_map(|row| {
        let mut fields = row.split(',').skip(2);
        let at = fields.next()?.to_owned();
        let count = fields.next()?.parse().ok()?;
        (count > 0).then_some((at, count))
    });
    rows.collect()
}

#[test]
fn without_them_every_instruction_is_counted_as_with_them() {
    let bare = "-fno-asynchronous-unwind-tables -fno-unwind-tables";
    let bare: Vec<&str> = bare.split(' ').collect();
    for name in PROGRAMS {
        let programs = c_programs();
        let source = programs
            .iter()
            .find(|it| it.file_stem().is_some_and(|it| it == name));
        let source = source.and_then(|it| it.to_str()).expect(name);
        for way in [&["-O2", "-pie"], &["-Os", "-no-pie"]] {
            let shop = Workshop::new();
            let build = [&["gcc"], &way[..], &bare, &["-o", "named", source]].concat();
            shop.must(&build);
            shop.must(&["strip", "-o", "bare", "named"]);
            let [named, bare] = ["./named", "./bare"].map(|program| {
                shop.forget();
                shop.counted_alone(&[program]);
                let is_surprised = shop.report(&[]).contains("nobody had foreseen");
                (is_surprised, instructions(&shop))
            });
            assert!(named.1.len() > 30, "{build:?}: {named:?}");
            assert_eq!(named, bare, "{build:?}");
        }
    }
}

#[test]
fn what_ran_before_it_became_known_is_told() {
    let shop = Workshop::new();
    // Data on both sides: nobody takes `hidden` for a function, until somebody calls it.
    let text = "
        .globl _start
        .type _start, @function
_start: lea hidden(%rip), %rax
        call *%rax
        call asks
        mov $60, %eax
        xor %edi, %edi
        syscall
        .size _start, . - _start
        .type asks, @function
asks:   call hidden
        ret
        .size asks, . - asks
        .byte 6
hidden: nop
        ret
        .byte 6
        .section .note.GNU-stack, \"\", @progbits
";
    shop.write("late.s", text);
    shop.must(&["gcc", "-nostdlib", "-o", "late", "late.s"]);
    shop.must(&["objcopy", "-N", "hidden", "late"]);
    let said = shop.headcount(&["run", "./late"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert!(
        said.stderr.contains("Code became known only after"),
        "{said:?}"
    );
}

#[test]
fn what_may_be_data_is_named() {
    let shop = Workshop::new();
    let text = "
        .globl _start
_start: lea hidden(%rip), %rax
        call *%rax
        mov $60, %eax
        xor %edi, %edi
        syscall
        .byte 6 # No instruction begins with it.
hidden: nop
        ret
        .byte 6
        .section .note.GNU-stack, \"\", @progbits
";
    shop.write("data.s", text);
    shop.must(&["gcc", "-nostdlib", "-s", "-o", "data", "data.s"]);
    let said = shop.headcount(&["run", "--modules", "main", "./data"]);
    assert_eq!(said.status, Some(0), "{said:?}");
    let refusals = shop.refusals();
    assert!(refusals.contains("code or data"), "{refusals}");
    assert_eq!(shop.calls("_start"), Some(1));
    assert_eq!(instructions(&shop).len(), 5);
}

#[test]
fn what_begins_behind_int3_is_not_covered() {
    let shop = Workshop::new();
    // Its symbol says that all of this is one function. Nothing but arithmetic leads to `second`.
    let text = "
        .globl _start
        .type _start, @function
_start: lea first(%rip), %rbx
        mov $5, %edi
        call *%rbx
        add $0x40, %rbx
        mov $50, %ebp
1:      mov %ebp, %edi
        call *%rbx
        dec %ebp
        jnz 1b
        xor %edi, %edi
        mov $60, %eax
        syscall
        hlt
        .size _start, . - _start
        .p2align 6, 0xcc
        .type first, @function
first:  cmp $10, %edi
        jae 2f
        ret
2:      call stuck
        nop
        .p2align 6, 0xcc
second: cmp $20, %edi
        jbe 3f
        ret
3:      mov $21, %edi
        call other
        jmp second
        .size first, . - first
        .type other, @function
other:  ret
        .size other, . - other
        .type stuck, @function
stuck:  hlt
        .size stuck, . - stuck
        .section .note.GNU-stack, \"\", @progbits
";
    shop.write("behind.s", text);
    shop.must(&["gcc", "-nostdlib", "-o", "behind", "behind.s"]);
    shop.must(&["objcopy", "-N", "second", "behind"]);
    assert_eq!(shop.run(&["behind"]).status, Some(0));
    assert_eq!(shop.headcount(&["run", "./behind"]).status, Some(0));
    assert_eq!(shop.calls("other"), Some(20));
}
