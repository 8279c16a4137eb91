//! What Icon's runtime does for programs: operations that go on, strings and blocks, the collector.
//!
//! Each allocation adds to one of two totals. An operation that has had a result is kept in a frame of the stack
//! until it goes on or is given up; going on, the interpreter takes from there where it was.

use std::collections::BTreeSet;

use headcount_model::{LinkAddr, StorageRegion};
use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};

use crate::native::code::{CodeOf, is_write};
use crate::program::Program;
use crate::runtime::{Allocation, Collector, Current, Resumption, Runtime};

/// Where a frame of an operation has what sort it is, and where the program was; and the sort of those that only
/// say where to look for others.
const FRAME_SORT: i64 = 0;
const FRAME_CURRENT: i64 = 0x18;
const NO_OPERATION: i64 = 2;

/// Where the description of a part of a region has its first address, the first free one, and where the
/// descriptions before and behind it are.
const PARTS: [u64; 4] = [0x08, 0x18, 0x20, 0x28];
const NEXT_PART: u64 = PARTS[3];

const TOTALS: [(&str, StorageRegion); 2] = [
    ("strtotal", StorageRegion::String),
    ("blktotal", StorageRegion::Block),
];
const REGIONS: [(&str, StorageRegion); 2] = [
    ("curstring", StorageRegion::String),
    ("curblock", StorageRegion::Block),
];

/// What can be measured; or why it cannot.
pub(super) fn runtime(program: &Program<'_>, main: u64) -> Result<Runtime, String> {
    let named = |name: &str| {
        let found = program.own_symbol(name);
        found.ok_or_else(|| format!("it has no symbol `{name}`"))
    };
    let current = named("ipc")?;
    let mut totals = Vec::new();
    for (name, region) in TOTALS {
        totals.push((named(name)?, region));
    }
    let code = all_code(program);
    let is_of_main = |at: u64| program.function_start(at) == Some(main);
    Ok(Runtime {
        current: Current::Behind(LinkAddr(current)),
        threads: None,
        resumptions: resumptions(&code, &is_of_main, current)?,
        allocations: allocations(&code, &totals)?,
        collector: Some(collector(program, &named)?),
    })
}

/// All instructions of the file, one behind the other.
fn all_code(program: &Program<'_>) -> Vec<Instruction> {
    let mut all = Vec::new();
    for (at, bytes) in program.code() {
        all.extend(Decoder::with_ip(64, bytes, at, DecoderOptions::NONE));
    }
    all
}

/// Where one of the totals is added to.
fn allocations(
    code: &[Instruction],
    totals: &[(u64, StorageRegion)],
) -> Result<Vec<Allocation>, String> {
    let mut info = InstructionInfoFactory::new();
    let mut found = Vec::new();
    for it in code {
        let Some(region) = written(it, totals, &mut info) else {
            continue;
        };
        found.push(Allocation {
            at: LinkAddr(it.ip()),
            region,
            bytes: added(it).ok_or_else(|| {
                format!(
                    "it changes its allocation totals in an unknown way, at {:#x}",
                    it.ip()
                )
            })?,
        });
    }
    match TOTALS
        .iter()
        .all(|(_, it)| found.iter().any(|one| one.region == *it))
    {
        true => Ok(found),
        false => Err("no code was found that adds to `strtotal` and `blktotal`".to_owned()),
    }
}

/// Which total an instruction writes to.
fn written(
    it: &Instruction,
    totals: &[(u64, StorageRegion)],
    info: &mut InstructionInfoFactory,
) -> Option<StorageRegion> {
    if !it.is_ip_rel_memory_operand() {
        return None;
    }
    let to = it.ip_rel_memory_address();
    let (_, region) = totals.iter().find(|(at, _)| *at == to)?;
    let mut used = info.info(it).used_memory().iter();
    used.any(|it| is_write(it.access())).then_some(*region)
}

