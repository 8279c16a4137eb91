# The doors between counted code and the guest. GROUP is the name of the COMDAT group. Their names
# are none that C could have: libtool takes all others for the user's, and declares them.
	.att_syntax prefix
	.hidden __start_headcount_counters
	.hidden __stop_headcount_counters
	.weak __start_headcount_ids
	.weak __stop_headcount_ids
	.hidden __start_headcount_ids
	.hidden __stop_headcount_ids
	.weak environ
	.weak getauxval
	.weak __libc_start_main
	.weak __register_atfork
	.weak pthread_atfork
	.weak __dso_handle
	.hidden __dso_handle

# As in opening.s. (Where that was forgotten, there is a gap between counters; no more.)
	.section headcount_counters,"awG",@nobits,GROUP,comdat
	.balign 4096

# Not zero in a thread that has come to this module before.
	.section .tbss.headcount,"awTG",@nobits,GROUP,comdat
	.globl headcount.ready
	.hidden headcount.ready
	.type headcount.ready,@object
	.size headcount.ready,1
headcount.ready:
	.zero 1

# Where the table's detector is, once there is a table.
	.section .bss.headcount,"awG",@nobits,GROUP,comdat
	.balign 8
headcount_detector:
	.zero 8
# Instead of `headcount.ready` in a program without libc, where nobody makes room for thread-local
# variables: not zero once its first thread has come here.
	.globl headcount.begun
	.hidden headcount.begun
	.type headcount.begun,@object
	.size headcount.begun,1
headcount.begun:
	.zero 1

# First and last of all constructors and destructors of the module.
	.section .init_array.00001,"awG",@init_array,GROUP,comdat
	.balign 8
	.quad .Lheadcount_start
	.section .fini_array.00001,"awG",@fini_array,GROUP,comdat
	.balign 8
	.quad .Lheadcount_end

	.section .text.headcount,"axG",@progbits,GROUP,comdat
# Called by functions that find `headcount.ready` or `headcount.begun` zero. Keeps every register (the guest uses the
# lower halves of the vector registers at most, which fxsave covers), but not the flags.
	.globl headcount.enter
	.hidden headcount.enter
	.type headcount.enter,@function
headcount.enter:
	pushq %rbx
	leaq headcount_set_up(%rip), %rbx
	jmp .Lheadcount_guard
	.size headcount.enter, .-headcount.enter

# Called after a call that may have made a child without libc's knowing. Keeps every register but
# the flags. Most calls make no child: these only read the detector, which is 1 then.
	.globl headcount.after_fork
	.hidden headcount.after_fork
	.type headcount.after_fork,@function
headcount.after_fork:
	pushq %rbx
	movq headcount_detector(%rip), %rbx
	testq %rbx, %rbx
	je .Lheadcount_no_child
	cmpq $1, (%rbx)
	je .Lheadcount_no_child
	leaq .Lheadcount_look(%rip), %rbx
	jmp .Lheadcount_guard
.Lheadcount_no_child:
	popq %rbx
	ret
	.size headcount.after_fork, .-headcount.after_fork

.Lheadcount_guard:
	pushq %rbp
	movq %rsp, %rbp
	pushq %rax
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	pushq %r8
	pushq %r9
	pushq %r10
	pushq %r11
	subq $512, %rsp
	andq $-16, %rsp
	fxsave64 (%rsp)
	call *%rbx
	testb %al, %al
	je .Lheadcount_return
	movb $1, headcount.begun(%rip)
	cmpq $0, __libc_start_main@GOTPCREL(%rip)
	je .Lheadcount_return
	movq headcount.ready@gottpoff(%rip), %rax
	movb $1, %fs:(%rax)
.Lheadcount_return:
	fxrstor64 (%rsp)
	leaq -72(%rbp), %rsp
	popq %r11
	popq %r10
	popq %r9
	popq %r8
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	popq %rax
	popq %rbp
	popq %rbx
	ret

.Lheadcount_look:
	pushq %rax
	call headcount_adopt
	popq %rcx
	xorl %eax, %eax
	ret

# Called by libc, with the stack aligned and nothing to keep.
.Lheadcount_start:
	endbr64
	pushq %rax
	call headcount.enter
	leaq .Lheadcount_child(%rip), %rdi
	call headcount_construct
	popq %rax
	ret
.Lheadcount_end:
	endbr64
	jmp headcount_finish
.Lheadcount_child:
	endbr64
	jmp headcount_adopt
