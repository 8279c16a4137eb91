// Code that leaves a probe no room: flags that live on, all registers in use, the red zone.

.macro function name
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
.endm
.macro end name
    .cfi_endproc
    .size \name, . - \name
.endm

    .text
// long carries(unsigned long *to, const unsigned long *from, long words): the last carry
function carries
    xor %ecx, %ecx              // and no carry
1:  mov (%rsi,%rcx,8), %rax
    adc %rax, (%rdi,%rcx,8)     //@adc
    inc %rcx
    dec %rdx                    //@dec
    jnz 1b                      //@jnz
    setc %al
    movzbl %al, %eax
    ret
end carries

// unsigned long flags(long one, long other): the flags behind a subtraction
function flags
    cmp %rsi, %rdi
    nop                         //@kept
    pushfq
    pop %rax
    ret
end flags

// The same where nobody looks.
function plain_flags
    cmp %rsi, %rdi
    nop
    pushfq
    pop %rax
    ret
end plain_flags

// unsigned long all(unsigned long *registers, long rounds)
function all
    push %rbx
    push %rbp
    push %r12
    push %r13
    push %r14
    push %r15
    push %rdi
    mov %rsi, %rax
    mov 8(%rdi), %rcx
    mov 16(%rdi), %rdx
    mov 24(%rdi), %rbx
    mov 32(%rdi), %rbp
    mov 40(%rdi), %rsi
    mov 56(%rdi), %r8
    mov 64(%rdi), %r9
    mov 72(%rdi), %r10
    mov 80(%rdi), %r11
    mov 88(%rdi), %r12
    mov 96(%rdi), %r13
    mov 104(%rdi), %r14
    mov 112(%rdi), %r15
    mov 48(%rdi), %rdi
1:  add %rdx, %rcx
    xor %rbx, %rdx
    add %rbp, %rbx
    xor %rsi, %rbp
    add %rdi, %rsi
    xor %r8, %rdi
    add %r9, %r8
    xor %r10, %r9
    add %r11, %r10
    xor %r12, %r11
    add %r13, %r12
    xor %r14, %r13
    add %r15, %r14
    xor %rcx, %r15              //@all
    dec %rax
    jnz 1b
    pop %rax
    mov %rcx, 8(%rax)
    mov %rdx, 16(%rax)
    mov %rbx, 24(%rax)
    mov %rbp, 32(%rax)
    mov %rsi, 40(%rax)
    mov %rdi, 48(%rax)
    mov %r8, 56(%rax)
    mov %r9, 64(%rax)
    mov %r10, 72(%rax)
    mov %r11, 80(%rax)
    mov %r12, 88(%rax)
    mov %r13, 96(%rax)
    mov %r14, 104(%rax)
    mov %r15, 112(%rax)
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbp
    pop %rbx
    ret
end all

// long red_zone(long one, long other)
function red_zone
    mov %rdi, -8(%rsp)
    mov %rsi, -128(%rsp)
    nop                         //@red
    mov -8(%rsp), %rax
    add -128(%rsp), %rax
    ret
end red_zone

// void fill(char *to, long bytes, int with)
function fill
    mov %rsi, %rcx
    mov %edx, %eax
    rep stosb                   //@rep
    ret
end fill

// void one(long rounds): a loop of one instruction
function one
    mov %rdi, %rcx
1:  loop 1b                     //@one
    ret
end one

// long middle(long n): who takes the second way comes in behind its first instruction
function middle
    add $1, %rdi
2:  lea (%rdi,%rdi), %rax       //@middle
    test $1, %dil
    jz 3f
    inc %rdi
    jmp 2b
3:  ret
end middle

// Functions of one instruction, side by side: no detour fits there.
function tiny
    ret
end tiny
function smaller
    ret
end smaller

// long down(long n): string instructions would go down
function down
    std
    mov %rdi, %rax              //@down
    cld
    ret
end down

    .section .note.GNU-stack, "", @progbits
