//! An outline finds, part by part, what the reader of whole files finds.

mod workshop;

use object::{Object, ObjectSection};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use headcount_binary::{Binary, Found, Outline, is_sigreturn, read};
use headcount_model::{Block, EdgeKind, Entrance, Function, LinkAddr, Routine};
use workshop::Workshop;

fn outline(bytes: Vec<u8>) -> Outline {
    Outline::read(Arc::new(bytes), &mut |_| None).unwrap()
}

/// All routines of a module by their starts, found as a run finds them: what one leads to is an
/// arrival of another, and what it calls is a part.
#[derive(Default)]
struct Lazy {
    routines: BTreeMap<u64, Routine>,
    refused: BTreeMap<u64, String>,
}

impl Lazy {
    fn of(outline: &mut Outline) -> Self {
        let mut known = outline.starts().to_vec();
        let mut arrivals: BTreeSet<u64> = BTreeSet::new();
        let mut found = Self::default();
        // Twice: what is found late may lead to what was found early.
        for _ in 0..2 {
            let mut queue = known.clone();
            while let Some(start) = queue.pop() {
                let range = outline.part_at(LinkAddr(start)).unwrap();
                let inside = arrivals.range(range).map(|at| LinkAddr(*at));
                // Let us believe what is only a guess.
                let inside: Vec<_> = [LinkAddr(start)].into_iter().chain(inside).collect();
                let answer = outline.routine(LinkAddr(start), &inside);
                let routine = answer.and_then(|answer| {
                    arrivals.extend(answer.leads_to.iter().map(|at| at.0));
                    for at in answer.unknown_code {
                        if outline.add_called(at) {
                            queue.push(at.0);
                            known.push(at.0);
                        }
                    }
                    answer.routine
                });
                match routine {
                    Ok(routine) => {
                        found.routines.insert(start, routine);
                    }
                    Err(reason) => {
                        found.refused.insert(start, reason);
                    }
                }
            }
        }
        found
    }

    fn routine_at(&self, at: u64) -> Option<&Routine> {
        let (_, routine) = self.routines.range(..=at).next_back()?;
        let end = routine.start.0 + routine.bytes.len() as u64;
        (at < end).then_some(routine)
    }

    /// How control enters the block that begins here; nothing if none does.
    fn entrance(&self, at: u64) -> Option<Entrance> {
        entrance(self.routine_at(at)?, at)
    }
}

fn entrance(routine: &Routine, at: u64) -> Option<Entrance> {
    let offset = (at - routine.start.0) as u32;
    let index = routine.blocks.binary_search_by_key(&offset, |it| it.offset);
    index.ok().map(|index| routine.blocks[index].entrance)
}

fn instructions(routine: &Routine) -> Vec<u64> {
    let mut found = Vec::new();
    for block in &routine.blocks {
        let mut at = routine.start.0 + u64::from(block.offset);
        for length in &block.lengths {
            found.push(at);
            at += u64::from(*length);
        }
    }
    found
}

fn instructions_of(block: &Block) -> Vec<u64> {
    let mut at = block.address.0;
    let lengths = headcount_x86::count(&block.code[0]).unwrap();
    let next = |length: u8| {
        let here = at;
        at += u64::from(length);
        here
    };
    lengths.into_iter().map(next).collect()
}

/// Blocks follow each other; only one that a jump over a prefix leads to lies in another.
fn is_well_formed(routine: &Routine, name: &str) {
    let start = routine.start;
    let first = &routine.blocks[0];
    assert_eq!(
        (first.offset, first.entrance),
        (0, Entrance::Entry),
        "{name} {start}"
    );
    let mut end = 0;
    for block in &routine.blocks {
        let inside = block.offset < end && block.end() == end && block.lengths.len() == 1;
        assert!(inside || block.offset >= end, "{name} {start}: {block:?}");
        assert!(!block.lengths.is_empty());
        end = block.end();
    }
    assert!(end as usize <= routine.bytes.len(), "{name} {start}");
    assert!(routine.blocks.is_sorted_by_key(|block| block.offset));
    let entries = routine.blocks.iter();
    let entries = entries.filter(|block| block.entrance == Entrance::Entry);
    assert_eq!(entries.count(), 1, "{name} {start}");
}