/// What an instruction adds to a word: so many times what is in a register, or 1.
fn added(it: &Instruction) -> Option<(i64, Option<u8>)> {
    let sign = match it.mnemonic() {
        Mnemonic::Add => 1,
        Mnemonic::Sub => -1,
        _ => return None,
    };
    match it.op1_kind() {
        OpKind::Register if it.op1_register().is_gpr64() => {
            Some((sign, Some(it.op1_register().number() as u8)))
        }
        OpKind::Register => None,
        _ => {
            let bytes = it.try_immediate(1).ok()?.cast_signed();
            Some((sign * bytes, None))
        }
    }
}

/// Where the main function takes from a frame where the program was.
fn resumptions(
    code: &[Instruction],
    is_of_main: &dyn Fn(u64) -> bool,
    current: u64,
) -> Result<Vec<Resumption>, String> {
    let pairs = code.windows(2).filter_map(|pair| {
        let [takes, puts] = pair else { return None };
        let is_taken = takes.code() == Code::Mov_r64_rm64
            && takes.op1_kind() == OpKind::Memory
            && takes.memory_base().is_gpr64()
            && takes.memory_index() == Register::None
            && takes.memory_displacement64().cast_signed() == FRAME_CURRENT;
        let is_put = puts.code() == Code::Mov_rm64_r64
            && puts.is_ip_rel_memory_operand()
            && puts.ip_rel_memory_address() == current
            && puts.op1_register() == takes.op0_register();
        (is_taken && is_put && is_of_main(takes.ip())).then(|| Resumption {
            at: LinkAddr(takes.ip()),
            frame: takes.memory_base().number() as u8,
            current: FRAME_CURRENT,
            sort: FRAME_SORT,
            no_operation: NO_OPERATION,
        })
    });
    let found: Vec<Resumption> = pairs.collect();
    match found.is_empty() {
        true => Err("no code was found that resumes a generator".to_owned()),
        false => Ok(found),
    }
}

/// The collector, and who makes regions larger.
fn collector(
    program: &Program<'_>,
    named: &dyn Fn(&str) -> Result<u64, String>,
) -> Result<Collector, String> {
    let (begin, reserve) = (named("collect")?, named("reserve")?);
    let ends = returns(program, begin)?;
    let mut code = CodeOf::new(program);
    code.leaders(&BTreeSet::from([reserve]))?;
    let mut places: Vec<u64> = code.steps.keys().copied().collect();
    places.sort_unstable();
    let links = places.into_iter().filter_map(|it| code.decode(it));
    let links = links.filter(is_linked);
    let has_grown: Vec<(LinkAddr, u8)> = links
        .map(|it| (LinkAddr(it.ip()), it.memory_base().number() as u8))
        .collect();
    if ends.is_empty() || has_grown.is_empty() {
        return Err("no code was found where a collection ends or a region is expanded".to_owned());
    }
    let mut regions = Vec::new();
    for (name, region) in REGIONS {
        regions.push((region, LinkAddr(named(name)?)));
    }
    Ok(Collector {
        begin: LinkAddr(begin),
        ends,
        has_grown,
        regions,
        parts: PARTS,
    })
}

/// Is the description of a part of a region told of the one behind it?
fn is_linked(it: &Instruction) -> bool {
    it.code() == Code::Mov_rm64_r64
        && it.op0_kind() == OpKind::Memory
        && it.memory_base().is_gpr64()
        && it.memory_base() != Register::RSP
        && it.memory_index() == Register::None
        && it.memory_displacement64() == NEXT_PART
}

fn returns(program: &Program<'_>, begin: u64) -> Result<Vec<LinkAddr>, String> {
    let mut code = CodeOf::new(program);
    code.leaders(&BTreeSet::from([begin]))?;
    let steps = code.steps.iter();
    let returns = steps.filter(|(_, step)| step.as_ref().is_some_and(|it| it.returns));
    let mut found: Vec<LinkAddr> = returns.map(|(at, _)| LinkAddr(*at)).collect();
    found.sort_unstable();
    Ok(found)
}
