//! Bytes before, bytes after, and what a stop in the slot means. Both columns are what the GNU
//! assembler makes of the text beside them. Operands relative to `rip` are written as the address
//! they mean.

use super::*;

const AT: LoadAddr = LoadAddr(0x40_1000);
const SLOT: LoadAddr = LoadAddr(0x50_0000);

use Interrupted::{Before, BeforeWithPush};

const fn after(address: u64) -> Interrupted {
    Interrupted::After(LoadAddr(address))
}

/// An instruction at [`AT`], and its slot at [`SLOT`].
struct Row {
    before: &'static [u8],
    after: &'static [u8],
    /// Every offset where an instruction of the slot begins.
    stops: &'static [(u64, Interrupted)],
}

impl Row {
    /// All that is wrong with the slot.
    fn mistakes(&self) -> Vec<String> {
        let out_of_line = match past(self.before, AT, SLOT) {
            Ok(Past::Slot(it)) => it,
            other => return vec![format!("{:02x?} became {other:?}", self.before)],
        };
        let mut mistakes = Vec::new();
        if out_of_line.code != self.after {
            let (before, code, wanted) = (self.before, &out_of_line.code, self.after);
            mistakes.push(format!("{before:02x?}: {code:02x?}, not {wanted:02x?}"));
        }
        for offset in 0..LONGEST_SLOT as u64 + 2 {
            let wanted = self.stops.iter().find(|(at, _)| *at == offset);
            let means = out_of_line.interrupted(offset);
            if means != wanted.map(|(_, means)| *means) {
                mistakes.push(format!("{:02x?} at {offset}: {means:?}", self.before));
            }
        }
        if out_of_line.code.len() > LONGEST_SLOT {
            mistakes.push(format!("{:02x?}: its slot is too long", self.before));
        }
        mistakes
    }
}

fn assert_moved(rows: &[Row]) {
    let mistakes: Vec<String> = rows.iter().flat_map(Row::mistakes).collect();
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n"));
}

#[rustfmt::skip]
const PLAIN: &[Row] = &[
    Row {
        before: &[0x48, 0x89, 0xc3], // mov %rax, %rbx
        after: &[
            0x48, 0x89, 0xc3, // mov %rax, %rbx
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401003
        ],
        stops: &[(0, Before), (3, after(0x401003))],
    },
    Row {
        before: &[0xf0, 0x48, 0xff, 0x07], // lock incq (%rdi)
        after: &[
            0xf0, 0x48, 0xff, 0x07, // lock incq (%rdi)
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401004
        ],
        stops: &[(0, Before), (4, after(0x401004))],
    },
    Row {
        before: &[0xf3, 0xa4], // rep movsb
        after: &[
            0xf3, 0xa4, // rep movsb
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
        ],
        stops: &[(0, Before), (2, after(0x401002))],
    },
    Row {
        before: &[0x0f, 0x05], // syscall
        after: &[
            0x0f, 0x05, // syscall
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
        ],
        stops: &[(0, Before), (2, after(0x401002))],
    },
    Row {
        before: &[0x0f, 0x0b], // ud2
        after: &[
            0x0f, 0x0b, // ud2
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
        ],
        stops: &[(0, Before), (2, after(0x401002))],
    },
    Row {
        before: &[0xf1], // int1
        after: &[
            0xf1, // int1
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401001
        ],
        stops: &[(0, Before), (1, after(0x401001))],
    },
    Row {
        before: &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00], // fs mov 40, %rax
        after: &[
            0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00, // fs mov 40, %rax
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401009
        ],
        stops: &[(0, Before), (9, after(0x401009))],
    },
    Row {
        before: &[0x48, 0x8b, 0x84, 0x24, 0x10, 0x00, 0x00, 0x00], // mov 16(%rsp), %rax
        after: &[
            0x48, 0x8b, 0x84, 0x24, 0x10, 0x00, 0x00, 0x00, // mov 16(%rsp), %rax
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401008
        ],
        stops: &[(0, Before), (8, after(0x401008))],
    },
    Row {
        before: &[0xf3, 0x90], // pause
        after: &[
            0xf3, 0x90, // pause
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
        ],
        stops: &[(0, Before), (2, after(0x401002))],
    },
    Row {
        before: &[0xc5, 0xed, 0xfe, 0xd9], // vpaddd %ymm1, %ymm2, %ymm3
        after: &[
            0xc5, 0xed, 0xfe, 0xd9, // vpaddd %ymm1, %ymm2, %ymm3
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401004
        ],
        stops: &[(0, Before), (4, after(0x401004))],
    },
];