fn agrees(name: &str, bytes: &[u8]) {
    let eager = read(name, bytes, &mut |_| None).unwrap();
    let mut outline = outline(bytes.to_vec());
    assert_eq!(outline.layout(), &eager.layout);
    let before: BTreeSet<u64> = outline.starts().iter().copied().collect();
    let lazy = Lazy::of(&mut outline);
    let starts: BTreeSet<u64> = outline.starts().iter().copied().collect();
    assert!(before.is_subset(&starts));
    assert!(outline.starts().is_sorted());
    for routine in lazy.routines.values() {
        is_well_formed(routine, name);
    }
    for function in &eager.module.functions {
        // What remains in a gap begins where the gap does; here it begins where something leads.
        let rest = function.name.starts_with("code_0x");
        let at = function.address;
        assert!(
            rest || starts.contains(&at.0),
            "{name}: {} at {at}",
            function.name
        );
    }
    same_entrances(name, &eager, &lazy);
    same_instructions(name, &eager, &outline, &lazy);
}

fn same_entrances(name: &str, eager: &Binary, lazy: &Lazy) {
    let mut checked = 0;
    for function in &eager.module.functions {
        let kinds = |kind: EdgeKind| function.edges.iter().filter(move |edge| edge.kind == kind);
        let calls: BTreeSet<_> = kinds(EdgeKind::Lost).map(|edge| edge.from).collect();
        for edge in &function.edges {
            let Some(to) = edge.to else { continue };
            let at = function.blocks[to as usize].address;
            if lazy.routine_at(at.0).is_none() {
                continue;
            }
            let entrance = lazy.entrance(at.0);
            // Nothing leads to where this edge begins, either.
            let is_dead = edge.from.is_some_and(|from| {
                let from = function.blocks[from as usize].address;
                lazy.routine_at(from.0).is_some() && lazy.entrance(from.0).is_none()
            });
            if is_dead {
                continue;
            }
            let what = || {
                format!(
                    "{name}: {} {at} {:?} {entrance:?}",
                    function.name, edge.kind
                )
            };
            assert!(entrance.is_some(), "{}", what());
            let returned = edge.kind == EdgeKind::Fall && calls.contains(&edge.from);
            if returned || matches!(edge.kind, EdgeKind::Entry | EdgeKind::Arrival) {
                assert_ne!(entrance, Some(Entrance::None), "{}", what());
            }
            // From another part of the same function.
            let from = function.blocks[edge.from.unwrap_or(to) as usize].address;
            let apart = lazy.routine_at(from.0).map(|it| it.start)
                != lazy.routine_at(at.0).map(|it| it.start);
            if apart && edge.kind != EdgeKind::Fall && lazy.routine_at(from.0).is_some() {
                assert_ne!(entrance, Some(Entrance::None), "{} from {from}", what());
            }
            checked += 1;
        }
    }
    assert!(checked > 30, "{name}: {checked}");
}

/// The instructions of a function that no edge leads to, from its entries on.
fn dead(function: &Function) -> Vec<u64> {
    let mut leads: BTreeMap<Option<u32>, Vec<u32>> = BTreeMap::new();
    for edge in &function.edges {
        leads.entry(edge.from).or_default().extend(edge.to);
    }
    let mut alive: BTreeSet<u32> = BTreeSet::new();
    let mut next = vec![None];
    while let Some(from) = next.pop() {
        let targets = leads.get(&from).into_iter().flatten();
        next.extend(targets.filter(|to| alive.insert(**to)).map(|to| Some(*to)));
    }
    let blocks = function.blocks.iter().zip(0..);
    let dead = blocks.filter(|(_, number)| !alive.contains(number));
    dead.flat_map(|(block, _)| instructions_of(block)).collect()
}

