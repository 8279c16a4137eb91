//! Bytes in, instructions out.

use headcount_model::{LinkAddr, Span, Target, Transfer, TransferKind, Transfers};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register,
};

/// One instruction, for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its first byte.
    pub address: LinkAddr,
    /// How many bytes it has.
    pub length: usize,
    /// In AT&T syntax, as `objdump` would put it.
    pub text: String,
}

/// Bytes that are no whole number of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes at {at} are no x86-64 instruction")]
pub struct NotCode {
    /// Where decoding stopped.
    pub at: LinkAddr,
}

/// Every instruction of a span, with its text.
pub fn decode(span: &Span) -> Result<Vec<Instruction>, NotCode> {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_space_after_operand_separator(true);
    let mut all = Vec::new();
    for instruction in walk(span) {
        let instruction = instruction?;
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        all.push(Instruction {
            address: LinkAddr(instruction.ip()),
            length: instruction.len(),
            text,
        });
    }
    Ok(all)
}

/// The calls and jumps of a span, as far as it is code.
pub fn transfers(span: &Span) -> Transfers {
    let mut transfers = Transfers::default();
    let mut registers = Registers {
        known: Vec::new(),
        facts: InstructionInfoFactory::new(),
    };
    for it in walk(span).map_while(Result::ok) {
        transfers
            .all
            .extend(transfer(transfers.instructions, &it, &registers));
        registers.follow(&it);
        transfers.instructions += 1;
    }
    transfers
}

/// What is in registers, where the instructions before say so: compilers that do not optimise load the
/// address of a function first, and then call what is in the register.
struct Registers {
    known: Vec<(Register, Target)>,
    facts: InstructionInfoFactory,
}

impl Registers {
    fn get(&self, register: Register) -> Target {
        let mut known = self.known.iter();
        known
            .find(|it| it.0 == register)
            .map_or(Target::Unknown, |it| it.1)
    }

    /// An instruction was executed.
    fn follow(&mut self, it: &iced_x86::Instruction) {
        if it.flow_control() != FlowControl::Next {
            self.known.clear();
        }
        if !self.known.is_empty() {
            let used = self.facts.info(it).used_registers();
            let is_written = |register: Register| {
                used.iter().any(|it| {
                    it.register().full_register() == register
                        && !matches!(it.access(), OpAccess::Read | OpAccess::CondRead)
                })
            };
            self.known.retain(|it| !is_written(it.0));
        }
        self.known.extend(loaded(it));
    }
}

/// The register that an instruction loads, and what is in there then, if that is always the same.
fn loaded(it: &iced_x86::Instruction) -> Option<(Register, Target)> {
    let register = it.op0_register();
    let is_whole = it.op0_kind() == OpKind::Register && register.is_gpr64();
    let place = fixed_place(it).filter(|_| is_whole && it.op1_kind() == OpKind::Memory)?;
    match it.mnemonic() {
        Mnemonic::Mov => Some((register, Target::Pointer(place))),
        Mnemonic::Lea => Some((register, Target::Code(place))),
        _ => None,
    }
}

fn transfer(index: u32, it: &iced_x86::Instruction, registers: &Registers) -> Option<Transfer> {
    let kind = match it.flow_control() {
        // System calls have such a flow, too, but nothing leads elsewhere.
        FlowControl::Call | FlowControl::IndirectCall => {
            let is_call = it.is_call_near() || it.is_call_near_indirect();
            is_call.then_some(TransferKind::Call)?
        }
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => TransferKind::Jump,
        FlowControl::ConditionalBranch => TransferKind::Branch,
        FlowControl::Return => TransferKind::Return,
        _ => return None,
    };
    Some(Transfer {
        index,
        address: LinkAddr(it.ip()),
        next: LinkAddr(it.next_ip()),
        kind,
        to: match it.near_branch_target() {
            0 if it.op0_kind() == OpKind::Register => registers.get(it.op0_register()),
            0 => pointer(it).map_or(Target::Unknown, Target::Pointer),
            target => Target::Code(LinkAddr(target)),
        },
    })
}

/// The place of the pointer that says where an indirect transfer leads, if that is always the same.
fn pointer(it: &iced_x86::Instruction) -> Option<LinkAddr> {
    fixed_place(it).filter(|_| it.op0_kind() == OpKind::Memory)
}

/// The place in memory that an instruction names, if that is always the same.
fn fixed_place(it: &iced_x86::Instruction) -> Option<LinkAddr> {
    let is_fixed = it.memory_index() == Register::None
        && matches!(it.memory_base(), Register::None | Register::RIP)
        && it.segment_prefix() == Register::None;
    is_fixed.then(|| LinkAddr(it.memory_displacement64()))
}

/// The calls and the jumps in the code of a block that say where they go: the number of the
/// instruction, and the target.
pub fn targets(code: &[Span]) -> Vec<(u32, LinkAddr)> {
    let all = code.iter().flat_map(|it| walk(it).map_while(Result::ok));
    let target = |(index, it): (u32, iced_x86::Instruction)| {
        let is_meant = it.is_call_near() || it.is_jmp_short_or_near();
        is_meant.then(|| (index, LinkAddr(it.near_branch_target())))
    };
    (0..).zip(all).filter_map(target).collect()
}

/// Whether a span handles several values at once: a loop that does so makes several rounds in one.
pub fn is_packed(span: &Span) -> bool {
    let is_packed = |it: iced_x86::Instruction| {
        let operands = (0..it.op_count()).map(|number| it.op_register(number));
        let has_vector = operands.into_iter().any(|it| it.is_vector_register());
        has_vector && !is_scalar(it.mnemonic())
    };
    walk(span).map_while(Result::ok).any(is_packed)
}

