//! Instructions as `as` encodes them, with their events counted by hand.

use super::*;

/// Text for people, bytes, and the events but for the instruction itself. `<=` and `>=` are bounds, with
/// the reason behind.
#[rustfmt::skip]
const INSTRUCTIONS: [(&str, &str, &str); 81] = [
    ("push %rax", "50", "stores 1, bytes_written 8"),
    ("pushq (%rax)", "ff 30", "loads 1, stores 1, bytes_read 8, bytes_written 8"),
    ("pop %rax", "58", "loads 1, bytes_read 8"),
    ("call .+0x15", "e8 10 00 00 00", "calls 1, stores 1, bytes_written 8"),
    ("call *8(%rax)", "ff 50 08", "calls 1, indirect 1, loads 1, stores 1, bytes_read 8, bytes_written 8"),
    ("call *%rax", "ff d0", "calls 1, indirect 1, stores 1, bytes_written 8"),
    ("ret", "c3", "returns 1, loads 1, bytes_read 8"),
    ("jmp .", "eb fe", "jumps 1"),
    ("jmp *%rax", "ff e0", "jumps 1, indirect 1"),
    ("jmp *(%rax)", "ff 20", "jumps 1, indirect 1, loads 1, bytes_read 8"),
    ("jne .", "75 fe", "branches 1"),
    ("jrcxz .", "e3 fe", "branches 1"),
    ("loop .", "e2 fe", "branches 1"),
    ("leave", "c9", "loads 1, bytes_read 8"),
    ("lea 8(%rax),%rbx", "48 8d 58 08", ""),
    ("nopl (%rax)", "0f 1f 00", ""),
    ("prefetcht0 (%rax)", "0f 18 08", ""),
    ("clflush (%rax)", "0f ae 38", ""),
    ("mov (%rax),%ebx", "8b 18", "loads 1, bytes_read 4"),
    ("movzbl (%rax),%ebx", "0f b6 18", "loads 1, bytes_read 1"),
    ("mov %bx,(%rax)", "66 89 18", "stores 1, bytes_written 2"),
    ("add %ebx,(%rax)", "01 18", "loads 1, stores 1, bytes_read 4, bytes_written 4"),
    ("cmp %rbx,(%rax)", "48 39 18", "loads 1, bytes_read 8"),
    ("cmovne (%rax),%ebx", "0f 45 18", "loads 1, bytes_read 4"),
    ("sete (%rax)", "0f 94 00", "stores 1, bytes_written 1"),
    ("div %rbx", "48 f7 f3", "divisions 1"),
    ("idivl (%rbx)", "f7 3b", "loads 1, bytes_read 4, divisions 1"),
    ("xchg %rax,%rbx", "48 93", ""),
    ("xchg %rax,(%rbx)", "48 87 03", "loads 1, stores 1, bytes_read 8, bytes_written 8, atomics 1"),
    ("lock cmpxchg %rbx,(%rcx)", "f0 48 0f b1 19", "loads 1, stores 1, bytes_read 8, bytes_written 8, atomics 1"),
    ("cmpxchg %ebx,(%rcx)", "0f b1 19", "loads 1, stores 1, bytes_read 4, bytes_written 4"),
    ("lock incl (%rax)", "f0 ff 00", "loads 1, stores 1, bytes_read 4, bytes_written 4, atomics 1"),
    ("mfence", "0f ae f0", "fences 1"),
    ("syscall", "0f 05", "syscalls 1"),
    ("int $0x80", "cd 80", "syscalls 1"),
    ("int $3", "cc", ""),
    ("ud2", "0f 0b", ""),
    ("movsb", "a4", "loads 1, stores 1, bytes_read 1, bytes_written 1"),
    ("cmpsl", "a7", "loads 2, bytes_read 8"),
    ("rep movsb", "f3 a4", "loads >=0, stores >=0, bytes_read >=0, bytes_written >=0 (Repeats)"),
    ("rep stosq", "f3 48 ab", "stores >=0, bytes_written >=0 (Repeats)"),
    ("repne scasb", "f2 ae", "loads >=0, bytes_read >=0 (Repeats)"),
    ("rep ret", "f3 c3", "returns 1, loads 1, bytes_read 8"),
    ("faddl (%rax)", "dc 00", "loads 1, bytes_read 8, flops 1, flops_80 1"),
    ("fdivp", "de f1", "flops 1, flops_80 1, divisions 1"),
    ("fldt (%rax)", "db 28", "loads 1, bytes_read 10"),
    ("movss (%rax),%xmm0", "f3 0f 10 00", "loads 1, bytes_read 4"),
    ("movups (%rax),%xmm0", "0f 10 00", "loads 1, bytes_read 16, vector 1"),
    ("mulss (%rax),%xmm0", "f3 0f 59 00", "loads 1, bytes_read 4, flops 1, flops_32 1"),
    ("addsd %xmm1,%xmm0", "f2 0f 58 c1", "flops 1, flops_64 1"),
    ("divpd %xmm1,%xmm0", "66 0f 5e c1", "flops 2, flops_64 2, vector 1, divisions 1"),
    ("addps %xmm1,%xmm0", "0f 58 c1", "flops 4, flops_32 4, vector 1"),
    ("haddps %xmm1,%xmm0", "f2 0f 7c c1", "flops 4, flops_32 4, vector 1"),
    ("dpps $0xff,%xmm1,%xmm0", "66 0f 3a 40 c1 ff", "flops 8, flops_32 8, vector 1"),
    ("pmaxsd %xmm1,%xmm0", "66 0f 38 3d c1", "vector 1"),
    ("paddb %mm1,%mm0", "0f fc c1", "vector 1"),
    ("pxor %xmm0,%xmm0", "66 0f ef c0", "vector 1"),
    ("ucomisd %xmm1,%xmm0", "66 0f 2e c1", ""),
    ("cvtsi2sdl (%rax),%xmm0", "f2 0f 2a 00", "loads 1, bytes_read 4"),
    ("vaddpd (%rax),%ymm1,%ymm2", "c5 f5 58 10", "loads 1, bytes_read 32, flops 4, flops_64 4, vector 1"),
    ("vfmadd231ps (%rax),%ymm1,%ymm2", "c4 e2 75 b8 10", "loads 1, bytes_read 32, flops 16, flops_32 16, vector 1"),
    ("vfmadd213sd %xmm0,%xmm1,%xmm2", "c4 e2 f1 a9 d0", "flops 2, flops_64 2"),
    ("vbroadcastss (%rax),%ymm0", "c4 e2 7d 18 00", "loads 1, bytes_read 4, vector 1"),
    ("vmaskmovps (%rax),%ymm1,%ymm2", "c4 e2 75 2c 10", "loads <=1, bytes_read <=32, vector 1 (Masked)"),
    ("vmaskmovps %ymm2,%ymm1,(%rax)", "c4 e2 75 2e 10", "stores <=1, bytes_written <=32, vector 1 (Masked)"),
    ("maskmovdqu %xmm0,%xmm1", "66 0f f7 c8", "stores <=1, bytes_written <=16, vector 1 (Masked)"),
    ("vgatherdps %ymm0,(%rax,%ymm1,4),%ymm2", "c4 e2 7d 92 14 88", "loads <=8, bytes_read <=32, vector 1 (Masked)"),
    ("vgatherqps %xmm0,(%rax,%xmm1,4),%xmm2", "c4 e2 79 93 14 88", "loads <=2, bytes_read <=8, vector 1 (Masked)"),
    ("vgatherdpd %xmm0,(%rax,%xmm1,8),%xmm2", "c4 e2 f9 92 14 c8", "loads <=2, bytes_read <=16, vector 1 (Masked)"),
    ("vmovups (%rax),%zmm0", "62 f1 7c 48 10 00", "loads 1, bytes_read 64, vector 1"),
    ("vmovups (%rax),%zmm0{%k1}", "62 f1 7c 49 10 00", "loads <=1, bytes_read <=64, vector 1 (Masked)"),
    ("vmovups %zmm0,(%rax){%k1}", "62 f1 7c 49 11 00", "stores <=1, bytes_written <=64, vector 1 (Masked)"),
    ("vaddps (%rax){1to16},%zmm1,%zmm2", "62 f1 74 58 58 10", "loads 1, bytes_read 4, flops 16, flops_32 16, vector 1"),
    ("vaddps %zmm0,%zmm1,%zmm2{%k1}", "62 f1 74 49 58 d0", "flops <=16, flops_32 <=16, vector 1 (Masked)"),
    ("vfmadd231pd %zmm0,%zmm1,%zmm2{%k1}{z}", "62 f2 f5 c9 b8 d0", "flops <=16, flops_64 <=16, vector 1 (Masked)"),
    ("vscatterdps %zmm2,(%rax,%zmm1,4){%k1}", "62 f2 7d 49 a2 14 88", "stores <=16, bytes_written <=64, vector 1 (Masked)"),
    ("vaddph %zmm0,%zmm1,%zmm2", "62 f5 74 48 58 d0", "flops 32, flops_16 32, vector 1"),
    ("vdpbf16ps %zmm0,%zmm1,%zmm2", "62 f2 76 48 52 d0", "flops 64, flops_32 64, vector 1"),
    ("fxsave (%rax)", "0f ae 00", "stores 1, bytes_written 512"),
    ("xsavec (%rax)", "0f c7 20", "stores 1, bytes_written >=0 (Configured)"),
    ("tdpbf16ps %tmm0,%tmm1,%tmm2", "c4 e2 7a 5c d1", "flops >=0, flops_32 >=0 (Configured)"),
];