/// Both find the same instructions, but for four reasons.
fn same_instructions(name: &str, eager: &Binary, outline: &Outline, lazy: &Lazy) {
    let blocks = eager.module.functions.iter().flat_map(|it| &it.blocks);
    let mut seen: BTreeMap<u64, u8> = BTreeMap::new();
    for block in blocks {
        let lengths = headcount_x86::count(&block.code[0]).unwrap();
        seen.extend(instructions_of(block).into_iter().zip(lengths));
    }
    let found: BTreeSet<u64> = lazy.routines.values().flat_map(instructions).collect();
    let dead: BTreeSet<u64> = eager.module.functions.iter().flat_map(dead).collect();
    for (at, length) in seen.iter().filter(|(at, _)| !found.contains(at)) {
        let part = outline.part_at(LinkAddr(*at));
        // Counters that are found by the gs register cannot count its users, and moving the way
        // out of signal handlers would hide it from unwinders. Breakpoints can do both.
        let refused = part.and_then(|part| lazy.refused.get(&part.start));
        let refused = refused.is_some_and(|reason| {
            reason.contains("gs register") || reason.contains("signal handlers")
        });
        // The reader takes a gap in what is known, or what follows a called place, as one
        // function; here all that is led to in there is one part each, and the filler between
        // them is nobody's.
        let filler =
            outline.part_at(LinkAddr(*at)).is_none() && is_nop(&bytes_at(eager, *at, *length));
        // Nothing leads there: people who write assembly leave such code behind.
        let is_dead = dead.contains(at);
        assert!(
            refused || filler || is_dead,
            "{name}: {at:#x} is in no routine"
        );
    }
    // What remains, and nothing jumps there: the reader cannot tell whether it is code, but here
    // somebody falls into it. It also leaves out the filler that somebody falls through.
    let refusals = eager.module.refusals.iter();
    let unsure = refusals.filter(|it| it.reason.contains("whether it is code"));
    let unsure: usize = unsure.map(|it| bytes_in(&it.reason)).sum();
    let more = found.iter().filter(|at| !seen.contains_key(at));
    let more: Vec<_> = more
        .filter(|at| !is_filler(lazy.routine_at(**at).unwrap()))
        .map(|at| format!("{at:#x}"))
        .collect();
    assert!(more.len() <= unsure, "{name}: {more:?}, {unsure} bytes");
}

/// Whether a routine does nothing at all.
fn is_filler(routine: &Routine) -> bool {
    let start = routine.start.0;
    let code = |at: u64| &routine.bytes[(at - start) as usize..];
    instructions(routine).into_iter().all(|at| is_nop(code(at)))
}

/// The N of `... (N bytes)`.
fn bytes_in(reason: &str) -> usize {
    let (_, bytes) = reason.rsplit_once('(').unwrap();
    bytes.strip_suffix(" bytes)").unwrap().parse().unwrap()
}

fn bytes_at(eager: &Binary, at: u64, length: u8) -> Vec<u8> {
    let mut blocks = eager.module.functions.iter().flat_map(|it| &it.blocks);
    let code = blocks.find_map(|block| {
        let offset = at.checked_sub(block.address.0)? as usize;
        block.code[0]
            .bytes
            .get(offset..offset + usize::from(length))
    });
    code.unwrap().to_vec()
}

fn is_nop(bytes: &[u8]) -> bool {
    let bare = bytes.iter().position(|byte| !matches!(byte, 0x66 | 0x2e));
    matches!(bytes[bare.unwrap_or(0)..], [0x0f, 0x1f, ..] | [0x90])
}

#[test]
fn programs_of_this_system_agree() {
    let paths = [
        "/bin/true",
        "/lib64/ld-linux-x86-64.so.2",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib/x86_64-linux-gnu/libm.so.6",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/bin/python3",
        "/usr/bin/perl",
    ];
    for path in paths.iter().filter(|path| Path::new(path).exists()) {
        agrees(path, &std::fs::read(path).unwrap());
    }
}

const SWITCH: &str = include_str!("programs/switch.c");

const GOTO: &str = include_str!("programs/goto.c");

const THROW: &str = r#"
#include <cstdio>
#include <string>
struct Guard { std::string name; ~Guard() { std::puts(name.c_str()); } };
__attribute__((noinline)) int risky(int n) {
    Guard guard{"risky"};
    if (n > 3) throw n;
    return n + 1;
}
int main(int argc, char **) {
    try { return risky(argc) + risky(argc * 2); } catch (int n) { return n; }
}
"#;

