//! The instructions of a copy: the original ones, with probes among them.

use std::cell::OnceCell;

use headcount_model::{BlockId, EdgeId, KeyedProbes, LinkAddr, Place, Plan};
use headcount_request::INSTRUCTION as REQUEST;
use headcount_x86::out_of_line;
use headcount_x86::registers::Registers as Set;
use iced_x86::{Code, ConstantOffsets, Decoder, DecoderOptions, Encoder, Instruction};

use crate::detours::{self, Detours, LONG, SHORT};
use crate::event_counter::Events;
use crate::keyed::Unreadable;
use crate::probes::Alarm;
use crate::registers::Registers;
use crate::sketch::{CannotCopy, End, Sketch, Target, Way, falls_into};
use crate::spots::{CounterNumber, Fix, Resume, Spot, Undo};
use crate::system_calls::{LOOK, SystemCall};
use crate::tables::{Resumes, Spots};
use crate::targets::target_of;
use crate::template::{Tallied, Template};

/// Makes the copy of a routine with the plan's counters, for any place.
pub fn template(
    sketch: &Sketch,
    plan: &Plan,
    events: Events,
    keyed: &KeyedProbes,
) -> Result<Template, CannotCopy> {
    let detours = detours::plan(sketch)?;
    let counters = Counters::of(sketch, plan)?;
    if !events.fit(sketch.blocks.len(), plan) {
        return Err(CannotCopy::WrongPlan);
    }
    let mut emitter = Emitter {
        sketch,
        counters,
        events,
        moved: &detours.moved,
        base: sketch.routine.start.0,
        code: Vec::with_capacity(sketch.routine.bytes.len() * 2 + 64),
        distances: Vec::new(),
        ways_out: Vec::new(),
        words: Vec::new(),
        spots: Vec::new(),
        labels: vec![0; sketch.blocks.len()],
        landings: Vec::new(),
        resumes: Vec::new(),
        calls: Vec::new(),
        system_calls: Vec::new(),
        requests: Vec::new(),
        jumps: Vec::new(),
        stubs: Vec::new(),
        leads: Vec::new(),
        countdowns: Vec::new(),
        alarms: Vec::new(),
        keyed_probes: keyed,
        registers: OnceCell::new(),
        tallied: Vec::new(),
        full_tables: Vec::new(),
        new_texts: Vec::new(),
        notices: Vec::new(),
        faults: Vec::new(),
        unreadables: Vec::new(),
    };
    for number in 0..sketch.blocks.len() {
        emitter.block(number)?;
    }
    emitter.stubs()?;
    emitter.alarms();
    emitter.unreadables()?;
    emitter.link()?;
    finish(emitter, &detours, plan)
}

fn finish(emitter: Emitter<'_>, detours: &Detours, plan: &Plan) -> Result<Template, CannotCopy> {
    let Emitter {
        sketch,
        code,
        mut distances,
        mut ways_out,
        words,
        spots,
        mut landings,
        mut resumes,
        mut calls,
        system_calls,
        requests,
        events,
        mut leads,
        mut countdowns,
        tallied,
        full_tables,
        new_texts,
        notices,
        mut faults,
        ..
    } = emitter;
    faults.sort_unstable();
    leads.sort_unstable();
    countdowns.sort_unstable();
    distances.sort_unstable();
    ways_out.sort_unstable();
    landings.sort_unstable();
    resumes.sort_unstable_by_key(|it| it.0);
    calls.sort_unstable();
    let routine = &sketch.routine;
    let spots = Spots::new(routine.start, &spots).ok_or(CannotCopy::OutOfReach)?;
    let net = net(sketch, detours, &calls);
    Ok(Template {
        start: routine.start,
        length: routine.bytes.len() as u32,
        counters: plan.counters.len() as u32,
        code,
        distances,
        ways_out,
        words,
        net,
        detours: detours.kinds.clone(),
        taken: detours.taken.clone(),
        gaps: detours.gaps.clone(),
        spare: detours.spare.clone(),
        moved_calls: detours.moved.iter().filter(|it| **it).count() as u32,
        landings,
        calls,
        system_calls,
        requests,
        spots,
        resumes: Resumes::new(&resumes),
        increments: events.into_increments(),
        leads,
        countdowns,
        tallied,
        full_tables,
        new_texts,
        notices,
        faults,
    })
}

