// Counters by hand: what `headcount cc` would insert, for programs that test the runtime.
//
// A file that includes this has NAMED counters, numbered from 0: COUNT(3) adds one to the third.
// ENTER() is the check at the beginning of every function that may be a thread's first.
#ifndef COUNTED_H
#define COUNTED_H

#ifndef COUNTERS
#define COUNTERS 8
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

__asm__(".pushsection headcount_counters,\"aw\",@nobits\n"
        "	.balign 8\n"
        "counted_here:\n"
        "	.zero 8 * " TEXT(COUNTERS) "\n"
        ".popsection\n"
        ".pushsection headcount_ids,\"a\",@progbits\n"
        "	.ascii \"an object of 16B\"\n"
        ".popsection\n"
        ".pushsection .text\n"
        "counted_enter:\n"
        "	pushq %rax\n"
        "	movq headcount.ready@gottpoff(%rip), %rax\n"
        "	cmpb $0, %fs:(%rax)\n"
        "	popq %rax\n"
        "	jne 1f\n"
        "	call headcount.enter\n"
        "1:	ret\n"
        "counted_after_fork:\n"
        "	jmp headcount.after_fork\n"
        "counted_before_clone:\n"
        "	movq headcount.ready@gottpoff(%rip), %rax\n"
        "	movb $0, %fs:(%rax)\n"
        "	ret\n"
        ".popsection\n");

#ifdef __cplusplus
extern "C" {
#endif
void counted_enter(void) __asm__("counted_enter");
void counted_after_fork(void) __asm__("counted_after_fork");
void counted_before_clone(void) __asm__("counted_before_clone");
#ifdef __cplusplus
}
#endif

#define ENTER() counted_enter()
#define AFTER_FORK() counted_after_fork()
#define BEFORE_CLONE() counted_before_clone()
#define COUNT(n) \
    __asm__ volatile("incq %%gs:counted_here + 8 * " TEXT(n) "(%%rip)" ::: "memory", "cc")

// Makes a loop of n rounds that counts each round, without any other work.
#define COUNT_LOOP(n, rounds) \
    for (long round_ = 0; round_ < (rounds); round_++) COUNT(n)

#endif
