//! Programs that read their own text, or go where no table of ours tells, counted by `headcount
//! run`: what may be data stays as it is, and what runs is counted.

use std::collections::BTreeMap;

use crate::workshop::{Workshop, have};
use headcount_oracle::count_command;

const END: &str = "\n\t.section .note.GNU-stack, \"\", @progbits\n";

/// A program of assembly text.
fn assembled(text: &str, flags: &[&str]) -> Workshop {
    let shop = Workshop::new();
    shop.write("it.s", format!("{text}{END}"));
    shop.must(&[&["gcc", "-o", "it", "it.s"], flags].concat());
    shop
}

/// It ends with this status, by itself and counted, and every instruction that runs is counted as
/// the oracle counts it.
fn is_not_noticed(shop: &Workshop, status: i32) {
    assert_eq!(shop.run(&["./it"]).status, Some(status));
    for engine in ["breakpoint", "detour"] {
        let said = shop.counted_alone(&["--engine", engine, "./it"]);
        assert_eq!(said.status, Some(status), "{engine}: {said:?}");
    }
    let counted = shop.report(&["--by", "instruction", "--format", "csv"]);
    let rows = counted.lines().skip(1).filter_map(|row| {
        let mut fields = row.split(',').skip(2);
        let at = u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
        let count: u64 = fields.next()?.parse().ok()?;
        (count > 0).then_some((at, count))
    });
    let counted: BTreeMap<u64, u64> = rows.collect();
    let outcome = count_command(&mut shop.command(shop.path("it"))).expect("the oracle counts it");
    let steps = outcome.counts.iter();
    let steps: BTreeMap<u64, u64> = steps.map(|(at, count)| (*at, *count)).collect();
    assert_eq!(counted, steps);
}

#[test]
fn a_table_in_front_of_what_is_called_an_object_is_read() {
    // As in Haskell's run-time system.
    let text = "
        .globl main
        .type main, @function
main:   lea thing_info(%rip), %rcx
        mov -8(%rcx), %eax
        ret
        .size main, . - main
        .p2align 3
        .quad 0
        .long 25, 0
        .globl thing_info
        .type thing_info, @object
thing_info: mov $9, %eax
        ret
        .size thing_info, . - thing_info";
    is_not_noticed(&assembled(text, &[]), 25);
}

#[test]
fn a_table_in_front_of_what_only_data_points_to_is_read() {
    let text = "
        .globl main
        .type main, @function
main:   mov closure(%rip), %rcx
        push %rcx
        call *%rcx
        pop %rcx
        mov -8(%rcx), %eax
        ret
        .size main, . - main
        .p2align 3
        .quad 0
        .long 21, 0x0048c220
1:      lea -40(%rbp), %rax
        cmp %r15, %rax
        ret
        .data
        .p2align 3
closure: .quad 1b";
    for flags in [&["-pie"], &["-no-pie"]] {
        is_not_noticed(&assembled(text, flags), 21);
    }
}

#[test]
fn a_table_inside_of_a_function_is_read() {
    // A place to return to, whose table makes what follows look like other instructions.
    let text = "
        .globl main
        .type main, @function
main:   push %rbp
        mov $back, %eax
        push %rax
        jmp *slot
        nop
        .quad 0x41
        .long 30, 0x01ba95c8
back:   add $8, %r12
        mov back - 8, %eax
        pop %rbp
        ret
        .size main, . - main
        .type target, @function
target: xor %r12d, %r12d
        pop %rcx
        jmp *%rcx
        .size target, . - target
        .data
slot:   .quad target";
    is_not_noticed(&assembled(text, &["-no-pie"]), 30);
}

#[test]
fn a_number_behind_a_jump_is_read() {
    // As in Mono's tables of stubs.
    let text = "
        .globl main
        .type main, @function
main:   push %rbx
        call stub
        mov stub + 6(%rip), %eax
        pop %rbx
        ret
        .size main, . - main
        .p2align 4
        .type stub, @function
stub:   jmp *slot(%rip)
        .long 17
        .size stub, . - stub
        .type other, @function
other:  jmp *slot(%rip)
        .long 18
        .size other, . - other
        .p2align 4
        .type target, @function
target: mov $7, %eax
        ret
        .size target, . - target
        .data
slot:   .quad target";
    is_not_noticed(&assembled(text, &[]), 17);
}

#[test]
fn constants_between_functions_are_read_wherever_their_address_goes() {
    // They look like `push %rbp; mov %rsp, %rbp; pop %rbp; ret`, and their address is handed on.
    let text = "
        .globl main
        .type main, @function
main:   lea table(%rip), %rdi
        call sum
        ret
        .size main, . - main
        .type sum, @function
sum:    xor %eax, %eax
        xor %ecx, %ecx
1:      movzbl (%rdi, %rcx), %edx
        add %edx, %eax
        inc %ecx
        cmp $24, %ecx
        jne 1b
        movzbl %al, %eax
        ret
        .size sum, . - sum
        .p2align 4
table:  .byte 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3, 0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e
        .byte 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0x62, 0x82, 0x9a, 0xd4, 0xd5";
    let shop = assembled(text, &[]);
    shop.must(&["objcopy", "-N", "table", "it"]);
    let status = shop.run(&["./it"]).status.expect("it ends");
    is_not_noticed(&shop, status);
}

