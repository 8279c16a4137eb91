// Loops that count by themselves, in one instruction: whoever is interrupted, killed or moved away
// anywhere, the instruction was either run or not.

    .text
// void spin(unsigned long counters[8], unsigned long first): never ends
    .globl spin
    .type spin, @function
spin:
    .cfi_startproc
1:  incq (%rdi,%rsi,8)          //@spin
    inc %rsi
    and $7, %rsi
    jmp 1b
    .cfi_endproc
    .size spin, . - spin

// void turn(unsigned long counters[8], unsigned long first, long rounds)
    .globl turn
    .type turn, @function
turn:
    .cfi_startproc
1:  incq (%rdi,%rsi,8)          //@turn
    inc %rsi
    and $7, %rsi
    dec %rdx
    jnz 1b
    ret
    .cfi_endproc
    .size turn, . - turn

    .section .note.GNU-stack, "", @progbits