#[test]
fn an_instruction_that_does_not_care_where_it_is_is_copied() {
    assert_moved(PLAIN);
}

#[rustfmt::skip]
const RELATIVE: &[Row] = &[
    Row {
        before: &[0x48, 0x8b, 0x05, 0xf9, 0x0f, 0x00, 0x00], // mov 0x402000(%rip), %rax
        after: &[
            0x48, 0x8b, 0x05, 0xf9, 0x1f, 0xf0, 0xff, // mov 0x402000(%rip), %rax
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401007
        ],
        stops: &[(0, Before), (7, after(0x401007))],
    },
    Row {
        before: &[0x48, 0x8d, 0x3d, 0xf9, 0x0f, 0x00, 0x00], // lea 0x402000(%rip), %rdi
        after: &[
            0x48, 0x8d, 0x3d, 0xf9, 0x1f, 0xf0, 0xff, // lea 0x402000(%rip), %rdi
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401007
        ],
        stops: &[(0, Before), (7, after(0x401007))],
    },
    Row {
        before: &[0x80, 0x3d, 0xf9, 0x0f, 0x00, 0x00, 0x05], // cmpb $5, 0x402000(%rip)
        after: &[
            0x80, 0x3d, 0xf9, 0x1f, 0xf0, 0xff, 0x05, // cmpb $5, 0x402000(%rip)
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401007
        ],
        stops: &[(0, Before), (7, after(0x401007))],
    },
    Row {
        before: &[0x81, 0x05, 0xf6, 0x0f, 0x00, 0x00, 0x78, 0x56, 0x34, 0x12], // addl $0x12345678, 0x402000(%rip)
        after: &[
            0x81, 0x05, 0xf6, 0x1f, 0xf0, 0xff, 0x78, 0x56, 0x34, 0x12, // addl $0x12345678, 0x402000(%rip)
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x40100a
        ],
        stops: &[(0, Before), (10, after(0x40100a))],
    },
    Row {
        before: &[0x0f, 0x28, 0x05, 0xf9, 0x0f, 0x00, 0x00], // movaps 0x402000(%rip), %xmm0
        after: &[
            0x0f, 0x28, 0x05, 0xf9, 0x1f, 0xf0, 0xff, // movaps 0x402000(%rip), %xmm0
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401007
        ],
        stops: &[(0, Before), (7, after(0x401007))],
    },
    Row {
        before: &[0x6b, 0x05, 0xf9, 0x0f, 0x00, 0x00, 0x03], // imul $3, 0x402000(%rip), %eax
        after: &[
            0x6b, 0x05, 0xf9, 0x1f, 0xf0, 0xff, 0x03, // imul $3, 0x402000(%rip), %eax
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401007
        ],
        stops: &[(0, Before), (7, after(0x401007))],
    },
    Row {
        before: &[0x66, 0x0f, 0x70, 0x05, 0xf7, 0x0f, 0x00, 0x00, 0x01], // pshufd $1, 0x402000(%rip), %xmm0
        after: &[
            0x66, 0x0f, 0x70, 0x05, 0xf7, 0x1f, 0xf0, 0xff, 0x01, // pshufd $1, 0x402000(%rip), %xmm0
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401009
        ],
        stops: &[(0, Before), (9, after(0x401009))],
    },
    Row {
        before: &[0xc5, 0xf9, 0x70, 0x05, 0xf7, 0x0f, 0x00, 0x00, 0x01], // vpshufd $1, 0x402000(%rip), %xmm0
        after: &[
            0xc5, 0xf9, 0x70, 0x05, 0xf7, 0x1f, 0xf0, 0xff, 0x01, // vpshufd $1, 0x402000(%rip), %xmm0
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401009
        ],
        stops: &[(0, Before), (9, after(0x401009))],
    },
    Row {
        before: &[0xff, 0x25, 0xfa, 0x0f, 0x00, 0x00], // jmp *0x402000(%rip)
        after: &[
            0xff, 0x25, 0xfa, 0x1f, 0xf0, 0xff, // jmp *0x402000(%rip)
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401006
        ],
        stops: &[(0, Before), (6, after(0x401006))],
    },
];