#[test]
fn small_programs_agree_however_they_are_built() {
    let workshop = Workshop::new();
    workshop.write("switch.c", SWITCH);
    workshop.write("goto.c", GOTO);
    workshop.write("throw.cc", THROW);
    for source in ["switch.c", "goto.c", "throw.cc"] {
        for options in [
            "-O0",
            "-O2",
            "-O2 -no-pie -fno-pie",
            "-O2 -static",
            "-O1 -s",
            "-O2 -fcf-protection -Wl,-z,now",
        ] {
            let compiler = if source.ends_with(".cc") {
                "g++"
            } else {
                "gcc"
            };
            workshop.run(&format!("{compiler} {options} -o program {source}"));
            agrees(&format!("{source} {options}"), &workshop.bytes("program"));
        }
    }
}

/// Assembly whose functions each show one thing. Nothing but `calls_hidden` and `falls`
/// tells of `hidden` and `fallen`, whose names are taken away; and as data is near them, they are
/// not taken for functions.
const PIECES: &str = r#"
    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm
    .macro end name
    .size \name, . - \name
    .endm
    .text
function main
    xor %eax, %eax
    ret
end main
    .p2align 6
function skips_a_lock
    cmpl $0, word(%rip)
    je unlocked
    .byte 0xf0
unlocked: cmpxchg %ecx, (%rdi)
after_lock: ret
end skips_a_lock
function hot
    test %edi, %edi
    js hot_cold
    cmp $7, %edi
    je middle_of_cold
back: mov $1, %eax
    ret
end hot
function reads_gs
    mov %gs:0x28, %rax
    ret
end reads_gs
function reads_gs_base
    rdgsbase %rax
    ret
end reads_gs_base
function copies_from_gs
    rep movsb %gs:(%rsi), %es:(%rdi)
    ret
end copies_from_gs
function reads_fs
    mov %fs:0x28, %rax
    ret
end reads_fs
function transaction
    xbegin aborted
    xend
aborted: ret
end transaction
function torn
    test %edi, %edi
    je 1f + 3
1:  movabs $0x0102030405060708, %rax
    ret
end torn
function broken
    nop
    .byte 0x06, 0x06
end broken
function with_data
    lea returns(%rip), %rax
    push %rax
    jmp *slot(%rip)
    .quad 0x41
    .long 0x1e, 0x01ba95c8
returns: add $8, %r12
    ret
end with_data
function sigreturn
    mov $15, %rax
    syscall
end sigreturn
function calls_hidden
    call hidden
behind_call: ret
end calls_hidden
function jumps_anywhere
    jmp *%rax
end jumps_anywhere
function leaves
    pop %rbx
    jmp *%rax
end leaves
function leaves_through_slot
    jmp *slot(%rip)
end leaves_through_slot
function speaks
    lea spoken(%rip), %rax
    lea back(%rip), %rcx
    nop
spoken: nop
pointed: nop
plain: nop
    call inner
    ret
inner: nop
    ret
end speaks
function ends_with_filler
    jmp *slot(%rip)
    nop
end ends_with_filler
    nopl 0(%rax,%rax)
    .quad 2, 0x12
function masks
    and $3, %esi
    lea masked(%rip), %rdi
    movslq (%rdi,%rsi,4), %rsi
    add %rdi, %rsi
    jmp *%rsi
    ud2
first_case: xor %eax, %eax
second_case: mov %eax, -8(%rsp)
    ret
third_case: mov $3, %eax
    ret
end_of_masks:
end masks
function goes_on_for_long
    lea endless(%rip), %rdi
    movslq (%rdi,%rsi,4), %rsi
    add %rdi, %rsi
    jmp *%rsi
found_case: ret
lost_case: mov $4, %eax
    ret
end goes_on_for_long
function falls
    mov $1, %eax
    nop
end falls
fallen: add $2, %eax
    ret
    .byte 6 # This is no instruction.
    .p2align 6
function last
    ret
