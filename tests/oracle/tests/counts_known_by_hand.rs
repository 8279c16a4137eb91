//! Programs small enough to count on one's fingers. The labels are names for the instructions that
//! follow them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use headcount_oracle::{Outcome, by_function, count, count_within};
use object::{Object, ObjectSymbol};
use tempfile::TempDir;

/// A program that was built for one test.
struct Program {
    folder: TempDir,
    path: PathBuf,
}

impl Program {
    fn build(file: &str, source: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the program");
        let from = folder.path().join(file);
        let path = folder.path().join("program");
        fs::write(&from, source).expect("the source is written");
        let status = Command::new("gcc")
            .arg(&from)
            .arg("-o")
            .arg(&path)
            .args(flags)
            .status();
        assert!(status.expect("gcc is here").success(), "gcc builds it");
        Self { folder, path }
    }

    fn c(source: &str) -> Self {
        Self::build("program.c", source, &["-O0"])
    }

    /// An assembler program with nothing around it.
    fn bare(source: &str) -> Self {
        let flags = ["-nostdlib", "-static", "-no-pie"];
        Self::build("program.s", source, &flags)
    }

    fn count(self) -> Counted {
        let outcome = count(&self.path, &[] as &[&str]).expect("the program is counted");
        Counted {
            program: self,
            outcome,
        }
    }
}

struct Counted {
    program: Program,
    outcome: Outcome,
}

impl Counted {
    /// The count of the instruction at a label.
    fn at(&self, label: &str) -> u64 {
        let bytes = fs::read(&self.program.path).expect("the program is still there");
        let file = object::File::parse(&*bytes).expect("an ELF file");
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(label));
        let address = symbol.expect("the label exists").address();
        self.outcome.counts.get(&address).copied().unwrap_or(0)
    }
}

#[test]
fn a_loop_of_five_rounds() {
    let it = Program::bare(
        ".globl _start
        _start:     mov $5, %ecx
        again:      dec %ecx
        branch:     jnz again
        after:      mov $60, %eax
                    mov $7, %edi
        last:       syscall
        never:      nop
        ",
    )
    .count();
    assert_eq!(it.outcome.status, 7);
    let counts = ["_start", "again", "branch", "after", "last", "never"].map(|label| it.at(label));
    assert_eq!(counts, [1, 5, 5, 1, 1, 0]);
    assert_eq!(it.outcome.counts.values().sum::<u64>(), 14);
}

#[test]
fn a_rep_instruction_counts_once_and_a_loop_to_itself_counts_each_time() {
    let it = Program::bare(
        ".globl _start
        _start:     lea buffer(%rip), %rdi
                    mov $100, %ecx
        hundred:    rep stosb
        none:       rep stosb
                    lea buffer(%rip), %rsi
                    lea buffer(%rip), %rdi
                    mov $8, %ecx
        eight:      repe cmpsq
                    mov $6, %ecx
        itself:     loop itself
                    mov $60, %eax
                    xor %edi, %edi
                    syscall
                    .bss
        buffer:     .skip 128
        ",
    )
    .count();
    assert_eq!(it.outcome.status, 0);
    let counts = ["hundred", "none", "eight", "itself"].map(|label| it.at(label));
    assert_eq!(counts, [1, 1, 1, 6]);
}

#[test]
fn a_fault_that_kills_does_not_count() {
    let it = Program::bare(
        ".globl _start
        _start:     xor %eax, %eax
        fault:      mov (%rax), %eax
        after:      nop
        ",
    )
    .count();
    assert_eq!(it.outcome.status, 128 + 11);
    let counts = ["_start", "fault", "after"].map(|label| it.at(label));
    assert_eq!(counts, [1, 0, 0]);
}

#[test]
fn a_fault_that_is_repaired_counts_once() {
    let it = Program::c(
        r#"
        #include <signal.h>
        #include <sys/mman.h>
        static char *page;
        static void repair(int signal) {
            __asm__ volatile("handler: nop");
            mprotect(page, 4096, PROT_READ | PROT_WRITE);
        }
        int main(void) {
            page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            signal(SIGSEGV, repair);
            __asm__ volatile("store: movb $9, (%0)" :: "r"(page) : "memory");
            return page[0];
        }"#,
    )
    .count();
    assert_eq!(it.outcome.status, 9);
    assert_eq!((it.at("handler"), it.at("store")), (1, 1));
}

#[test]
fn both_sides_of_a_fork_count() {
    let it = Program::c(
        r#"
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            __asm__ volatile("before: nop");
            pid_t child = fork();
            __asm__ volatile("both: nop");
            if (child == 0) {
                for (int i = 0; i < 3; i++) __asm__ volatile("child: nop");
                _exit(3);
            }
            int status;
            waitpid(child, &status, 0);
            __asm__ volatile("parent: nop");
            return WEXITSTATUS(status) + 1;
        }"#,
    )
    .count();
    assert_eq!(it.outcome.status, 4);
    let counts = ["before", "both", "child", "parent"].map(|label| it.at(label));
    assert_eq!(counts, [1, 2, 3, 1]);
}