#[test]
fn a_distance_from_the_instruction_is_made_one_from_the_slot() {
    assert_moved(RELATIVE);
}

#[rustfmt::skip]
const STACK_AND_JUMPS: &[Row] = &[
    Row {
        before: &[0x55], // push %rbp
        after: &[
            0x55, // push %rbp
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401001
        ],
        stops: &[(0, Before), (1, after(0x401001))],
    },
    Row {
        before: &[0x5d], // pop %rbp
        after: &[
            0x5d, // pop %rbp
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401001
        ],
        stops: &[(0, Before), (1, after(0x401001))],
    },
    Row {
        before: &[0xc3], // ret
        after: &[
            0xc3, // ret
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401001
        ],
        stops: &[(0, Before), (1, after(0x401001))],
    },
    Row {
        before: &[0xc2, 0x10, 0x00], // ret $16
        after: &[
            0xc2, 0x10, 0x00, // ret $16
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401003
        ],
        stops: &[(0, Before), (3, after(0x401003))],
    },
    Row {
        before: &[0xc9], // leave
        after: &[
            0xc9, // leave
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401001
        ],
        stops: &[(0, Before), (1, after(0x401001))],
    },
    Row {
        before: &[0xff, 0xe0], // jmp *%rax
        after: &[
            0xff, 0xe0, // jmp *%rax
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
        ],
        stops: &[(0, Before), (2, after(0x401002))],
    },
    Row {
        before: &[0xff, 0x64, 0x24, 0x08], // jmp *8(%rsp)
        after: &[
            0xff, 0x64, 0x24, 0x08, // jmp *8(%rsp)
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401004
        ],
        stops: &[(0, Before), (4, after(0x401004))],
    },
    Row {
        before: &[0xff, 0x24, 0xcd, 0x00, 0x00, 0x00, 0x00], // jmp *(,%rcx,8)
        after: &[
            0xff, 0x24, 0xcd, 0x00, 0x00, 0x00, 0x00, // jmp *(,%rcx,8)
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401007
        ],
        stops: &[(0, Before), (7, after(0x401007))],
    },
    Row {
        before: &[0x48, 0xcf], // iretq
        after: &[
            0x48, 0xcf, // iretq
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
        ],
        stops: &[(0, Before), (2, after(0x401002))],
    },
    Row {
        before: &[0xcb], // lret
        after: &[
            0xcb, // lret
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401001
        ],
        stops: &[(0, Before), (1, after(0x401001))],
    },
    Row {
        before: &[0xff, 0x28], // ljmp *(%rax)
        after: &[
            0xff, 0x28, // ljmp *(%rax)
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
        ],
        stops: &[(0, Before), (2, after(0x401002))],
    },
];

#[test]
fn the_stack_and_indirect_jumps_need_no_change() {
    assert_moved(STACK_AND_JUMPS);
}