#[test]
fn hot_and_cold_code_may_lie_in_two_segments() {
    // Each leads into the midst of the other.
    let text = "
        .globl _start
        .section .hot, \"ax\", @progbits
        .type work, @function
work:   mov %edi, %eax
        test $1, %al
        jne work_cold
        add $2, %eax
back:   add $1, %eax
        add %eax, %r12d
        ret
        .size work, . - work
        .text
        .type _start, @function
_start: mov $100, %ebx
        xor %r12d, %r12d
1:      mov %ebx, %edi
        call work
        dec %ebx
        jnz 1b
        movzbl %r12b, %edi
        and $63, %edi
        mov $60, %eax
        syscall
        .size _start, . - _start
        .type work_cold, @function
work_cold: add $3, %eax
        test $2, %al
        je 2f
        jmp back
2:      call tail
        jmp back
        .size work_cold, . - work_cold
        .type tail, @function
tail:   add $5, %eax
        ret
        .size tail, . - tail";
    let flags = "-nostdlib -static -Wl,-z,separate-code -Wl,--section-start=.hot=0x600000";
    let flags: Vec<&str> = flags.split(' ').collect();
    let shop = assembled(text, &flags);
    let status = shop.run(&["./it"]).status.expect("it ends");
    is_not_noticed(&shop, status);
    let report = shop.report(&[]);
    assert!(report.contains("Not counted: nothing."), "{report}");
    assert_eq!(shop.calls("tail"), Some(25));
}

#[test]
fn a_recovered_panic_of_go_goes_on() {
    if !have("go") {
        return;
    }
    let shop = Workshop::new();
    let text = r#"package main

func risky(n int) (answer int) {
	defer func() {
		if recover() != nil {
			answer = -n
		}
	}()
	if n%2 == 1 {
		panic("odd")
	}
	return n
}

func main() {
	sum := 0
	for n := 0; n < 100; n++ {
		sum += risky(n)
	}
	println(sum)
}
"#;
    shop.write("it.go", text);
    let cache = format!("GOCACHE={}", shop.path("go-cache").display());
    let go = ["env", &cache, "GO111MODULE=off", "GOTOOLCHAIN=local", "go"];
    shop.must(&[&go[..], &["build", "-o", "it", "it.go"]].concat());
    shop.must(&["strip", "-o", "bare", "it"]);
    for program in ["./it", "./bare"] {
        shop.forget();
        let said = shop.counted_alone(&[program]);
        assert_eq!(said.status, Some(0), "{program}: {said:?}");
        assert!(said.stderr.starts_with("-50\n"), "{program}: {said:?}");
        assert_eq!(shop.calls("main.risky"), Some(100), "{program}");
    }
}

#[test]
fn what_a_runtime_reads_by_design_is_left_alone_by_name() {
    let shop = Workshop::new();
    let library = "long mono_aot_file_info[4] = {1}; int answer(void) { return 42; }";
    shop.write("image.c", library);
    shop.must(&["gcc", "-shared", "-fPIC", "-o", "image.so", "image.c"]);
    let program = "int answer(void); int main(void) { return answer(); }";
    shop.write("main.c", program);
    shop.must(&["gcc", "-o", "it", "main.c", "./image.so"]);
    let said = shop.headcount(&["run", "./it"]);
    assert_eq!(said.status, Some(42), "{said:?}");
    assert!(
        said.stderr
            .contains("image.so is not counted: is compiled ahead of time for Mono"),
        "{said:?}"
    );
    assert_eq!(shop.calls("main"), Some(1));
    assert_eq!(shop.calls("answer"), None);
}

#[test]
fn a_haskell_program_catches_exceptions_and_is_counted() {
    if !have("ghc") {
        return;
    }
    let shop = Workshop::new();
    let text = r#"import Control.Exception
import qualified Data.IORef as R

step :: R.IORef Int -> Int -> IO ()
step v n = R.modifyIORef' v (+ n)
{-# NOINLINE step #-}

main :: IO ()
main = do
  r <- try (evaluate (1 `div` (0 :: Int))) :: IO (Either ArithException Int)
  print r
  v <- R.newIORef 0
  mapM_ (step v) [1 .. 300]
  R.readIORef v >>= print
"#;
    shop.write("it.hs", text);
    shop.must(&["ghc", "-v0", "-O", "-o", "it", "it.hs"]);
    shop.must(&["strip", "-o", "bare", "it"]);
    for program in ["./it", "./bare"] {
        let alone = shop.run(&[program]);
        let said = shop.headcount(&["run", "-q", program]);
        assert_eq!((&said.status, &said.stdout), (&alone.status, &alone.stdout));
        assert_eq!(said.status, Some(0), "{program}: {said:?}");
    }
}