#[test]
fn a_fork_without_libraries_counts_its_system_call_once() {
    let it = Program::bare(
        ".globl _start
        _start:     mov $57, %eax       # fork
        fork:       syscall
        both:       test %eax, %eax
                    jz end
        parent:     mov %eax, %edi      # wait4(child, 0, 0, 0)
                    xor %esi, %esi
                    xor %edx, %edx
                    xor %r10d, %r10d
                    mov $61, %eax
        wait:       syscall
        end:        mov $60, %eax
                    xor %edi, %edi
        exit:       syscall
        ",
    )
    .count();
    let counts = ["fork", "both", "parent", "end", "exit"].map(|label| it.at(label));
    assert_eq!(counts, [1, 2, 1, 2, 2]);
    assert!(it.at("wait") >= 1); // once more for each time the kernel starts it again
}

#[test]
fn threads_count() {
    let it = Program::build(
        "program.c",
        r#"
        #include <pthread.h>
        static void *work(void *rounds) {
            for (long i = 0; i < (long)rounds; i++) __asm__ volatile("work_round: nop");
            return 0;
        }
        int main(void) {
            pthread_t threads[4];
            for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)(10 * (i + 1)));
            for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
            return 0;
        }"#,
        &["-O0", "-pthread"],
    )
    .count();
    assert_eq!(it.outcome.status, 0);
    assert_eq!(it.at("work_round"), 100);
}

#[test]
fn a_cancelled_thread_is_cancelled() {
    let it = Program::build(
        "program.c",
        r#"
        #include <pthread.h>
        #include <unistd.h>
        static void undo(void *unused) { __asm__ volatile("cleanup: nop"); }
        static void *work(void *unused) {
            pthread_cleanup_push(undo, 0);
            __asm__ volatile("begin: nop");
            for (;;) pause();
            pthread_cleanup_pop(0);
            return 0;
        }
        int main(void) {
            pthread_t thread;
            void *result;
            pthread_create(&thread, 0, work, 0);
            pthread_cancel(thread);
            pthread_join(thread, &result);
            return result == PTHREAD_CANCELED ? 5 : 0;
        }"#,
        &["-O0", "-pthread"],
    )
    .count();
    assert_eq!(it.outcome.status, 5);
    // It may be cancelled before it begins; what it began it cleans up.
    assert_eq!(it.at("cleanup"), it.at("begin"));
}

#[test]
fn a_signal_handler_counts_and_changes_nothing_around_it() {
    // SA_NODEFER: a single step cannot be reported while SIGTRAP is blocked.
    let it = Program::c(
        r#"
        #include <signal.h>
        static volatile int seen;
        static void handler(int signal) { __asm__ volatile("handle: nop"); seen++; }
        int main(void) {
            signal(SIGUSR1, handler);
            struct sigaction open = { .sa_handler = handler, .sa_flags = SA_NODEFER };
            sigaction(SIGTRAP, &open, 0);
            for (int i = 0; i < 3; i++) {
                raise(SIGUSR1);
                __asm__ volatile("after: nop");
            }
            raise(SIGTRAP);
            __asm__ volatile("trap: int3");
            __asm__ volatile("beyond: nop");
            return seen;
        }"#,
    )
    .count();
    assert_eq!(it.outcome.status, 5);
    let counts = ["handle", "after", "trap", "beyond"].map(|label| it.at(label));
    assert_eq!(counts, [5, 3, 1, 1]);
}

#[test]
fn an_interrupted_system_call_counts_each_time_it_is_started() {
    let it = Program::build(
        "program.c",
        r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static int ends[2];
        static void handler(int signal) { write(ends[1], "!", 1); }
        static long read_one(char *into) {
            long result;
            __asm__ volatile("begin_read: syscall\nafter_read: nop"
                : "=a"(result) : "0"(SYS_read), "D"(ends[0]), "S"(into), "d"(1)
                : "rcx", "r11", "memory");
            return result;
        }
        int main(void) {
            struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
            sigaction(SIGALRM, &action, 0);
            pipe(ends);
            alarm(1);
            char byte;
            return read_one(&byte);
        }"#,
        &["-O0"],
    )
    .count();
    assert_eq!(it.outcome.status, 1);
    assert_eq!((it.at("begin_read"), it.at("after_read")), (2, 1));
}

#[test]
fn longjmp_over_frames_and_callbacks_from_libraries() {
    let it = Program::c(
        r#"
        #include <setjmp.h>
        #include <stdlib.h>
        static jmp_buf home;
        static int compare(const void *one, const void *other) {
            __asm__ volatile("compare_two: nop");
            return *(const int *)one - *(const int *)other;
        }
        static int leave(const void *one, const void *other) {
            __asm__ volatile("leaving: nop");
            longjmp(home, 1);
        }
        int main(void) {
            int numbers[] = { 2, 1 };
            volatile int rounds = 0;
            qsort(numbers, 2, sizeof *numbers, compare);
            setjmp(home);
            __asm__ volatile("at_home: nop");
            if (rounds++ < 4) {
                qsort(numbers, 2, sizeof *numbers, leave);
                __asm__ volatile("not_here: nop");
            }
            return rounds;
        }"#,
    )
    .count();
    assert_eq!(it.outcome.status, 5);
    let counts = ["compare_two", "leaving", "at_home", "not_here"].map(|label| it.at(label));
    assert_eq!(counts, [1, 4, 5, 0]);
}

