// Every register has a value of its own before headcount.enter, and the same value after. Run in
// a thread, so that the runtime has work to do.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "counted.h"

struct state {
    unsigned long general[16]; // in the order rax rbx rcx rdx rsi rdi rbp rsp r8 ... r15
    unsigned char vector[16][32];
    unsigned control; // mxcsr
} __attribute__((aligned(32)));

void fill_call_save(struct state *from, struct state *to, void (*callee)(void));
extern void enter(void) __asm__("headcount.enter") __attribute__((visibility("hidden")));
extern void after_fork(void) __asm__("headcount.after_fork") __attribute__((visibility("hidden")));

#define VECTORS(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8) \
    what(9) what(10) what(11) what(12) what(13) what(14) what(15)
#define LOAD(n) "	vmovups 128 + 32*" #n "(%rdi), %ymm" #n "\n"
#define STORE(n) "	vmovups %ymm" #n ", 128 + 32*" #n "(%rax)\n"

__asm__(".pushsection .text\n"
        "fill_call_save:\n"
        "	pushq %rbx\n	pushq %rbp\n	pushq %r12\n	pushq %r13\n	pushq %r14\n	pushq %r15\n"
        "	pushq %rsi\n"
        "	pushq %rdx\n" VECTORS(LOAD)
        "	ldmxcsr 640(%rdi)\n"
        "	movq 0(%rdi), %rax\n	movq 8(%rdi), %rbx\n	movq 16(%rdi), %rcx\n"
        "	movq 24(%rdi), %rdx\n	movq 32(%rdi), %rsi\n	movq 48(%rdi), %rbp\n"
        "	movq 64(%rdi), %r8\n	movq 72(%rdi), %r9\n	movq 80(%rdi), %r10\n"
        "	movq 88(%rdi), %r11\n	movq 96(%rdi), %r12\n	movq 104(%rdi), %r13\n"
        "	movq 112(%rdi), %r14\n	movq 120(%rdi), %r15\n	movq 40(%rdi), %rdi\n"
        "	call *(%rsp)\n"
        "	movq %rax, -8(%rsp)\n"
        "	movq 8(%rsp), %rax\n"
        "	movq %rbx, 8(%rax)\n	movq %rcx, 16(%rax)\n	movq %rdx, 24(%rax)\n"
        "	movq %rsi, 32(%rax)\n	movq %rdi, 40(%rax)\n	movq %rbp, 48(%rax)\n"
        "	movq %r8, 64(%rax)\n	movq %r9, 72(%rax)\n	movq %r10, 80(%rax)\n"
        "	movq %r11, 88(%rax)\n	movq %r12, 96(%rax)\n	movq %r13, 104(%rax)\n"
        "	movq %r14, 112(%rax)\n	movq %r15, 120(%rax)\n" VECTORS(STORE)
        "	stmxcsr 640(%rax)\n"
        "	movq -8(%rsp), %rcx\n	movq %rcx, 0(%rax)\n"
        "	vzeroupper\n"
        "	addq $16, %rsp\n"
        "	popq %r15\n	popq %r14\n	popq %r13\n	popq %r12\n	popq %rbp\n	popq %rbx\n"
        "	ret\n"
        ".popsection\n");

static void *check(void *callee) {
    static _Thread_local struct state before, after;
    unsigned char *bytes = (unsigned char *)&before;
    for (unsigned i = 0; i < sizeof before; i++) bytes[i] = (unsigned char)(i * 37 + 11);
    before.control = 0x9fc0; // flush to zero, denormals are zero, exceptions masked
    before.general[7] = 0;   // rsp is not part of it
    memcpy(&after, &before, sizeof before);
    memset(&after, 0, 128 + 512 + 4);
    fill_call_save(&before, &after, (void (*)(void))callee);
    return memcmp(&before, &after, 128 + 512 + 4) == 0 ? NULL : "changed";
}

int main(void) {
    void *callees[] = {(void *)enter, (void *)after_fork};
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *result = NULL;
        if (check(callees[i])) return 1 + i;
        pthread_create(&thread, NULL, check, callees[i]);
        pthread_join(thread, &result);
        if (result) return 3 + i;
    }
    return 0;
}