/// Where dead instructions begin that are not under a detour: they are made to trap.
fn net(sketch: &Sketch, detours: &Detours, calls: &[(u32, u32)]) -> Vec<u32> {
    let mut net = Vec::new();
    for block in &sketch.routine.blocks {
        let mut offset = block.offset;
        for length in &block.lengths {
            let is_call = calls.binary_search_by_key(&offset, |it| it.0).is_ok();
            if !is_call && !detours.takes(offset) {
                net.push(offset);
            }
            offset += u32::from(*length);
        }
    }
    net
}

/// Which places have a counter.
struct Counters {
    blocks: Vec<Option<CounterNumber>>,
    edges: Vec<Option<CounterNumber>>,
}

impl Counters {
    fn of(sketch: &Sketch, plan: &Plan) -> Result<Self, CannotCopy> {
        let mut counters = Self {
            blocks: vec![None; sketch.blocks.len()],
            edges: vec![None; sketch.graph().edges.len()],
        };
        for (number, place) in (0..).zip(&plan.counters) {
            let slot = match place {
                Place::Block(block) => counters.blocks.get_mut(block.index()),
                Place::Edge(edge) => counters.edges.get_mut(edge.index()),
            };
            *slot.ok_or(CannotCopy::WrongPlan)? = Some(number);
        }
        Ok(counters)
    }

    fn block(&self, block: BlockId) -> Option<CounterNumber> {
        self.blocks[block.index()]
    }

    fn edge(&self, edge: EdgeId) -> Option<CounterNumber> {
        self.edges[edge.index()]
    }
}

/// What a thread at a place has done.
#[derive(Clone, Copy)]
pub(crate) struct State {
    at: u64,
    fix: Fix,
    is_inside: bool,
    ahead: i32,
    tallied: u8,
}

impl State {
    fn inside(at: u64, fix: Fix) -> Self {
        Self {
            at,
            fix,
            is_inside: true,
            ahead: 0,
            tallied: 0,
        }
    }

    fn outside(at: u64, fix: Fix) -> Self {
        let is_inside = false;
        Self {
            is_inside,
            ..Self::inside(at, fix)
        }
    }

    /// The same when so much more was added to the event counter.
    pub(crate) fn ahead(self, by: i32) -> Self {
        let ahead = self.ahead + by;
        Self { ahead, ..self }
    }

    /// The same when a keyed probe has made one more of its two counts.
    pub(crate) fn tallied(self) -> Self {
        let tallied = self.tallied + 1;
        Self { tallied, ..self }
    }
}

/// Where a jump of the copy leads.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    Label(u32),
    Stub(usize),
    /// An offset in the copy.
    Here(u32),
    /// A call that is made from its own place.
    Call(u64),
    /// Another routine.
    Elsewhere(u64),
}

/// Code out of the way: a probe, and a jump to a block.
struct Stub {
    counter: Option<CounterNumber>,
    block: u32,
    /// Does control come here from outside, rather than along an edge?
    is_landing: bool,
    offset: u32,
}

