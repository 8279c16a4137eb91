#~ routes: asm patch
#~ flags: -no-pie
#~ status: 30
# Blocks whose first instruction is of every shape that depends on where it stands.
        .text
        .globl  main
        .type   main, @function
main:
        pushq   %rbx                    #~ 1
        subq    $32, %rsp               #~ 1
        movl    $3, %ebx                #~ 1
again:
        leaq    add(%rip), %rax         #~ 3
        movq    %rax, (%rsp)            #~ 3
        movq    %rax, 8(%rsp)           #~ 3
        jmp     1f                      #~ 3
1:      cmpl    $5, number(%rip)        #~ 3
        jne     1f                      #~ 3
        ud2                             #~ 0
1:      pushq   %rbx                    #~ 3
        jmp     1f                      #~ 3
1:      popq    %rdx                    #~ 3
        jmp     1f                      #~ 3
1:      call    *(%rsp)                 #~ 3
        call    *8(%rsp)                #~ 3
        movl    $1, %edx                #~ 3
        jmp     1f                      #~ 3
1:      call    *-8(%rsp,%rdx,8)        #~ 3
        call    *pointer(%rip)          #~ 3
        call    *pointer                #~ 3
        call    *pointer-8(,%rdx,8)     #~ 3
        call    *pointer-1(%edx)        #~ 3
        call    *%fs:of_this_thread@tpoff#~ 3
        leaq    add(%rip), %r11         #~ 3
        jmp     1f                      #~ 3
1:      call    *%r11                   #~ 3
        call    add                     #~ 3
        call    only_returns            #~ 3
        pushq   $0                      #~ 3
        call    only_returns_and_pops   #~ 3
        movl    $3, %ecx                #~ 3
1:      loop    1b                      #~ 9
        jrcxz   1f                      #~ 3
        ud2                             #~ 0
1:      jmp     *table(,%rdx,8)         #~ 3
no:
        ud2                             #~ 0
yes:
        leaq    1f(%rip), %rax          #~ 3
        jmp     2f                      #~ 3
2:      jmp     *%rax                   #~ 3
        ud2                             #~ 0
1:      movl    $2, %ecx                #~ 3
        cmpl    %ecx, %ecx              #~ 3
1:      loope   1b                      #~ 6
        movl    $2, %ecx                #~ 3
        testl   %ecx, %ecx              #~ 3
1:      loopne  1b                      #~ 6
        movl    $39, %eax               #~ 3
        jmp     1f                      #~ 3
1:      syscall                         #~ 3
        # 3 against 2, 2 against 2, 1 against 2.
        cmpl    $2, %ebx                #~ 3
        jo      1f                      #~ 3
        nop                             #~ 3
1:      jno     1f                      #~ 3
        nop                             #~ 0
1:      jb      1f                      #~ 3
        nop                             #~ 2
1:      jae     1f                      #~ 3
        nop                             #~ 1
1:      je      1f                      #~ 3
        nop                             #~ 2
1:      jne     1f                      #~ 3
        nop                             #~ 1
1:      jbe     1f                      #~ 3
        nop                             #~ 1
1:      ja      1f                      #~ 3
        nop                             #~ 2
1:      js      1f                      #~ 3
        nop                             #~ 2
1:      jns     1f                      #~ 3
        nop                             #~ 1
1:      jp      1f                      #~ 3
        nop                             #~ 1
1:      jnp     1f                      #~ 3
        nop                             #~ 2
1:      jl      1f                      #~ 3
        nop                             #~ 2
1:      jge     1f                      #~ 3
        nop                             #~ 1
1:      jle     1f                      #~ 3
        nop                             #~ 1
1:      jg      1f                      #~ 3
        nop                             #~ 2
1:      decl    %ebx                    #~ 3
        jnz     again                   #~ 3
        movl    total(%rip), %eax       #~ 1
        addq    $32, %rsp               #~ 1
        popq    %rbx                    #~ 1
        ret                             #~ 1
        .size   main, . - main

        .type   add, @function
add:
        endbr64                         #~ 30
        incl    total(%rip)             #~ 30
        ret                             #~ 30
        .size   add, . - add

        .type   only_returns, @function
only_returns:
        ret                             #~ 3
        .size   only_returns, . - only_returns

        .type   only_returns_and_pops, @function
only_returns_and_pops:
        ret     $8                      #~ 3
        .size   only_returns_and_pops, . - only_returns_and_pops

        .data
        .balign 8
total:  .long   0
number: .long   7
pointer:
        .quad   add
table:  .quad   no, yes
        .section .tdata, "awT", @progbits
of_this_thread:
        .quad   add
        .section .note.GNU-stack, "", @progbits