#[rustfmt::skip]
const LOOPS: &[Row] = &[
    Row {
        before: &[0xe2, 0x10], // loop .+0x12
        after: &[
            0xe2, 0x05, // loop .+7
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
            0xe9, 0x06, 0x10, 0xf0, 0xff, // jmp 0x401012
        ],
        stops: &[(0, Before), (2, after(0x401002)), (7, after(0x401012))],
    },
    Row {
        before: &[0xe1, 0x10], // loope .+0x12
        after: &[
            0xe1, 0x05, // loope .+7
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
            0xe9, 0x06, 0x10, 0xf0, 0xff, // jmp 0x401012
        ],
        stops: &[(0, Before), (2, after(0x401002)), (7, after(0x401012))],
    },
    Row {
        before: &[0xe0, 0x10], // loopne .+0x12
        after: &[
            0xe0, 0x05, // loopne .+7
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
            0xe9, 0x06, 0x10, 0xf0, 0xff, // jmp 0x401012
        ],
        stops: &[(0, Before), (2, after(0x401002)), (7, after(0x401012))],
    },
    Row {
        before: &[0xe3, 0x10], // jrcxz .+0x12
        after: &[
            0xe3, 0x05, // jrcxz .+7
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401002
            0xe9, 0x06, 0x10, 0xf0, 0xff, // jmp 0x401012
        ],
        stops: &[(0, Before), (2, after(0x401002)), (7, after(0x401012))],
    },
    Row {
        before: &[0x67, 0xe3, 0x0f], // jecxz .+0x12
        after: &[
            0x67, 0xe3, 0x05, // jecxz .+8
            0xe9, 0xfb, 0x0f, 0xf0, 0xff, // jmp 0x401003
            0xe9, 0x05, 0x10, 0xf0, 0xff, // jmp 0x401012
        ],
        stops: &[(0, Before), (3, after(0x401003)), (8, after(0x401012))],
    },
];

#[test]
fn a_branch_that_knows_short_distances_only_hops_over_a_jump() {
    assert_moved(LOOPS);
}