end last
hidden: mov $3, %eax
    call *slot(%rip)
    ret
    .byte 6
    .section .text.unlikely, "ax"
    .type hot_cold, @function
hot_cold: neg %edi
middle_of_cold: inc %edi
    jmp back
end hot_cold
    .section .rodata
    .p2align 2
masked: .long first_case - masked, end_of_masks - masked, third_case - masked
    .long second_case - masked
endless: .long found_case - endless, masked - endless, lost_case - endless
    .data
word: .long 0
    .p2align 3
slot: .quad pointed
    .section .note.GNU-stack, "", @progbits
"#;

struct Pieces {
    outline: Outline,
    names: BTreeMap<String, u64>,
}

/// The symbols of a program.
fn names(workshop: &Workshop, program: &str) -> BTreeMap<String, u64> {
    let mut names = BTreeMap::new();
    for line in workshop.run(&format!("nm {program}")).lines() {
        if let [at, _, name] = line.split(' ').collect::<Vec<_>>()[..]
            && let Ok(at) = u64::from_str_radix(at, 16)
        {
            names.insert(name.to_owned(), at);
        }
    }
    names
}

impl Pieces {
    fn new() -> Self {
        let workshop = Workshop::new();
        workshop.write("pieces.s", PIECES);
        workshop.run("gcc -o pieces pieces.s");
        let names = names(&workshop, "pieces");
        workshop.run("objcopy -N hidden -N fallen pieces");
        let outline = outline(workshop.bytes("pieces"));
        Self { outline, names }
    }

    fn at(&self, name: &str) -> LinkAddr {
        LinkAddr(self.names[name])
    }

    fn find(&mut self, name: &str) -> Result<Routine, String> {
        let at = self.at(name);
        self.outline.routine(at, &[])?.routine
    }

    fn found(&mut self, name: &str) -> Found {
        let at = self.at(name);
        self.outline.routine(at, &[]).unwrap()
    }

    fn routine(&mut self, name: &str) -> Routine {
        let routine = self.find(name).unwrap();
        is_well_formed(&routine, name);
        routine
    }

    fn entrance(&mut self, name: &str) -> Option<Entrance> {
        let routine = self.routine(name);
        entrance(&routine, self.names[name])
    }
}

#[test]
fn a_jump_over_a_prefix_gives_a_block_inside_of_another() {
    let mut pieces = Pieces::new();
    let routine = pieces.routine("skips_a_lock");
    let start = pieces.names["skips_a_lock"];
    let unlocked = (pieces.names["unlocked"] - start) as u32;
    let blocks = routine.blocks.iter();
    let blocks: Vec<_> = blocks.map(|block| (block.offset, block.end())).collect();
    let end = routine.bytes.len() as u32;
    let lock = unlocked - 1;
    assert_eq!(
        blocks,
        [
            (0, lock),
            (lock, end - 1),
            (unlocked, end - 1),
            (end - 1, end)
        ]
    );
}

#[test]
fn what_was_moved_away_comes_back_as_an_arrival() {
    let mut pieces = Pieces::new();
    assert_eq!(pieces.entrance("back"), Some(Entrance::Arrival));
    let hot = pieces.found("hot");
    assert_eq!(hot.leads_to, [pieces.at("middle_of_cold")]);
    let cold = pieces.found("hot_cold");
    assert_eq!(cold.leads_to, [pieces.at("back")]);
    // The hot part leads into the cold one, which looks at it because it leads back.
    assert_eq!(pieces.entrance("middle_of_cold"), Some(Entrance::Arrival));
}