pub(crate) struct Emitter<'a> {
    pub(crate) sketch: &'a Sketch,
    counters: Counters,
    pub(crate) events: Events,
    moved: &'a [bool],
    /// Where the copy is for now: as near to what it speaks of as can be.
    base: u64,
    pub(crate) code: Vec<u8>,
    /// Where in the code distances are to places outside of it, and counters.
    distances: Vec<u32>,
    /// Those of jumps to other routines.
    ways_out: Vec<u32>,
    words: Vec<u32>,
    spots: Vec<Spot>,
    labels: Vec<u32>,
    landings: Vec<(u32, u32)>,
    resumes: Vec<(u32, Resume)>,
    /// Calls that are made from their own place, and the jumps to them.
    calls: Vec<(u32, u32)>,
    system_calls: Vec<SystemCall>,
    /// Where the copy traps because the program asks for something.
    requests: Vec<u32>,
    /// Distances to fill in: where they are, and what they lead to.
    pub(crate) jumps: Vec<(usize, Goal)>,
    stubs: Vec<Stub>,
    /// The lead of every instruction, by offset in the original.
    leads: Vec<(u32, i32)>,
    /// Where the copy traps because the event counter is no longer negative.
    pub(crate) countdowns: Vec<u32>,
    pub(crate) alarms: Vec<Alarm>,
    keyed_probes: &'a KeyedProbes,
    /// Few routines have keyed probes.
    registers: OnceCell<Registers>,
    /// The instructions that have keyed probes, by offset, with what each of these counts.
    tallied: Vec<(u32, Vec<Tallied>)>,
    /// Where the copy traps because there is no room for a key.
    pub(crate) full_tables: Vec<u32>,
    /// Where the copy traps because a text comes into a table.
    pub(crate) new_texts: Vec<u32>,
    /// Traps before instructions of which headcount is told.
    pub(crate) notices: Vec<u32>,
    /// Instructions of keyed probes that may fault, and where they go on then.
    pub(crate) faults: Vec<(u32, u32)>,
    pub(crate) unreadables: Vec<Unreadable>,
}

