//! Bytes in, instructions out.

use headcount_model::{LinkAddr, Span};
use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};

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

/// A call instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which instruction of the span it is.
    pub index: u32,
    /// Its first byte.
    pub address: LinkAddr,
    /// What it calls; `None` if only the run can tell.
    pub target: Option<LinkAddr>,
}

/// The calls of a span, as far as it is code.
pub fn calls(span: &Span) -> Vec<Call> {
    let code = (0..).zip(walk(span).map_while(Result::ok));
    let call = |(index, it): (u32, iced_x86::Instruction)| {
        let is_call = it.is_call_near() || it.is_call_near_indirect();
        is_call.then(|| Call {
            index,
            address: LinkAddr(it.ip()),
            target: it.is_call_near().then(|| LinkAddr(it.near_branch_target())),
        })
    };
    code.filter_map(call).collect()
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
