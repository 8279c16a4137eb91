#~ routes: asm patch
#~ flags: -no-pie
#~ status: 7
#~ calls: shared 1
        .text
        .globl  main
        .type   main, @function
main:
        subq    $8, %rsp                #~ 1
        movl    $3, %edi                #~ 1
        call    first                   #~ 1
        movl    %eax, %edi              #~ 1
        call    shared                  #~ 1
        addq    $8, %rsp                #~ 1
        ret                             #~ 1
        .size   main, . - main

        .type   first, @function
first:
        leal    1(%rdi), %eax           #~ 1
        jmp     .Linside                #~ 1
        .size   first, . - first

        .type   shared, @function
shared:
        movl    %edi, %eax              #~ 1
        incl    %eax                    #~ 1
.Linside:
        incl    %eax                    #~ 2
        ret                             #~ 2
        .size   shared, . - shared
        .section .note.GNU-stack, "", @progbits
