# Functions so short, and so close to each other, that no jump of five bytes fits where control comes
# in or comes back.
    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm
    .macro end name
    .size \name, . - \name
    .endm
# As compilers make them that do not optimise: two bytes behind the call, then the next function.
    .macro wrapper name
    .p2align 4, 0xcc
function \name
    push %rax
    mov %rdi, (%rsp)
    mov (%rdi), %rdi
    call leaf
    pop %rcx
    ret
end \name
    .endm
    .text
wrapper w0
wrapper w1
wrapper w2
wrapper w3
    .p2align 4, 0xcc
function leaf
    mov %rdi, %rax
    ret
end leaf
# One byte, two bytes and three, with nothing behind them but the next function.
function nothing
    ret
end nothing
function calls_nothing
    sub $8, %rsp
    call nothing
    .byte 0x67
    call nothing
    lea 1(%rdi), %rax
    add $8, %rsp
    ret
end calls_nothing
function hops
    jmp hopped
end hops
function hopped
    lea 2(%rdi), %rax
    ret
    .p2align 5, 0xcc
end hopped
function zero
    xor %eax, %eax
    ret
end zero
# Their bytes are dead once they were copied: others may use them.
    .macro roomy name
function \name
    mov %rdi, %rax
    add $1, %rax
    add $2, %rax
    add $3, %rax
    add $4, %rax
    add $5, %rax
    add $6, %rax
    add $7, %rax
    add $8, %rax
    ret
end \name
    .endm
roomy roomy
roomy also_roomy
function last
    ret
end last
function follows
    lea 3(%rdi), %rax
    add $4, %rax
    ret
end follows
    .section .note.GNU-stack, "", @progbits
