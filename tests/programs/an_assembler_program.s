#~ routes: asm patch
#~ flags: -no-pie
#~ status: 55
        .text
        .globl  main
        .type   main, @function
main:
        pushq   %rbx                    #~ 1
        xorl    %eax, %eax              #~ 1
        movl    $10, %ebx               #~ 1
again:
        movl    %ebx, %edi              #~ 10
        call    add                     #~ 10
        decl    %ebx                    #~ 10
        jnz     again                   #~ 10
        cmpl    $0, %eax                #~ 1
        je      never                   #~ 1
        popq    %rbx                    #~ 1
        ret                             #~ 1
never:
        ud2                             #~ 0
        .size   main, . - main

        .type   add, @function
add:
        testl   $1, %edi                #~ 10
        jz      even                    #~ 10
        addl    %edi, %eax              #~ 5
        ret                             #~ 5
even:   addl    %edi, %eax              #~ 5
        ret                             #~ 5
        .size   add, . - add
        .section .note.GNU-stack, "", @progbits