#[test]
fn control_comes_to_unknown_code_only_where_something_speaks_of_it() {
    let workshop = Workshop::new();
    let text = r#"
    .text
    .globl main
    .type main, @function
main:
    lea table(%rip), %rdi
    lea unknown(%rip), %rsi
    mov %rsi, other(%rip)
    ret
    .size main, . - main
    .p2align 6
table: .byte 0xc3, 0xff, 0xff
in_table: .byte 0x0f, 0x05, 0xff, 0xff
    .p2align 6, 0xff
unknown: mov $39, %eax
    jmp 1f
    .byte 0x0f, 0x05
1:
in_unknown: syscall
    ret
    .p2align 6, 0xff
pointed: xor %eax, %eax
in_pointed: syscall
    ret
    .data
other: .quad 0
slot: .quad pointed
    .section .note.GNU-stack, "", @progbits
"#;
    workshop.write("tables.s", text);
    workshop.run("gcc -o tables tables.s");
    let names = names(&workshop, "tables");
    workshop.run(
        "objcopy -N table -N in_table -N unknown -N in_unknown -N pointed -N in_pointed tables",
    );
    let mut outline = outline(workshop.bytes("tables"));
    let at = |name: &str| LinkAddr(names[name]);
    outline.routine(at("main"), &[]).unwrap();
    let may_run = |name: &str| outline.part_at(at(name)).is_some() || outline.may_come_to(at(name));
    assert!(!may_run("in_table"));
    assert!(may_run("in_unknown"));
    assert!(may_run("in_pointed"));
}

#[test]
fn who_asks_may_know_more_arrivals() {
    let mut pieces = Pieces::new();
    assert_eq!(pieces.entrance("plain"), None);
    let before = pieces.routine("speaks");
    let plain = pieces.at("plain");
    // In the midst of the call that follows.
    let torn = LinkAddr(plain.0 + 2);
    let elsewhere = pieces.at("main");
    let arrivals = [plain, torn, elsewhere];
    let after = pieces.outline.routine(plain, &arrivals).unwrap();
    let after = after.routine.unwrap();
    is_well_formed(&after, "speaks");
    assert_eq!(entrance(&after, plain.0), Some(Entrance::Arrival));
    assert_eq!(after.blocks.len(), before.blocks.len() + 1);
    assert_eq!(instructions(&after), instructions(&before));
}

#[test]
fn what_cannot_be_counted_is_refused_by_name() {
    let mut pieces = Pieces::new();
    for (name, reason) in [
        (
            "reads_gs",
            "it uses the gs register, which the counters need",
        ),
        ("reads_gs_base", "it uses the gs register"),
        ("copies_from_gs", "it uses the gs register"),
        ("transaction", "it begins a transaction at"),
        ("torn", "a jump leads into the midst of an instruction at"),
        ("broken", "it has bytes that are no instructions at"),
        ("sigreturn", "it is where signal handlers return through"),
    ] {
        let error = pieces.find(name).unwrap_err();
        assert!(error.starts_with(reason), "{name}: {error}");
    }
    assert!(pieces.find("reads_fs").is_ok());
    let nowhere = pieces.outline.routine(LinkAddr(1), &[]).unwrap_err();
    assert!(nowhere.contains("0x1"), "{nowhere}");
    assert!(is_sigreturn(&[0xb8, 15, 0, 0, 0, 0x0f, 0x05, 0x90]));
    assert!(!is_sigreturn(&[0xb8, 15, 0, 0, 0, 0x0f, 0x05, 0xc3]));
    assert!(!is_sigreturn(&[0xb8, 14, 0, 0, 0, 0x0f, 0x05]));
}

#[test]
fn data_among_instructions_is_left_out() {
    let mut pieces = Pieces::new();
    let routine = pieces.routine("with_data");
    let returns = pieces.names["returns"];
    let table = (returns - 16 - routine.start.0) as u32..(returns - routine.start.0) as u32;
    assert_eq!(entrance(&routine, returns), Some(Entrance::Arrival));
    for block in &routine.blocks {
        assert!(block.end() <= table.start || block.offset >= table.end);
    }
    assert_eq!(routine.blocks.len(), 2);
    assert!(!routine.has_unknown_jumps);
}

#[test]
fn a_mask_tells_how_long_a_table_is() {
    let mut pieces = Pieces::new();
    let routine = pieces.routine("masks");
    for case in ["first_case", "second_case", "third_case"] {
        let at = pieces.names[case];
        assert_eq!(entrance(&routine, at), Some(Entrance::Arrival), "{case}");
    }
    // Nothing else is led to: `ud2` is left out.
    assert_eq!(routine.blocks.len(), 4);
    assert!(!routine.has_unknown_jumps);
}