#[rustfmt::skip]
const CALLS: &[Row] = &[
    Row {
        before: &[0xe8, 0xfb, 0x0f, 0x00, 0x00], // call 0x402000
        after: &[
            0xff, 0x35, 0x05, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xe9, 0xf5, 0x1f, 0xf0, 0xff, // jmp 0x402000
            0x05, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401005
        ],
        stops: &[(0, Before), (6, after(0x402000))],
    },
    Row {
        before: &[0xff, 0xd0], // call *%rax
        after: &[
            0xff, 0x35, 0x02, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xff, 0xe0, // jmp *%rax
            0x02, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401002
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0x41, 0xff, 0xd3], // call *%r11
        after: &[
            0xff, 0x35, 0x03, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0x41, 0xff, 0xe3, // jmp *%r11
            0x03, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401003
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0xff, 0x10], // call *(%rax)
        after: &[
            0xff, 0x35, 0x06, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xff, 0xa0, 0x00, 0x00, 0x00, 0x00, // jmp *(%rax)
            0x02, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401002
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0xff, 0x55, 0xf8], // call *-8(%rbp)
        after: &[
            0xff, 0x35, 0x06, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xff, 0xa5, 0xf8, 0xff, 0xff, 0xff, // jmp *-8(%rbp)
            0x03, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401003
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0xff, 0x14, 0x24], // call *(%rsp)
        after: &[
            0xff, 0x35, 0x07, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xff, 0xa4, 0x24, 0x08, 0x00, 0x00, 0x00, // jmp *8(%rsp)
            0x03, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401003
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0xff, 0x54, 0x24, 0x10], // call *16(%rsp)
        after: &[
            0xff, 0x35, 0x07, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xff, 0xa4, 0x24, 0x18, 0x00, 0x00, 0x00, // jmp *24(%rsp)
            0x04, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401004
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0xff, 0x54, 0x9c, 0xf8], // call *-8(%rsp,%rbx,4)
        after: &[
            0xff, 0x35, 0x07, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xff, 0xa4, 0x9c, 0x00, 0x00, 0x00, 0x00, // jmp *0(%rsp,%rbx,4)
            0x04, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401004
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0x43, 0xff, 0x14, 0xec], // call *(%r12,%r13,8)
        after: &[
            0xff, 0x35, 0x08, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0x43, 0xff, 0xa4, 0xec, 0x00, 0x00, 0x00, 0x00, // jmp *(%r12,%r13,8)
            0x04, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401004
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0xff, 0x14, 0xcd, 0x00, 0x20, 0x40, 0x00], // call *0x402000(,%rcx,8)
        after: &[
            0xff, 0x35, 0x07, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xff, 0x24, 0xcd, 0x00, 0x20, 0x40, 0x00, // jmp *0x402000(,%rcx,8)
            0x07, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401007
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0xff, 0x14, 0x25, 0x00, 0x20, 0x40, 0x00], // call *0x402000
        after: &[
            0xff, 0x35, 0x07, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xff, 0x24, 0x25, 0x00, 0x20, 0x40, 0x00, // jmp *0x402000
            0x07, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401007
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0x64, 0xff, 0x14, 0x25, 0x28, 0x00, 0x00, 0x00], // call *%fs:0x28
        after: &[
            0xff, 0x35, 0x08, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0x64, 0xff, 0x24, 0x25, 0x28, 0x00, 0x00, 0x00, // jmp *%fs:0x28
            0x08, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401008
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0x64, 0xff, 0x10], // call *%fs:(%rax)
        after: &[
            0xff, 0x35, 0x07, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0x64, 0xff, 0xa0, 0x00, 0x00, 0x00, 0x00, // jmp *%fs:(%rax)
            0x03, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401003
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0x65, 0xff, 0x50, 0xf8], // call *%gs:-8(%rax)
        after: &[
            0xff, 0x35, 0x07, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0x65, 0xff, 0xa0, 0xf8, 0xff, 0xff, 0xff, // jmp *%gs:-8(%rax)
            0x04, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401004
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0x3e, 0xff, 0xd0], // notrack call *%rax
        after: &[
            0xff, 0x35, 0x03, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0x3e, 0xff, 0xe0, // notrack jmp *%rax
            0x03, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401003
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0x67, 0xff, 0x50, 0x08], // call *8(%eax)
        after: &[
            0xff, 0x35, 0x07, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0x67, 0xff, 0xa0, 0x08, 0x00, 0x00, 0x00, // jmp *8(%eax)
            0x04, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401004
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0x67, 0xff, 0x50, 0xf8], // call *-8(%eax)
        after: &[
            0xff, 0x35, 0x07, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0x67, 0xff, 0xa0, 0xf8, 0xff, 0xff, 0xff, // jmp *-8(%eax)
            0x04, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401004
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0x67, 0xff, 0x54, 0x24, 0x08], // call *8(%esp)
        after: &[
            0xff, 0x35, 0x08, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0x67, 0xff, 0xa4, 0x24, 0x10, 0x00, 0x00, 0x00, // jmp *16(%esp)
            0x05, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401005
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
    Row {
        before: &[0xff, 0x15, 0xfa, 0x0f, 0x00, 0x00], // call *0x402000(%rip)
        after: &[
            0xff, 0x35, 0x06, 0x00, 0x00, 0x00, // pushq .quad below(%rip)
            0xff, 0x25, 0xf4, 0x1f, 0xf0, 0xff, // jmp *0x402000(%rip)
            0x06, 0x10, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, // .quad 0x401006
        ],
        stops: &[(0, Before), (6, BeforeWithPush)],
    },
];

#[test]
fn a_call_pushes_the_address_behind_the_original() {
    assert_moved(CALLS);
}

/// The sixteen conditions, in the order of their codes.
const CONDITIONS: [&str; 16] = [
    "o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g",
];

#[test]
fn every_condition_becomes_a_long_branch_with_the_same_code() {
    for (code, name) in (0_u8..).zip(CONDITIONS) {
        // j.. 0x401012, in both its lengths
        let short = [0x70 | code, 0x10];
        let near = [0x0f, 0x80 | code, 0x0c, 0x00, 0x00, 0x00];
        let text = |bytes: &[u8]| format!("{bytes:02x?} (j{name})");
        for (bytes, next, back) in [(&short[..], 0x40_1002, 0xf7), (&near, 0x40_1006, 0xfb)] {
            let Ok(Past::Slot(slot)) = past(bytes, AT, SLOT) else {
                panic!("{} cannot be moved", text(bytes));
            };
            #[rustfmt::skip]
            let wanted = [
                0x0f, 0x80 | code, 0x0c, 0x10, 0xf0, 0xff, // j.. 0x401012
                0xe9, back, 0x0f, 0xf0, 0xff, // jmp, to what follows the original
            ];
            assert_eq!(slot.code, wanted, "{}", text(bytes));
            assert_eq!(slot.interrupted(0), Some(Before));
            assert_eq!(slot.interrupted(6), Some(after(next)), "{}", text(bytes));
            assert_eq!(slot.interrupted(11), None);
        }
    }
}

#[test]
fn what_only_goes_on_needs_no_slot() {
    #[rustfmt::skip]
    let rows: &[(&[u8], u64)] = &[
        (&[0xeb, 0x10], 0x40_1012),                         // jmp 0x401012
        (&[0xeb, 0xfe], 0x40_1000),                         // jmp to itself
        (&[0xe9, 0xfb, 0x0f, 0x00, 0x00], 0x40_2000),       // jmp 0x402000
        (&[0x90], 0x40_1001),                               // nop
        (&[0x66, 0x90], 0x40_1002),                         // xchg %ax, %ax
        (&[0x0f, 0x1f, 0x44, 0x00, 0x00], 0x40_1005),       // nopl 0(%rax,%rax)
        (&[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], 0x40_100a), // cs nopw 0(%rax,%rax)
        (&[0xf3, 0x0f, 0x1e, 0xfa], 0x40_1004),             // endbr64
    ];
    for (bytes, next) in rows {
        let goes = past(bytes, AT, SLOT);
        assert_eq!(goes, Ok(Past::GoTo(LoadAddr(*next))), "{bytes:02x?}");
    }
}

#[test]
fn a_breakpoint_of_the_program_stays_its_own() {
    assert_eq!(past(&[0xcc], AT, SLOT), Ok(Past::OwnTrap)); // int3
}

#[test]
fn what_is_tied_to_its_place_is_refused() {
    #[rustfmt::skip]
    let rows: &[&[u8]] = &[
        &[0xc7, 0xf8, 0x00, 0x01, 0x00, 0x00], // xbegin 0x401106
        &[0xff, 0x18],                         // lcall *(%rax): pushes where it is
        &[0xff, 0xd4],                         // call *%rsp: not after a push
    ];
    for bytes in rows {
        let moved = past(bytes, AT, SLOT);
        assert_eq!(moved, Err(CannotMove::TiedToItsPlace), "{bytes:02x?}");
    }
}

#[test]
fn what_is_no_instruction_is_refused() {
    #[rustfmt::skip]
    let rows: &[&[u8]] = &[
        &[],
        &[0x06],                                     // push %es, before x86-64
        &[0x9a, 0, 0, 0, 0, 0x33, 0],                // lcall $0x33, $0, before x86-64
        &[0xea, 0, 0, 0, 0, 0x33, 0],                // ljmp $0x33, $0, before x86-64
        &[0x48, 0x8b],                               // mov, cut off
        &[0xe8, 0x00, 0x00],                         // call, cut off
        &[0xf0, 0x89, 0xc3],                         // lock mov %eax, %ebx
        &[0x66; 16],                                 // nothing but prefixes
    ];
    for bytes in rows {
        let moved = past(bytes, AT, SLOT);
        assert_eq!(moved, Err(CannotMove::NotCode), "{bytes:02x?}");
    }
}

#[test]
fn a_slot_too_far_away_is_refused() {
    #[rustfmt::skip]
    let rows: &[&[u8]] = &[
        &[0x48, 0x89, 0xc3],                         // mov %rax, %rbx: the way back
        &[0x48, 0x8b, 0x05, 0xf9, 0x0f, 0x00, 0x00], // mov 0x402000(%rip), %rax
        &[0x74, 0x10],                               // je 0x401012
        &[0xe2, 0x10],                               // loop 0x401012
        &[0xe8, 0xfb, 0x0f, 0x00, 0x00],             // call 0x402000
        &[0xff, 0x15, 0xfa, 0x0f, 0x00, 0x00],       // call *0x402000(%rip)
    ];
    for bytes in rows {
        for far in [
            AT.0 + (1 << 31) + 0x2000,
            0x7fff_0000_0000,
            0xffff_ffff_ffff_f000,
        ] {
            let moved = past(bytes, AT, LoadAddr(far));
            let near_zero = far > 1 << 63;
            match near_zero {
                // The address space is a ring, for a distance.
                true => assert!(
                    matches!(moved, Ok(Past::Slot(_))),
                    "{bytes:02x?} at {far:#x}"
                ),
                false => assert_eq!(
                    moved,
                    Err(CannotMove::OutOfReach),
                    "{bytes:02x?} at {far:#x}"
                ),
            }
        }
    }
    // call *%rax asks for nothing nearby.
    let call = past(&[0xff, 0xd0], AT, LoadAddr(0x7fff_0000_0000));
    assert!(matches!(call, Ok(Past::Slot(_))));
}

#[test]
fn the_farthest_slot_in_reach_is_taken() {
    let code = [0x48, 0x89, 0xc3]; // mov %rax, %rbx
    // The jump back ends at slot + 8 and leads to AT + 3.
    let farthest = AT.0 + 3 + (1 << 31) - 8;
    assert!(matches!(
        past(&code, AT, LoadAddr(farthest)),
        Ok(Past::Slot(_))
    ));
    let beyond = past(&code, AT, LoadAddr(farthest + 1));
    assert_eq!(beyond, Err(CannotMove::OutOfReach));
}

#[test]
fn the_target_of_an_indirect_jump_is_told() {
    let memory = |base, index, scale, displacement| Target::Memory {
        base,
        index,
        scale,
        displacement,
    };
    #[rustfmt::skip]
    let rows: &[(&[u8], Option<Target>)] = &[
        (&[0xff, 0xe0], Some(Target::Register(0))),                         // jmp *%rax
        (&[0x41, 0xff, 0xe7], Some(Target::Register(15))),                  // jmp *%r15
        (&[0x3e, 0xff, 0xe2], Some(Target::Register(2))),                   // notrack jmp *%rdx
        (&[0xff, 0x20], Some(memory(Some(0), None, 1, 0))),                 // jmp *(%rax)
        (&[0xff, 0x64, 0x24, 0x08], Some(memory(Some(4), None, 1, 8))),     // jmp *8(%rsp)
        (&[0xff, 0x24, 0xcd, 0, 0x20, 0x40, 0], Some(memory(None, Some(1), 8, 0x40_2000))), // jmp *0x402000(,%rcx,8)
        (&[0xff, 0x25, 0xfa, 0x0f, 0, 0], Some(memory(None, None, 1, 0x40_2000))), // jmp *0x402000(%rip)
        (&[0x64, 0xff, 0x20], None),                                        // jmp *%fs:(%rax)
        (&[0xff, 0x28], None),                                              // ljmp *(%rax)
        (&[0xff, 0xd0], None),                                              // call *%rax
        (&[0xeb, 0x10], None),                                              // jmp 0x401012
        (&[0xc3], None),                                                    // ret
        (&[], None),
    ];
    for (bytes, target) in rows {
        assert_eq!(indirect_jump(bytes, AT), *target, "{bytes:02x?}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64; // xorshift
    let mut bytes = [0_u8; 16];
    for _ in 0..400_000 {
        for chunk in bytes.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            chunk.copy_from_slice(&state.to_le_bytes());
        }
        let places = [0, 0x40_1000, 1 << 47, u64::MAX - 3];
        let (at, slot) = (state as usize % 4, (state >> 8) as usize % 4);
        let length = (state >> 16) as usize % 17;
        let (at, slot) = (LoadAddr(places[at]), LoadAddr(places[slot]));
        if let Ok(Past::Slot(moved)) = past(&bytes[..length], at, slot) {
            assert!(moved.code.len() <= LONGEST_SLOT, "{bytes:02x?}");
        }
        indirect_jump(&bytes[..length], at);
    }
}
