//! Which instruction of its program a thread of CPython executes.
//!
//! The state of a thread leads to the frame of the function that it executes, and that says which instruction is
//! being done. Where the state is, a function tells that others may call: it only loads one word. A thread that lets
//! others run while it computes is not told of there; but its state is in a list of all.

use headcount_model::LinkAddr;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Register};

use super::PREVIOUS_INSTRUCTION;
use super::version::Version;
use crate::program::Program;
use crate::runtime::{Current, OwnWord, Runtime, Threads};

/// The function that tells where a thread's state is, by its names.
const TELLS: [&str; 3] = [
    "_PyThreadState_UncheckedGet",
    "_PyThreadState_GetCurrent",
    "PyThreadState_GetUnchecked",
];

/// What is global.
const GLOBAL: &str = "_PyRuntime";

/// Where the state of a thread has the address of another one.
const NEXT_STATE: i64 = 8;

/// What can be measured; or why it cannot.
pub(super) fn runtime(program: &Program<'_>, version: &Version) -> Result<Runtime, String> {
    let tells = TELLS.iter().find_map(|it| program.symbol(it));
    let tells = tells.ok_or("no function tells the state of a thread")?;
    let layout = &version.facts.layout;
    let own = own_word(program, tells).ok_or("it is not known where the state of a thread is")?;
    let through = layout.to_frame.iter().chain([&PREVIOUS_INSTRUCTION]);
    let through: Vec<i64> = through.copied().collect();
    let threads = program.symbol(GLOBAL).map(|at| {
        let [first, rest] = for_debuggers(program, at).unwrap_or(layout.to_threads);
        Threads {
            at: LinkAddr(at.wrapping_add_signed(first)),
            to_first: vec![rest],
            next: NEXT_STATE,
            thread: layout.thread_id,
            through: through.clone(),
        }
    });
    let current = Current::Through {
        own,
        thread: layout.thread_id,
        by: through,
    };
    Ok(Runtime {
        current,
        threads,
        resumptions: Vec::new(),
        allocations: Vec::new(),
        collector: None,
    })
}

/// From what is global to the list of all states, as newer interpreters tell debuggers.
fn for_debuggers(program: &Program<'_>, global: u64) -> Option<[i64; 2]> {
    const BEGINS: &[u8] = b"xdebugpy";
    const FIRST_INTERPRETER: u64 = 0x28;
    const FIRST_THREAD: u64 = 0x48;
    let is_there = program.bytes(global)?.starts_with(BEGINS);
    let word = |at: u64| Some(program.word(global + at)?.cast_signed());
    is_there.then_some([word(FIRST_INTERPRETER)?, word(FIRST_THREAD)?])
}

/// The word that a function loads, and nothing else.
fn own_word(program: &Program<'_>, at: u64) -> Option<OwnWord> {
    const MOST: usize = 8;
    let bytes = program.bytes(at)?;
    let bytes = &bytes[..bytes.len().min(64)];
    let mut found = None;
    let mut block = None;
    for it in Decoder::with_ip(64, bytes, at, DecoderOptions::NONE)
        .into_iter()
        .take(MOST)
    {
        match it.flow_control() {
            FlowControl::Return => return found,
            // It tells where a block is of a module's variables of a thread.
            FlowControl::Call => found = None,
            FlowControl::Next => {}
            _ => return None,
        }
        if it.code() == Code::Lea_r64_m && it.op0_register() == Register::RDI {
            block = it
                .is_ip_rel_memory_operand()
                .then(|| it.ip_rel_memory_address());
        }
        if it.code() == Code::Mov_r64_rm64 && it.op0_register() == Register::RAX {
            found = loaded(program, &it, found, block);
        }
    }
    None
}

fn loaded(
    program: &Program<'_>,
    it: &Instruction,
    before: Option<OwnWord>,
    block: Option<u64>,
) -> Option<OwnWord> {
    let by = it.memory_displacement64();
    match (it.segment_prefix(), it.memory_base(), before) {
        (Register::FS, Register::None, _) => Some(OwnWord::Fixed(by.cast_signed())),
        // What was loaded before was a distance, ...
        (Register::FS, Register::RAX, Some(OwnWord::OfHolder(at))) if by == 0 => {
            Some(OwnWord::Initial(at))
        }
        (Register::None, Register::RIP, _) => Some(OwnWord::OfHolder(LinkAddr(by))),
        // ... or an address.
        (Register::None, Register::RAX, Some(OwnWord::OfHolder(at))) => {
            let base = program.word(at.0)?;
            Some(OwnWord::OfHolder(LinkAddr(base.wrapping_add(by))))
        }
        (Register::None, Register::RAX, None) => {
            // The number of the module, and how far the word is in its block.
            let module = block?;
            let offset = program.word(module + 8)?.wrapping_add(by);
            Some(OwnWord::Dynamic(LinkAddr(module), offset.cast_signed()))
        }
        _ => None,
    }
}