fn of_bytes(bytes: &str) -> Vec<InstructionEvents> {
    let byte = |it: &str| u8::from_str_radix(it, 16).unwrap();
    let span = Span {
        address: LinkAddr(0x1000),
        bytes: bytes.split(' ').map(byte).collect(),
    };
    events(&span).unwrap()
}

fn shown(it: &InstructionEvents) -> String {
    let one = |event: Event| {
        let Bounds { least, most } = it.events[event];
        let number = match most {
            Some(0) => return None,
            Some(most) if most == least => most.to_string(),
            Some(most) => format!("<={most}"),
            None => format!(">={least}"),
        };
        Some(format!("{} {number}", event.name()))
    };
    let all: Vec<String> = Event::ALL.into_iter().skip(1).filter_map(one).collect();
    let why = it.varies.map_or(String::new(), |why| format!(" ({why:?})"));
    all.join(", ") + &why
}

#[test]
fn events_are_those_counted_by_hand() {
    for (text, bytes, wanted) in INSTRUCTIONS {
        let all = of_bytes(bytes);
        let [it] = all.as_slice() else {
            panic!("{text} is {} instructions", all.len());
        };
        assert_eq!(shown(it), wanted, "{text}");
        assert_eq!(it.events[Event::Instructions], Bounds::exactly(1), "{text}");
    }
}

#[test]
fn a_conditional_jump_tells_where_it_leads_and_not_whether_it_jumps() {
    let all = of_bytes("39 f0 75 fc eb fa"); // cmp %esi,%eax; jne 0x1000; jmp 0x1000
    let targets: Vec<_> = all.iter().map(|it| it.target).collect();
    assert_eq!(targets, [None, Some(LinkAddr(0x1000)), None]);
    for event in [Event::Taken, Event::Backward] {
        assert!(all.iter().all(|it| it.events[event] == Bounds::NEVER));
    }
}

#[test]
fn bytes_that_are_no_instruction_have_no_events() {
    let span = Span {
        address: LinkAddr(0x1000),
        bytes: vec![0x90, 0x06],
    };
    let at = LinkAddr(0x1001);
    assert_eq!(events(&span), Err(NotCode { at }));
}