impl Emitter<'_> {
    pub(crate) fn here(&self) -> u64 {
        self.base.wrapping_add(self.code.len() as u64)
    }

    pub(crate) fn start_of(&self, block: u32) -> u64 {
        let offset = self.sketch.routine.blocks[block as usize].offset;
        self.sketch.routine.start.0.wrapping_add(u64::from(offset))
    }

    pub(crate) fn spot(&mut self, state: State, undo: Undo) {
        let State {
            at,
            fix,
            is_inside,
            ahead,
            tallied,
        } = state;
        self.spots.push(Spot {
            offset: self.code.len() as u32,
            at: LinkAddr(at),
            undo,
            fix,
            is_inside,
            ahead,
            tallied,
        });
    }

    /// Makes the address behind us, on the stack, that behind the original call.
    fn put_return(
        &mut self,
        call: &Instruction,
        state: State,
        is_careful: bool,
    ) -> Result<(), CannotCopy> {
        let to = call.next_ip();
        if !is_careful {
            let add = [0x48, 0x81, 0x04, 0x24]; // add qword ptr [rsp], distance
            return self.put_distance(&add, to, self.here());
        }
        let scratch = 0_u32.to_le_bytes();
        self.put(&[0x65, 0x48, 0x89, 0x04, 0x25], scratch); // mov gs:[scratch], rax
        self.spot(state, Undo::PopReturn);
        let behind = self.here().wrapping_add(7);
        self.put_distance(&[0x48, 0x8d, 0x05], to, behind)?; // lea rax, [rip + distance]
        self.spot(state, Undo::PopReturnAndRestoreRax);
        self.code.extend([0x48, 0x89, 0x04, 0x24]); // mov [rsp], rax
        self.spot(state, Undo::PopReturnAndRestoreRax);
        self.put(&[0x65, 0x48, 0x8b, 0x04, 0x25], scratch); // mov rax, gs:[scratch]
        Ok(())
    }

    pub(crate) fn put(&mut self, start: &[u8], end: [u8; 4]) {
        self.code.extend(start);
        self.code.extend(end);
    }

    pub(crate) fn put_word(&mut self, start: &[u8], counter: CounterNumber) {
        self.put(start, counter.wrapping_mul(8).to_le_bytes());
        self.words.push(self.code.len() as u32 - 4);
    }

    /// How far it is from one address to another, of which the first moves with the copy.
    pub(crate) fn put_distance(
        &mut self,
        start: &[u8],
        to: u64,
        from: u64,
    ) -> Result<(), CannotCopy> {
        let distance = to.wrapping_sub(from) as i64;
        let distance = i32::try_from(distance).map_err(|_| CannotCopy::OutOfReach)?;
        self.put(start, distance.to_le_bytes());
        self.distances.push(self.code.len() as u32 - 4);
        Ok(())
    }

    pub(crate) fn jump(&mut self, goal: Goal) {
        self.put(&[0xe9], [0; 4]); // jmp rel32
        self.jumps.push((self.code.len() - 4, goal));
    }

    fn block(&mut self, number: usize) -> Result<(), CannotCopy> {
        let sketch = self.sketch;
        let block = &sketch.blocks[number];
        self.land(number)?;
        self.labels[number] = self.code.len() as u32;
        let counter = self.counters.block(BlockId(number as u32));
        let mut has_run = false;
        let last = block.code.len() - 1;
        for (index, instruction) in block.code.iter().enumerate() {
            let state = |has_run: bool| {
                let fix = match counter {
                    Some(counter) if index == 0 && has_run => Fix::Take(counter),
                    Some(counter) if index > 0 && !has_run => Fix::Add(counter),
                    _ => Fix::Nothing,
                };
                State::inside(instruction.ip(), fix)
            };
            let label = self.code.len() as u32;
            if let Some(counter) = counter.filter(|_| index == block.site) {
                self.probe(counter, block.site_is_careful, state(false), state(true));
                has_run = true;
            }
            let resume = Resume {
                offset: match index {
                    0 => label,
                    _ => self.code.len() as u32,
                },
                fix: match counter {
                    Some(counter) if index > 0 && !has_run => Fix::Take(counter),
                    _ => Fix::Nothing,
                },
            };
            let offset = instruction.ip().wrapping_sub(sketch.routine.start.0) as u32;
            self.resumes.push((offset, resume));
            let lead = self.events.lead(number, index, counter);
            self.leads.extend(lead.map(|lead| (offset, lead)));
            self.notice(instruction, state(has_run));
            let state = self.tally(number, index, state(has_run))?;
            if index == last {
                self.end(number, instruction, state)?;
            } else {
                self.instruction(instruction, state)?;
            }
        }
        Ok(())
    }

    /// The trap before an instruction of which headcount is told.
    fn notice(&mut self, instruction: &Instruction, state: State) {
        if self.keyed_probes.is_noticed(LinkAddr(instruction.ip())) {
            self.spot(state, Undo::Nothing);
            self.notices.push(self.code.len() as u32);
            self.code.push(0xcc); // int3
        }
    }

    /// The keyed probes before an instruction.
    fn tally(&mut self, number: usize, index: usize, state: State) -> Result<State, CannotCopy> {
        let block = &self.sketch.blocks[number];
        let instruction = &block.code[index];
        let at = LinkAddr(instruction.ip());
        let target = target_of(instruction);
        let target = target.and_then(|it| self.keyed_probes.of_target(at, it));
        let mut probes = self.keyed_probes.at(at).to_vec();
        probes.extend(target);
        if probes.is_empty() {
            return Ok(state);
        }
        let is_careful = self.sketch.flags_matter(number, index);
        let tallied = probes.iter().map(|it| (it.tally, it.amount.is_some()));
        let offset = at.0.wrapping_sub(self.sketch.routine.start.0) as u32;
        self.tallied.push((offset, tallied.collect()));
        let free = self.free_before(number, index);
        self.keyed(&probes, is_careful, free, state)
    }

    /// The registers that a probe before an instruction may overwrite.
    fn free_before(&self, number: usize, index: usize) -> Set {
        let blocks = &self.sketch.blocks;
        let registers = self.registers.get_or_init(|| Registers::of(blocks));
        registers.free_before(&blocks[number], number, index)
    }

    /// Where control arrives that comes from outside.
    fn land(&mut self, number: usize) -> Result<(), CannotCopy> {
        let block = &self.sketch.blocks[number];
        let Some(edge) = block.entrance else {
            return Ok(());
        };
        let original = self.sketch.routine.blocks[number].offset;
        let before = number.checked_sub(1).map(|it| &self.sketch.blocks[it]);
        let is_apart = before.is_some_and(|it| falls_into(it, number));
        let start = self.start_of(number as u32);
        let counter = self.counters.edge(edge);
        let has_code =
            counter.is_some() || self.logs(number) || self.events.count_entries_at(LinkAddr(start));
        if has_code && is_apart {
            self.stubs.push(Stub {
                counter,
                block: number as u32,
                is_landing: true,
                offset: 0,
            });
            return Ok(());
        }
        self.landings.push((original, self.code.len() as u32));
        self.probe_landing(counter, number).map(drop)
    }

    /// What is counted where control arrives that comes from outside.
    fn probe_landing(
        &mut self,
        counter: Option<CounterNumber>,
        number: usize,
    ) -> Result<State, CannotCopy> {
        let is_careful = self.sketch.blocks[number].start_is_careful;
        let start = self.start_of(number as u32);
        let before = State::outside(start, Fix::Nothing);
        if self.logs(number) {
            self.log(number, before)?;
        }
        let before = match self.events.count_entries_at(LinkAddr(start)) {
            true => self.count_entry(is_careful, before),
            false => before,
        };
        let Some(counter) = counter else {
            return Ok(before);
        };
        let behind = State::outside(start, Fix::Take(counter)).ahead(before.ahead);
        self.probe(counter, is_careful, before, behind);
        Ok(behind)
    }

    /// The last instruction of a block, and the way on.
    fn end(&mut self, number: usize, last: &Instruction, state: State) -> Result<(), CannotCopy> {
        match self.sketch.blocks[number].end {
            End::Fall(way) => {
                self.instruction(last, state)?;
                self.fall(number, way);
            }
            End::Leave => self.instruction(last, state)?,
            End::Jump(way) => {
                let target = self.state_at(way);
                let edge = self.counters.edge(way.edge);
                if let (Some(counter), Target::Block(to)) = (edge, way.to) {
                    let is_careful = self.sketch.blocks[to as usize].start_is_careful;
                    self.probe(counter, is_careful, state, target);
                    self.spot(target, Undo::Nothing);
                } else {
                    self.spot(state, Undo::Nothing);
                }
                self.jump(goal(way.to));
            }
            End::Branch { taken, fall } => {
                self.spot(state, Undo::Nothing);
                self.branch(last, taken, fall);
                self.fall(number, fall);
            }
            End::Call => self.call(number, last, state)?,
        }
        Ok(())
    }

    /// What a thread has done that has taken a way, its probe included.
    fn state_at(&self, way: Way) -> State {
        match way.to {
            Target::Block(block) => State::inside(self.start_of(block), Fix::Nothing),
            Target::Elsewhere(at) => State::outside(at, Fix::Nothing),
        }
    }

    /// Control runs on behind a block.
    fn fall(&mut self, number: usize, way: Way) {
        let arrived = self.state_at(way);
        if let (Some(counter), Target::Block(to)) = (self.counters.edge(way.edge), way.to) {
            let is_careful = self.sketch.blocks[to as usize].start_is_careful;
            let before = self.before_probe(way);
            self.probe(counter, is_careful, before, arrived);
        }
        if way.to != Target::Block(number as u32 + 1) {
            self.spot(arrived, Undo::Nothing);
            self.jump(goal(way.to));
        }
    }

    fn branch(&mut self, branch: &Instruction, taken: Way, fall: Way) {
        let goal = match (self.counters.edge(taken.edge), taken.to) {
            (Some(counter), Target::Block(block)) => {
                self.stubs.push(Stub {
                    counter: Some(counter),
                    block,
                    is_landing: false,
                    offset: 0,
                });
                Goal::Stub(self.stubs.len() - 1)
            }
            _ => goal(taken.to),
        };
        if branch.is_jcc_short_or_near() {
            // The decoder numbers conditions as the machine does, but from 1.
            let condition = (branch.condition_code() as u8).wrapping_sub(1);
            self.put(&[0x0f, 0x80 | condition], [0; 4]); // jcc rel32
            self.jumps.push((self.code.len() - 4, goal));
            return;
        }
        // `loop` and `jrcxz` know only short distances: over a short jump, to a long one.
        let start = self.original(branch).len() - 1;
        let bytes = self.original(branch)[..start].to_vec();
        self.code.extend(bytes);
        self.code.push(SHORT as u8);
        let next = self.before_probe(fall);
        self.spot(next, Undo::Nothing);
        self.code.extend([0xeb, LONG as u8]); // jmp rel8
        let arrived = self.before_probe(taken);
        self.spot(arrived, Undo::Nothing);
        self.jump(goal);
    }

    /// What a thread has done that has taken a way, but not its probe.
    fn before_probe(&self, way: Way) -> State {
        let arrived = self.state_at(way);
        match self.counters.edge(way.edge) {
            Some(counter) if arrived.is_inside => State::inside(arrived.at, Fix::Add(counter)),
            _ => arrived,
        }
    }

    fn call(&mut self, number: usize, call: &Instruction, state: State) -> Result<(), CannotCopy> {
        let offset = call.ip().wrapping_sub(self.sketch.routine.start.0) as u32;
        self.spot(state, Undo::Nothing);
        if !self.moved[number] {
            self.calls.push((offset, self.code.len() as u32));
            self.jump(Goal::Call(call.ip()));
            return Ok(());
        }
        // The processor remembers this call, so that returns further up are still foreseen.
        self.code.extend([0xe8, 0, 0, 0, 0]); // call to the next instruction
        self.spot(state, Undo::PopReturn);
        self.put_return(call, state, self.sketch.blocks[number].end_is_careful)?;
        if call.is_call_near() {
            let target = call.near_branch_target();
            self.spot(State::outside(target, Fix::Nothing), Undo::Nothing);
            self.jump(Goal::Elsewhere(target));
            return Ok(());
        }
        self.spot(state, Undo::PopReturn);
        let jump = out_of_line::jump_of_call(call);
        let jump = jump.map_err(|_| CannotCopy::StuckCall(call.ip()))?;
        let mut encoder = Encoder::new(64);
        let encoded = encoder.encode(&jump, self.here());
        encoded.map_err(|_| CannotCopy::OutOfReach)?;
        if jump.is_ip_rel_memory_operand() {
            let place = encoder.get_constant_offsets().displacement_offset();
            self.distances.push((self.code.len() + place) as u32);
        }
        self.code.extend(encoder.take_buffer());
        Ok(())
    }

    fn original(&self, instruction: &Instruction) -> &[u8] {
        let routine = &self.sketch.routine;
        let start = instruction.ip().wrapping_sub(routine.start.0) as usize;
        &routine.bytes[start..start + instruction.len()]
    }

    /// An instruction that does not jump.
    fn instruction(&mut self, instruction: &Instruction, state: State) -> Result<(), CannotCopy> {
        if instruction.code() == Code::Syscall {
            let start = self.sketch.routine.start.0;
            self.system_calls.push(SystemCall {
                original: instruction.ip().wrapping_sub(start) as u32,
                copy: self.code.len() as u32,
            });
            for look in LOOK {
                self.spot(state, Undo::Nothing);
                self.code.extend(look);
            }
        }
        if self.original(instruction) == REQUEST {
            self.spot(state, Undo::Nothing);
            self.requests.push(self.code.len() as u32);
            self.code.push(0xcc); // int3
        }
        self.spot(state, Undo::Nothing);
        self.plain(instruction)
    }

    /// An instruction as it is, but for a distance from where it stands.
    fn plain(&mut self, instruction: &Instruction) -> Result<(), CannotCopy> {
        let start = self.code.len();
        let bytes = self.original(instruction).to_vec();
        self.code.extend(&bytes);
        if instruction.is_ip_rel_memory_operand() {
            let place = displacement(&bytes, instruction).displacement_offset();
            let end = self.here();
            let distance = instruction.ip_rel_memory_address().wrapping_sub(end) as i64;
            let distance = i32::try_from(distance).map_err(|_| CannotCopy::OutOfReach)?;
            let place = start + place;
            self.code[place..place + 4].copy_from_slice(&distance.to_le_bytes());
            self.distances.push(place as u32);
        }
        Ok(())
    }

    /// What was put out of the way.
    fn stubs(&mut self) -> Result<(), CannotCopy> {
        for index in 0..self.stubs.len() {
            let Stub {
                counter,
                block,
                is_landing,
                ..
            } = self.stubs[index];
            self.stubs[index].offset = self.code.len() as u32;
            let behind = match (is_landing, counter) {
                (false, Some(counter)) => self.probe_taken(counter, block),
                _ => {
                    let original = self.sketch.routine.blocks[block as usize].offset;
                    self.landings.push((original, self.code.len() as u32));
                    self.probe_landing(counter, block as usize)?
                }
            };
            self.spot(behind, Undo::Nothing);
            self.jump(Goal::Label(block));
        }
        Ok(())
    }

    /// The probe of a branch that is taken.
    fn probe_taken(&mut self, counter: CounterNumber, block: u32) -> State {
        let start = self.start_of(block);
        let is_careful = self.sketch.blocks[block as usize].start_is_careful;
        let before = State::inside(start, Fix::Add(counter));
        let behind = State::inside(start, Fix::Nothing);
        self.probe(counter, is_careful, before, behind);
        behind
    }

    /// Fills the distances of jumps in.
    fn link(&mut self) -> Result<(), CannotCopy> {
        for (place, goal) in &self.jumps {
            let end = self.base.wrapping_add(*place as u64 + 4);
            let target = match goal {
                Goal::Label(block) => {
                    let label = self.labels[*block as usize];
                    self.base.wrapping_add(u64::from(label))
                }
                Goal::Stub(stub) => {
                    let offset = self.stubs[*stub].offset;
                    self.base.wrapping_add(u64::from(offset))
                }
                Goal::Here(offset) => self.base.wrapping_add(u64::from(*offset)),
                Goal::Call(at) => {
                    self.distances.push(*place as u32);
                    *at
                }
                Goal::Elsewhere(at) => {
                    self.distances.push(*place as u32);
                    self.ways_out.push(*place as u32);
                    *at
                }
            };
            let distance = target.wrapping_sub(end) as i64;
            let distance = i32::try_from(distance).map_err(|_| CannotCopy::OutOfReach)?;
            self.code[*place..*place + 4].copy_from_slice(&distance.to_le_bytes());
        }
        Ok(())
    }
}

fn goal(target: Target) -> Goal {
    match target {
        Target::Block(block) => Goal::Label(block),
        Target::Elsewhere(at) => Goal::Elsewhere(at),
    }
}

/// Where in an instruction's bytes its constants are.
fn displacement(bytes: &[u8], instruction: &Instruction) -> ConstantOffsets {
    let mut decoder = Decoder::with_ip(64, bytes, instruction.ip(), DecoderOptions::NONE);
    let again = decoder.decode();
    decoder.get_constant_offsets(&again)
}
