#~ routes: asm patch
#~ flags: -no-pie
        .text
        .globl  main
        .type   main, @function
main:
        pushq   %rbx                    #~ 1
        xorl    %ecx, %ecx              #~ 1
again:
        call    1f                      #~ 4
1:      popq    %rbx                    #~ 4
        leaq    here-1b(%rbx), %rdx     #~ 4
        jmp     *%rdx                   #~ 4
        ud2                             #~ 0
here:
        incl    %ecx                    #~ 4
        cmpl    $4, %ecx                #~ 4
        jne     again                   #~ 4
        call    .Linside                #~ 1
        call    .Linside                #~ 1
        leal    -6(%rcx), %eax          #~ 1
        popq    %rbx                    #~ 1
        ret                             #~ 1
.Linside:
        incl    %ecx                    #~ 2
        ret                             #~ 2
        .size   main, . - main
        .section .note.GNU-stack, "", @progbits