#[test]
fn what_a_table_without_a_bound_may_lead_to_is_kept() {
    let mut pieces = Pieces::new();
    let routine = pieces.routine("goes_on_for_long");
    let known = pieces.names["found_case"];
    assert_eq!(entrance(&routine, known), Some(Entrance::Arrival));
    assert!(entrance(&routine, pieces.names["lost_case"]).is_some());
    assert_eq!(routine.doubtful, []);
}

#[test]
fn filler_at_the_end_of_a_part_leads_nowhere() {
    let mut pieces = Pieces::new();
    let found = pieces.found("ends_with_filler");
    assert_eq!(found.unknown_code, []);
    assert_eq!(found.leads_to, []);
}

#[test]
fn what_no_table_tells_of_becomes_a_part() {
    let mut pieces = Pieces::new();
    for (from, to) in [("calls_hidden", "hidden"), ("falls", "fallen")] {
        let to = pieces.at(to);
        assert_eq!(pieces.outline.part_at(to), None);
        assert!(pieces.outline.routine(to, &[]).is_err());
        assert_eq!(pieces.found(from).unknown_code, [to]);
        assert!(pieces.outline.add_called(to));
        assert!(!pieces.outline.add_called(to));
        assert!(pieces.outline.starts().contains(&to.0));
        assert!(pieces.outline.starts().is_sorted());
        assert_eq!(pieces.found(from).unknown_code, []);
    }
    // Its end is found with its instructions.
    let end = pieces.at("last").0;
    let fallen = pieces.at("fallen");
    assert_eq!(pieces.outline.part_at(fallen), Some(fallen.0..end));
    let routine = pieces.routine("fallen");
    assert_eq!(routine.bytes, [0x83, 0xc0, 0x02, 0xc3]);
    assert_eq!(pieces.outline.part_at(fallen), Some(fallen.0..fallen.0 + 4));
    assert_eq!(routine.filler, 0);
    assert!(!pieces.outline.add_called(LinkAddr(1)));
    // In the midst of a part, it is an arrival of that.
    let inside = pieces.at("back");
    assert!(!pieces.outline.add_called(inside));
}

#[test]
fn filler_is_what_nobody_runs() {
    let mut pieces = Pieces::new();
    let main = pieces.routine("main");
    let gap = pieces.at("skips_a_lock").0 - pieces.at("main").0;
    assert_eq!(u64::from(main.filler), gap - main.bytes.len() as u64);
    // Other code follows, or control goes on.
    assert_eq!(pieces.routine("last").filler, 0);
    assert_eq!(pieces.routine("falls").filler, 0);
    assert_eq!(pieces.routine("hot").filler, 0);
}

#[test]
fn jumps_that_may_lead_anywhere_are_told() {
    let mut pieces = Pieces::new();
    for (name, unknown) in [
        ("jumps_anywhere", true),
        ("leaves", false),
        ("leaves_through_slot", false),
        ("main", false),
    ] {
        let routine = pieces.routine(name);
        assert_eq!(routine.has_unknown_jumps, unknown, "{name}");
    }
}

#[test]
fn what_is_spoken_of_or_pointed_to_is_an_arrival() {
    let mut pieces = Pieces::new();
    for name in ["spoken", "pointed", "inner", "behind_call"] {
        assert_eq!(pieces.entrance(name), Some(Entrance::Arrival), "{name}");
    }
    let back = pieces.at("back");
    assert_eq!(pieces.found("speaks").leads_to, [back]);
}

