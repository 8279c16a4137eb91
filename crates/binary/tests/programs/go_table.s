# A program with a table of its functions as Go makes it. EDITION says which: 0xfb is that of Go 1.2,
# 0xfa of 1.16, 0xf0 of 1.18, 0xf1 of 1.20. With NO_TEXT it is that of Go 1.26, which does not say
# where the text is. With MERGED it is where other linkers than Go's put it.

# Sizes in symbols are those that the reader should find without symbols.
        .macro  begins name
        .p2align 5, 0xcc
        .globl  "\name"
        .type   "\name", @function
"\name":
        .endm

        .macro  ends name
        .size   "\name", . - "\name"
        .endm

        .text
        begins  _start                  # Not Go's, so Go's text is not where the section begins.
        xor     %edi, %edi
        mov     $60, %eax
        syscall
        ends    _start

        begins  main.jumps
        .skip   50, 0x90
        .byte   0xeb, 0xcc              # jmp main.jumps
        ends    main.jumps

        begins  main.long
        .skip   199, 0x90
        ret
        ends    main.long

        begins  between                 # Another's code between that of Go: no record tells of it.
        call    of_c
        ret
        ends    between

        begins  of_c                    # C in a program of Go: a record, but no list.
        push    %rbx
        pop     %rbx
        ret
        ends    of_c

        begins  main.last
        ret
        ends    main.last
        .p2align 5, 0xcc
end_of_text:

        .macro  address of
        .if     EDITION < 0xfa
        .long   \of - main.jumps
        .else
        .quad   \of
        .endif
        .endm

        .macro  entry function, record
        address \function
        .if     EDITION < 0xfa
        .long   \record - from
        .else
        .quad   \record - from
        .endif
        .endm

        .macro  record of, name, list
        address \of
        .long   \name - from_names, 0, 0
        .ifnb   \list
        .long   \list - from_lists
        .else
        .long   0
        .endif
        .endm

        .ifdef  MERGED
        .section .go.buildinfo, "aw"
        .quad   0
        .section .data.rel.ro, "aw"
        .byte   0xff, 0xff, 0xff, 0, 0, 1, 8
        .fill   5, 8, 0xfffffff1        # This is no table.
        .p2align 5
        .else
        .section .gopclntab, "aw"
        .endif
table:
        .byte   EDITION, 0xff, 0xff, 0xff, 0, 0, 1, 8
        .quad   5
        .if     EDITION == 0xfb
        .set    from, table
        .set    from_names, table
        .set    from_lists, table
        .else
        .quad   1
        .if     EDITION < 0xfa
        .ifdef  NO_TEXT
        .quad   0
        .else
        .quad   main.jumps
        .endif
        .endif
        .quad   names - table, 0, 0, lists - table, list - table
        .set    from, list
        .set    from_names, names
        .set    from_lists, lists
        .endif
list:
        entry   main.jumps, jumps_record
        entry   main.long, long_record
        entry   between, from
        entry   of_c, of_c_record
        entry   main.last, last_record
        address end_of_text
        .long   0
jumps_record:
        record  main.jumps, jumps_name, jumps_list
long_record:
        record  main.long, long_name, long_list
of_c_record:
        record  of_c, of_c_name
last_record:
        record  main.last, last_name, last_list
names:
        .byte   0
jumps_name:
        .asciz  "main.jumps"
long_name:
        .asciz  "main.long"
of_c_name:
        .asciz  "of_c"
last_name:
        .asciz  "main.last"
lists:
        .byte   0
jumps_list:
        .byte   2, 52, 0
long_list:
        .byte   2, 4, 16, 0xc3, 1, 15, 1, 0     # 4, 195 and 1 bytes
last_list:
        .byte   2, 1, 0

        .ifdef  NO_TEXT
        .section .go.module, "aw"
        .skip   20 * 8
        .quad   main.jumps, end_of_text, main.jumps, end_of_text
        .endif