/// Whether an instruction uses one value of its vector registers. Their names tell: those for single
/// values end in `SS` or `SD`, or convert to or from integers.
fn is_scalar(mnemonic: iced_x86::Mnemonic) -> bool {
    let name = format!("{mnemonic:?}");
    let name = name.strip_prefix('V').unwrap_or(&name);
    let lower = name.to_ascii_lowercase();
    let is_move = matches!(lower.as_str(), "movd" | "movq" | "pxor" | "xorps" | "xorpd");
    lower.ends_with("ss")
        || lower.ends_with("sd")
        || lower.contains("2si")
        || lower.contains("si2")
        || is_move
}

/// The lengths of the instructions of a span, without the cost of their texts.
pub fn count(span: &Span) -> Result<Vec<u8>, NotCode> {
    walk(span)
        .map(|instruction| instruction.map(|it| it.len() as u8))
        .collect()
}

/// The length of the instruction at an address in a span.
pub fn length_at(span: &Span, at: LinkAddr) -> Option<u8> {
    let offset = usize::try_from(at.0.checked_sub(span.address.0)?).ok()?;
    let bytes = span.bytes.get(offset..)?;
    let instruction = Decoder::with_ip(64, bytes, at.0, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then(|| instruction.len() as u8)
}

/// The instructions of a span, up to the first bytes that are none.
pub fn walk(span: &Span) -> impl Iterator<Item = Result<iced_x86::Instruction, NotCode>> {
    let mut decoder = Decoder::with_ip(64, &span.bytes, span.address.0, DecoderOptions::NONE);
    std::iter::from_fn(move || {
        if !decoder.can_decode() {
            return None;
        }
        let instruction = decoder.decode();
        Some(if instruction.is_invalid() {
            Err(NotCode {
                at: LinkAddr(instruction.ip()),
            })
        } else {
            Ok(instruction)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Vec<(TransferKind, Target)> {
        let span = Span {
            address: LinkAddr(0x1000),
            bytes: bytes.to_vec(),
        };
        let all = transfers(&span).all.into_iter();
        all.map(|it| (it.kind, it.to)).collect()
    }

    #[test]
    fn calls_and_jumps_say_where_they_lead() {
        use Target::{Code, Pointer, Unknown};
        use TransferKind::{Branch, Call, Jump, Return};
        let at = LinkAddr;
        for (bytes, wanted) in [
            (&[0xe8, 0x0b, 0, 0, 0][..], (Call, Code(at(0x1010)))), // call 0x1010
            (&[0xeb, 0x0e], (Jump, Code(at(0x1010)))),              // jmp 0x1010
            (&[0x74, 0x0e], (Branch, Code(at(0x1010)))),            // je 0x1010
            (&[0xe3, 0x0e], (Branch, Code(at(0x1010)))),            // jrcxz 0x1010
            (&[0xff, 0x15, 0x0a, 0, 0, 0], (Call, Pointer(at(0x1010)))), // call *0xa(%rip)
            (&[0xff, 0x25, 0x0a, 0, 0, 0], (Jump, Pointer(at(0x1010)))), // jmp *0xa(%rip)
            (&[0xff, 0xd0], (Call, Unknown)),                       // call *%rax
            (&[0xff, 0x50, 0x08], (Call, Unknown)),                 // call *8(%rax)
            (&[0xff, 0x24, 0xc5, 0, 0x10, 0, 0], (Jump, Unknown)),  // jmp *0x1000(,%rax,8)
            (&[0x64, 0xff, 0x14, 0x25, 8, 0, 0, 0], (Call, Unknown)), // call *%fs:8
            (&[0xc3], (Return, Unknown)),                           // ret
        ] {
            assert_eq!(of(bytes), [wanted], "{bytes:x?}");
        }
        assert_eq!(of(&[0x0f, 0x05, 0x90, 0x0f, 0x0b]), []); // syscall; nop; ud2
    }

    #[test]
    fn a_call_of_a_register_leads_where_the_register_was_loaded_from() {
        use Target::{Code, Pointer, Unknown};
        let load = [0x48, 0x8b, 0x05, 0x09, 0, 0, 0]; // mov 0x9(%rip), %rax
        let address = [0x48, 0x8d, 0x05, 0x09, 0, 0, 0]; // lea 0x9(%rip), %rax
        let call: &[u8] = &[0xff, 0xd0]; // call *%rax
        let at = LinkAddr(0x1010);
        let called = |before: &[&[u8]]| {
            let bytes = [before.concat().as_slice(), call].concat();
            of(&bytes).last().map(|it| it.1)
        };
        assert_eq!(called(&[&load]), Some(Pointer(at)));
        assert_eq!(called(&[&address]), Some(Code(at)));
        let mov = [0x48, 0x89, 0xfb]; // mov %rdi, %rbx
        assert_eq!(called(&[&load, &mov]), Some(Pointer(at)));
        for between in [
            &[0x89, 0xc8][..],         // mov %ecx, %eax
            &[0x0f, 0xa2],             // cpuid
            &[0xff, 0xd3],             // call *%rbx
            &[0x48, 0x8b, 0x40, 0x08], // mov 8(%rax), %rax
            &[0x48, 0x0f, 0x44, 0xc1], // cmove %rcx, %rax
        ] {
            assert_eq!(called(&[&load, between]), Some(Unknown), "{between:x?}");
        }
    }
}