#[test]
fn code_that_runs_before_main_counts() {
    let it = Program::c(
        r#"
        static int seven(void) { return 7; }
        static int (*choose(void))(void) { __asm__ volatile("choice: nop"); return seven; }
        int chosen(void) __attribute__((ifunc("choose")));
        __attribute__((constructor)) static void first(void) { __asm__ volatile("early: nop"); }
        __attribute__((destructor)) static void last(void) { __asm__ volatile("late: nop"); }
        int main(void) { return chosen() + chosen(); }
        "#,
    )
    .count();
    assert_eq!(it.outcome.status, 14);
    assert_eq!((it.at("early"), it.at("late")), (1, 1));
    assert!(it.at("choice") >= 1);
    assert_eq!(it.at("seven"), 2);
}

#[test]
fn a_program_that_runs_itself_counts_twice_and_others_do_not_count() {
    let it = Program::c(
        r#"
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(int argc, char **argv) {
            __asm__ volatile("begun: nop");
            if (argc == 2) return 6;
            pid_t child = vfork();
            if (child == 0) {
                execl("/bin/true", "true", (char *)0);
                _exit(1);
            }
            int status;
            waitpid(child, &status, 0);
            if (status != 0) return 1;
            execl("/proc/self/exe", argv[0], "again", (char *)0);
            __asm__ volatile("unreached: nop");
            return 2;
        }"#,
    )
    .count();
    assert_eq!(it.outcome.status, 6);
    assert_eq!((it.at("begun"), it.at("unreached")), (2, 0));
}

#[test]
fn a_killed_program_keeps_its_counts() {
    let it = Program::c(
        r#"
        #include <signal.h>
        #include <unistd.h>
        int main(void) {
            __asm__ volatile("alive: nop");
            kill(getpid(), SIGKILL);
            __asm__ volatile("dead: nop");
        }"#,
    )
    .count();
    assert_eq!(it.outcome.status, 128 + 9);
    assert_eq!((it.at("alive"), it.at("dead")), (1, 0));
}

#[test]
fn a_program_that_takes_too_many_steps_is_killed_with_its_children() {
    let it = Program::c(
        r#"
        #include <stdio.h>
        #include <unistd.h>
        int main(void) {
            if (fork() == 0)
                for (;;);
            for (;;);
        }"#,
    );
    let cut = count_within(&mut Command::new(&it.path), 20_000).expect("it can be stepped");
    assert_eq!(cut, None);
    let three = Program::bare(".globl _start\n_start: mov $60, %eax\nxor %edi, %edi\nsyscall\n");
    let steps = |most| count_within(&mut Command::new(&three.path), most).expect("it is counted");
    assert!(steps(4).is_some());
    assert!(steps(2).is_none());
}

#[test]
fn functions_add_up_and_output_is_the_programs_own() {
    let it = Program::build(
        "program.s",
        ".globl main, twice
                    .type main, @function
        main:       push %rbx
                    call twice
                    call twice
                    lea text(%rip), %rdi
                    call puts@PLT
                    xor %eax, %eax
                    pop %rbx
                    ret
                    .size main, . - main
                    .type twice, @function
        twice:      nop
                    jmp twice.cold
                    .size twice, . - twice
                    .section .text.unlikely, \"ax\"
                    .type twice.cold, @function
        twice.cold: nop
                    ret
                    .size twice.cold, . - twice.cold
                    .section .rodata
        text:       .asciz \"out\"
                    .section .note.GNU-stack, \"\"
        ",
        &[],
    )
    .count();
    assert_eq!(it.outcome.stdout, b"out\n");
    let functions = by_function(&it.outcome.counts, &it.program.path).expect("it has symbols");
    assert_eq!((functions["main"], functions["twice"]), (8, 8));
    assert!(!functions.contains_key("twice.cold"));
}

#[test]
fn the_command_writes_a_table_and_ends_like_the_program() {
    let program = Program::bare(
        ".globl _start
        _start:     mov $60, %eax
                    mov $3, %edi
                    syscall
        ",
    );
    let table = program.folder.path().join("counts.csv");
    let status = Command::new(env!("CARGO_BIN_EXE_headcount-oracle"))
        .arg("-o")
        .arg(&table)
        .arg("--")
        .arg(&program.path)
        .status()
        .expect("the oracle runs");
    assert_eq!(status.code(), Some(3));
    assert_eq!(
        fs::read_to_string(&table).expect("a table"),
        "address,count\n0x401000,1\n0x401005,1\n0x40100a,1\n"
    );
}