#[test]
fn control_comes_back_behind_calls_and_to_landing_pads() {
    let workshop = Workshop::new();
    workshop.write("throw.cc", THROW);
    workshop.run("g++ -O2 -o throw throw.cc");
    let mut throw = outline(workshop.bytes("throw"));
    let points = throw.explore().return_points;
    assert!(points.is_sorted());
    let pads = workshop.read("throw");
    let pads = pads.module.functions.iter();
    let pads = pads.filter(|it| it.name == "main" || it.name == "_Z5riskyi");
    let pads = pads.flat_map(|it| workshop::reached_by(it, EdgeKind::Arrival));
    let pads: Vec<u64> = pads.collect();
    assert!(pads.len() >= 2, "{pads:?}");
    for pad in pads {
        assert!(points.contains(&pad), "{pad:#x} in {points:x?}");
    }
    let mut pieces = Pieces::new();
    let points = pieces.outline.explore().return_points;
    assert!(points.contains(&pieces.names["behind_call"]));
    // Every one begins a block that is entered from elsewhere.
    for at in points {
        let found = pieces.outline.routine(LinkAddr(at), &[]).unwrap();
        let routine = found.routine.unwrap();
        assert_eq!(entrance(&routine, at), Some(Entrance::Arrival));
    }
}

#[test]
fn a_key_names_the_build() {
    let workshop = Workshop::new();
    workshop.write("switch.c", SWITCH);
    workshop.run("gcc -Wl,--build-id=0x12ab -o named switch.c");
    workshop.run("gcc -O2 -Wl,--build-id=0x12ab -o forged switch.c");
    workshop.run("gcc -Wl,--build-id=none -o one switch.c");
    workshop.run("gcc -Wl,--build-id=none -o same switch.c && strip same");
    workshop.run("gcc -O2 -Wl,--build-id=none -o other switch.c");
    let key = |name: &str| outline(workshop.bytes(name)).key().to_owned();
    assert!(key("named").starts_with("gnu-12ab-"));
    assert!(key("forged").starts_with("gnu-12ab-"));
    assert_ne!(key("named"), key("forged"));
    assert!(key("one").starts_with("loaded-"));
    assert_eq!(key("one"), key("same"));
    assert_ne!(key("one"), key("other"));
}

#[test]
fn no_file_can_be_given_the_name_of_another() {
    // With a digest of products, as FNV is one, a change is undone by another one further on.
    let workshop = Workshop::new();
    let text = "
        .globl seven
        .type seven, @function
        .p2align 5
seven:  mov $7, %eax
        ret
        .size seven, . - seven
        .p2align 5
        .quad 1, 2, 3, 4";
    workshop.write("lib.s", text);
    workshop.run("gcc -shared -nostdlib -Wl,--build-id=0x12ab -o lib.so lib.s");
    let mut bytes = workshop.bytes("lib.so");
    let good = outline(bytes.clone());
    let seven = [0xb8, 7, 0, 0, 0, 0xc3];
    let at = bytes.windows(6).position(|it| it == seven).unwrap();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let state = |bytes: &[u8]| {
        let product = (0xcbf2_9ce4_8422_2325 ^ word(bytes, at)).wrapping_mul(0x0100_0000_01b3);
        product ^ (product >> 32)
    };
    let before = state(&bytes);
    bytes[at + 1] = 8;
    let undone = word(&bytes, at + 32) ^ before ^ state(&bytes);
    bytes[at + 32..at + 40].copy_from_slice(&undone.to_le_bytes());
    let evil = outline(bytes);
    assert_ne!(good.key(), evil.key());
    assert_ne!(good.fingerprint(), evil.fingerprint());
}

#[test]
fn sections_that_contradict_what_is_loaded_are_not_believed() {
    let workshop = Workshop::new();
    workshop.write("switch.c", SWITCH);
    workshop.run("gcc -O1 -o good switch.c");
    let good = workshop.bytes("good");
    let elf = object::File::parse(&*good).unwrap();
    let frames = elf.section_by_name(".eh_frame").unwrap().address();
    // One byte off, the tables tell of functions that begin amid instructions.
    let mut bad = good.clone();
    let table = u64::from_le_bytes(good[40..48].try_into().unwrap()) as usize;
    let headers = good[table..].chunks(64);
    let index = headers
        .map(|it| &it[16..24])
        .position(|it| it == frames.to_le_bytes());
    bad[table + 64 * index.unwrap() + 16] += 1;
    let starts = |bytes: Vec<u8>| outline(bytes).known_starts().collect::<Vec<u64>>();
    let (good, bad) = (starts(good.clone()), starts(bad));
    assert!(
        bad.iter().all(|it| good.contains(it)),
        "{bad:x?}, {good:x?}"
    );
}
