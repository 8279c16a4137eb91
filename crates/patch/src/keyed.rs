//! Keyed probes: they choose their counter by a value.
//!
//! A thread's window has a table for each tally, open addressed: slots of a key, of what the key is
//! told apart by besides, of how often, and of an amount. The probe finds the slot of its key in a
//! bucket, from a place on that the key decides, or takes an empty one (one that counted nothing), and adds
//! one. Where all slots from there on are others', the copy traps: the table is emptied into a file, and the probe goes on. So nothing
//! is lost, however many keys there are, and what was counted is on file as soon as it was. Tables begin
//! small, because they are read whenever a thread ends; one that was emptied has more buckets afterwards,
//! up to a limit, by a mask in the window.
//!
//! Where all keys of a place are known and few, each has a slot of its own, in front of the buckets ([`direct`]).
//! Registers that nobody looks at any more are used as they are, others are kept meanwhile ([`hands`]).
//!
//! A thread that is moved away behind the increment, and before the instruction that the probe stands
//! for has run, takes it back: where the last increment was is noted before it is made. If memory
//! cannot be read, the fault is noticed from outside, and the probe goes on with a key that says so.
//!
//! A text is counted by its hash. Where that comes into a table, the copy traps, and the text is read from
//! outside.

use headcount_model::{DIRECT_SLOTS, Expression, KeyKind, KeyOf, KeyedProbe};
use headcount_x86::registers::Registers;
use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register};

mod direct;
mod hands;
mod numbers;

use hands::Hands;
use numbers::is_simple;

use crate::emit::{Emitter, Goal, State};
use crate::event_counter;
use crate::sketch::CannotCopy;
use crate::spots::Undo;
use crate::system_calls::BEHIND_CALL_CELLS;

/// Where what tallies need begins, from the base of `gs` on.
pub const START: u32 = BEHIND_CALL_CELLS.next_multiple_of(4096);

/// How often the tables of a window were emptied.
pub const GENERATION: u32 = START;

/// The process that counts there.
pub const OWNER: u32 = START + 8;

const FLAGS: u32 = START + 16;
const THIRD: u32 = START + 24;
const CALLER: u32 = START + 32;
const TEXT: u32 = START + 48;
const TEXT_END: u32 = START + 56;
const TEMPORARIES: u32 = START + 64;
const LAST: u32 = TEMPORARIES + 8 * MOST_TEMPORARIES;
const AMOUNTS: u32 = LAST + 8 * headcount_model::MOST_TALLIES as u32;
const MASKS: u32 = AMOUNTS + 8 * headcount_model::MOST_TALLIES as u32;

/// How many numbers an expression may have to keep meanwhile.
pub const MOST_TEMPORARIES: u32 = 32;

/// Where the first table begins.
pub const TABLES: u32 = START + 2048;

/// A slot: key, what else, how often, how much.
pub const SLOT_BYTES: u32 = 32;

/// Where in a slot its two counts are.
pub const SLOT_COUNT: u32 = 16;
/// See [`SLOT_COUNT`].
pub const SLOT_AMOUNT: u32 = 24;

/// A bucket has 16 slots. Every key has its place in the first half, and may have to go on from there. (Fewer
/// would be full too soon, and where there are more, many keys are looked at before the table grows.)
const BUCKET_BYTES: u32 = 16 * SLOT_BYTES;
const FIRST_SLOTS: u32 = BUCKET_BYTES / 2 - SLOT_BYTES;

const LEAST_TABLE_LOG: u32 = 15;
const TABLE_LOG: u32 = 20;
const MOST_TABLE_LOG: u32 = 23;

/// How many bytes the buckets of a table have room for.
pub const TABLE_BYTES: u32 = 1 << TABLE_LOG;

/// How many bytes are in front of its buckets, for keys that have slots of their own. Those that what is interpreted
/// is counted by are not few.
pub const DIRECT_BYTES: u32 = DIRECT_SLOTS as u32 * SLOT_BYTES;

/// How many the one has room for whose keys are what is interpreted.
pub const FETCH_TABLE_BYTES: u32 = 1 << MOST_TABLE_LOG;

/// No window is larger.
pub const MOST_WINDOW_BYTES: u32 = 1 << 26;

/// Where that table is: at the end, so that only windows reach there whose threads need it.
pub const FETCH_TABLE: u32 = MOST_WINDOW_BYTES - FETCH_TABLE_BYTES;

/// How many of them a table has at first.
pub const LEAST_TABLE_BYTES: u32 = 1 << LEAST_TABLE_LOG;

/// In what else keys are told apart by, from the lowest bit on: the kind of the key, the number of a
/// place, and an address.
pub const PLACE_SHIFT: u32 = 4;
/// See [`PLACE_SHIFT`].
pub const ADDRESS_SHIFT: u32 = 16;

const _: () = assert!(headcount_model::MOST_PLACES as u32 <= 1 << (ADDRESS_SHIFT - PLACE_SHIFT));

/// Where the window notes which slot of a tally's table was added to last: how far it is from the buckets.
pub const fn last_slot(tally: u8) -> u32 {
    LAST + 8 * tally as u32
}

/// Where it notes how much was added.
pub const fn last_amount(tally: u8) -> u32 {
    AMOUNTS + 8 * tally as u32
}

/// Where it says which buckets a tally's table has: the mask of the places in it where keys are looked for first.
pub const fn mask(tally: u8) -> u32 {
    MASKS + 8 * tally as u32
}

/// The mask of a table of so many bytes.
pub const fn mask_of(bytes: u32) -> u32 {
    (bytes - 1) & !(BUCKET_BYTES - 1) | FIRST_SLOTS
}

/// How many bytes a table has that has such a mask, whoever wrote it. Without one, it is a bucket.
pub fn bytes_of(mask: u32) -> u32 {
    let bytes = mask.checked_next_power_of_two();
    let bytes = bytes.unwrap_or(FETCH_TABLE_BYTES);
    bytes.clamp(BUCKET_BYTES, FETCH_TABLE_BYTES)
}

/// Where a key is looked for first in a table with this mask, by one or another kind of probe. `by`: what it is
/// told apart by besides.
pub fn first_places(key: u64, by: u64, mask: u32) -> [u32; 3] {
    let mixer = i64::from(MIXER).cast_unsigned();
    let third = (by.rotate_left(25) ^ key)
        .wrapping_mul(mixer)
        .wrapping_mul(mixer);
    [
        key.wrapping_mul(mixer) >> TO_LOW_PLACES,
        key.wrapping_mul(WIDE_MIXER) >> TO_PLACES,
        third >> TO_PLACES,
    ]
    .map(|it| it as u32 & mask)
}

/// Where the bucket ends that a place is in.
pub fn end_of_bucket(place: u32) -> u32 {
    (place | (BUCKET_BYTES - 1)) + 1
}

/// Where a tally's table is.
pub const fn table(tally: u8) -> u32 {
    TABLES + tally as u32 * (DIRECT_BYTES + TABLE_BYTES)
}

/// Where its buckets are. Slots are told by how far they are from there.
fn buckets_of(probe: &KeyedProbe) -> u32 {
    match probe.is_fetch {
        true => FETCH_TABLE,
        false => table(probe.tally) + DIRECT_BYTES,
    }
}

/// The word that keeps a thread's third register; and its flags, as `lahf` and `seto al` tell them.
pub const THIRD_SCRATCH: u32 = THIRD;
/// See [`THIRD_SCRATCH`].
pub const FLAGS_SCRATCH: u32 = FLAGS;

/// The word that says where the text is that a thread counts.
pub const TEXT_START: u32 = TEXT;

/// The word that says where no more of it is looked at.
pub const TEXT_LIMIT: u32 = TEXT_END;

/// Where the hash of a text begins.
const SEED: u64 = 0x6865_6164_636f_756e;

/// Spreads keys over buckets, and bytes of texts over hashes.
const MIXER: i32 = 0x9e37_79b9_u32.cast_signed();

/// Spreads keys over buckets by itself, in the upper bits of a product.
const WIDE_MIXER: u64 = 0x9e37_79b9_7f4a_7c15;

/// How far down the upper bits of a product go, to be places of buckets.
const TO_PLACES: u32 = 64 - MOST_TABLE_LOG;

/// How far down those bits go of a product of half a word that are decided by the low bits of the other factor.
const TO_LOW_PLACES: u32 = 20;

/// What a text is counted by: of these bytes, all before a zero.
pub fn hash(text: &[u8]) -> u64 {
    let mixer = i64::from(MIXER).cast_unsigned();
    let bytes = text.iter().take_while(|it| **it != 0);
    bytes.fold(SEED, |hash, byte| {
        let mixed = (hash ^ u64::from(*byte)).wrapping_mul(mixer);
        mixed.swap_bytes()
    })
}

/// What goes on with a key that says that something could not be read.
pub(crate) struct Unreadable {
    /// The instructions that may fault.
    faults: Vec<u32>,
    /// Is the caller known there, if callers are told apart?
    has_caller: bool,
    /// Where the key is looked up, or its slot is known.
    lookup: u32,
    probe: KeyedProbe,
    hands: Hands,
    state: State,
    undo: Undo,
}

/// What there is to jump over.
#[derive(Clone, Copy)]
struct Short(usize);

/// Emits instructions between which a thread has done the same of the original.
struct Work<'e, 'a> {
    to: &'e mut Emitter<'a>,
    state: State,
    undo: Undo,
    faults: Vec<u32>,
    hands: Hands,
}

impl Emitter<'_> {
    /// The keyed probes of an instruction. What a thread has done behind them.
    pub(crate) fn keyed(
        &mut self,
        probes: &[KeyedProbe],
        is_careful: bool,
        free: Registers,
        state: State,
    ) -> Result<State, CannotCopy> {
        let has_third = is_careful || !probes.iter().all(is_plain);
        let in_free = || Hands::free(probes, has_third, free);
        let in_free = if is_careful { None } else { in_free() };
        let mut work = Work {
            to: self,
            state,
            undo: Undo::Nothing,
            faults: Vec::new(),
            hands: in_free.unwrap_or(Hands::kept(has_third)),
        };
        if in_free.is_none() {
            work.save(is_careful)?;
        }
        for probe in probes {
            work.probe(probe)?;
        }
        if in_free.is_none() {
            work.restore(is_careful)?;
        }
        Ok(work.state)
    }

    /// What unreadable keys lead to.
    pub(crate) fn unreadables(&mut self) -> Result<(), CannotCopy> {
        for it in std::mem::take(&mut self.unreadables) {
            let here = self.code.len() as u32;
            self.faults.extend(it.faults.iter().map(|at| (*at, here)));
            let mut work = Work {
                to: self,
                state: it.state,
                undo: it.undo,
                faults: Vec::new(),
                hands: it.hands,
            };
            work.no_number(&it.probe, KeyKind::Unreadable, it.has_caller)?;
            work.step();
            work.to.jump(Goal::Here(it.lookup));
        }
        Ok(())
    }
}

impl Work<'_, '_> {
    fn step(&mut self) {
        self.to.spot(self.state, self.undo);
    }

    fn put(&mut self, instruction: Result<Instruction, IcedError>) -> Result<(), CannotCopy> {
        self.step();
        let mut encoder = Encoder::new(64);
        let encoded = instruction.and_then(|it| encoder.encode(&it, self.to.here()));
        encoded.map_err(|_| CannotCopy::OutOfReach)?;
        self.to.code.extend(encoder.take_buffer());
        Ok(())
    }

    /// An instruction on two registers, or on one of them and memory.
    fn on(&mut self, code: Code, to: Register, from: Register) -> Result<(), CannotCopy> {
        self.put(Instruction::with2(code, to, from))
    }

    fn load(&mut self, to: Register, from: MemoryOperand) -> Result<(), CannotCopy> {
        self.put(Instruction::with2(Code::Mov_r64_rm64, to, from))
    }

    fn store(&mut self, to: MemoryOperand, from: Register) -> Result<(), CannotCopy> {
        self.put(Instruction::with2(Code::Mov_rm64_r64, to, from))
    }

    fn number(&mut self, to: Register, number: u64) -> Result<(), CannotCopy> {
        self.put(constant(to, number))
    }

    fn save(&mut self, is_careful: bool) -> Result<(), CannotCopy> {
        self.store(word(0), Register::RAX)?;
        self.store(word(event_counter::SCRATCH), Register::RCX)?;
        if self.hands.by.is_none() {
            self.undo = Undo::RestoreRaxAndRcx;
            return Ok(());
        }
        self.store(word(THIRD), Register::RDX)?;
        if is_careful {
            self.put(Ok(Instruction::with(Code::Lahf)))?;
            self.undo = Undo::RestoreThree;
            self.put(Instruction::with1(Code::Seto_rm8, Register::AL))?;
            self.store(word(FLAGS), Register::RAX)?;
            self.undo = Undo::RestoreThreeAndFlags;
        }
        if !is_careful {
            self.undo = Undo::RestoreThree;
        }
        Ok(())
    }

    fn restore(&mut self, is_careful: bool) -> Result<(), CannotCopy> {
        if is_careful {
            self.load(Register::RAX, word(FLAGS))?;
            // The overflow flag again, if there was one.
            self.put(Instruction::with2(Code::Add_AL_imm8, Register::AL, 0x7f))?;
            self.put(Ok(Instruction::with(Code::Sahf)))?;
        }
        if self.hands.by.is_some() {
            self.load(Register::RDX, word(THIRD))?;
        }
        self.load(Register::RCX, word(event_counter::SCRATCH))?;
        self.load(Register::RAX, word(0))
    }

    fn probe(&mut self, probe: &KeyedProbe) -> Result<(), CannotCopy> {
        if let Some(caller) = &probe.caller {
            self.evaluate(caller, 0)?;
            self.store(word(CALLER), self.hands.key)?;
        }
        let of_caller = std::mem::take(&mut self.faults);
        if let Some(amount) = &probe.amount {
            self.evaluate(amount, 0)?;
            self.store(word(last_amount(probe.tally)), self.hands.key)?;
        }
        let has_caller = probe.caller.is_some();
        match &probe.key {
            KeyOf::Number(key) => {
                self.evaluate(key, 0)?;
                if probe.direct.is_none() {
                    self.told_apart(fixed(probe, KeyKind::Number), has_caller)?;
                }
            }
            KeyOf::Text(address, bytes) => {
                self.text(address, *bytes)?;
                self.told_apart(fixed(probe, KeyKind::Number), has_caller)?;
            }
            KeyOf::Only(kind) => {
                self.put(zero(self.hands.key))?;
                self.told_apart(fixed(probe, *kind), has_caller)?;
            }
            KeyOf::Target(target) => {
                self.evaluate(target, 0)?;
                let behind = self.to.here().wrapping_add(7);
                self.step();
                let at = probe.at.0;
                self.to.put_distance(&[0x48, 0x8d, 0x15], at, behind)?; // lea rdx, [rip + distance]
                self.put(Instruction::with2(
                    Code::Shl_rm64_imm8,
                    Register::RDX,
                    ADDRESS_SHIFT,
                ))?;
            }
        }
        if let Some((least, end)) = probe.within
            && probe.direct.is_none()
        {
            self.limit(least, end)?;
        }
        let mut lookup = self.to.code.len() as u32;
        if let Some(direct) = probe.direct {
            self.slot_of(probe, direct)?;
            lookup = self.to.code.len() as u32;
        }
        let others = std::mem::take(&mut self.faults);
        for (faults, has_caller) in [(of_caller, false), (others, has_caller)] {
            if !faults.is_empty() && !is_sure(probe) {
                self.to.unreadables.push(Unreadable {
                    faults,
                    has_caller,
                    lookup,
                    probe: probe.clone(),
                    hands: self.hands,
                    state: self.state,
                    undo: self.undo,
                });
            }
        }
        if probe.direct.is_none() {
            self.look_up(probe)?;
        }
        self.commit(probe)
    }

    /// Hashes the text at an address, as [`hash`] does.
    fn text(&mut self, address: &Expression, bytes: u32) -> Result<(), CannotCopy> {
        use Register::{ECX, RAX, RCX, RDX};
        self.evaluate(address, 0)?;
        self.store(word(TEXT), RAX)?;
        self.on(Code::Mov_r64_rm64, RDX, RAX)?;
        self.put(Instruction::with2(Code::Add_RAX_imm32, RAX, bytes))?;
        self.store(word(TEXT_END), RAX)?;
        self.number(RAX, SEED)?;
        let again = self.to.code.len();
        self.faults.push(again as u32);
        let first = MemoryOperand::with_base(RDX);
        self.put(Instruction::with2(Code::Movzx_r32_rm8, ECX, first))?;
        self.on(Code::Test_rm32_r32, ECX, ECX)?;
        let is_over = self.skip(0x74); // je
        self.on(Code::Xor_r64_rm64, RAX, RCX)?;
        let mixed = Instruction::with3(Code::Imul_r64_rm64_imm32, RAX, RAX, MIXER);
        self.put(mixed)?;
        self.put(Instruction::with1(Code::Bswap_r64, RAX))?;
        self.put(Instruction::with1(Code::Inc_rm64, RDX))?;
        self.put(Instruction::with2(Code::Cmp_r64_rm64, RDX, word(TEXT_END)))?;
        self.back(0x75, again); // jne
        self.land(is_over);
        Ok(())
    }

    /// What a key is told apart by besides, in its register.
    fn told_apart(&mut self, fixed: u16, has_caller: bool) -> Result<(), CannotCopy> {
        match self.hands.by {
            Some(by) if has_caller => {
                self.load(by, word(CALLER))?;
                self.put(Instruction::with2(Code::Shl_rm64_imm8, by, ADDRESS_SHIFT))?;
                self.put(Instruction::with2(
                    Code::Or_rm64_imm32,
                    by,
                    i32::from(fixed),
                ))
            }
            Some(by) => self.number(by, fixed.into()),
            // It is a number in the instructions that look for it.
            None => Ok(()),
        }
    }

    /// A key that is no number.
    fn no_number(
        &mut self,
        probe: &KeyedProbe,
        kind: KeyKind,
        has_caller: bool,
    ) -> Result<(), CannotCopy> {
        self.put(zero(self.hands.key))?;
        if probe.amount.is_some() {
            self.store(word(last_amount(probe.tally)), self.hands.key)?;
        }
        match probe.direct {
            Some(direct) => self.slot_beside(probe, direct, kind),
            None => self.told_apart(fixed(probe, kind), has_caller),
        }
    }

    /// Keys outside of a range are two only.
    fn limit(&mut self, least: i64, end: i64) -> Result<(), CannotCopy> {
        let Hands { key, slot, .. } = self.hands;
        self.number(slot, least.cast_unsigned())?;
        self.on(Code::Cmp_r64_rm64, key, slot)?;
        let is_not_below = self.skip(0x7d); // jge
        self.is_beyond(KeyKind::Below)?;
        let is_below = self.skip(0xeb); // jmp
        self.land(is_not_below);
        self.number(slot, end.cast_unsigned())?;
        self.on(Code::Cmp_r64_rm64, key, slot)?;
        let is_within = self.skip(0x7c); // jl
        self.is_beyond(KeyKind::Above)?;
        self.land(is_below);
        self.land(is_within);
        Ok(())
    }

    fn is_beyond(&mut self, kind: KeyKind) -> Result<(), CannotCopy> {
        let Hands { key, by, .. } = self.hands;
        let by = by.ok_or(CannotCopy::WrongPlan)?;
        self.put(Instruction::with2(Code::Or_rm64_imm8, by, kind as i32))?;
        self.put(zero(key))
    }

    /// Where in the table that there is now a key is looked for first: all of its bits have a part in that, but
    /// that of addresses, of which the lower ones tell them apart.
    fn place(&mut self, probe: &KeyedProbe) -> Result<(), CannotCopy> {
        let Hands { key, slot, by, .. } = self.hands;
        let mix = |from| Instruction::with3(Code::Imul_r64_rm64_imm32, slot, from, MIXER);
        let to_places = match by {
            Some(by) => {
                self.on(Code::Mov_r64_rm64, slot, by)?;
                self.put(Instruction::with2(Code::Rol_rm64_imm8, slot, 25))?;
                self.on(Code::Xor_r64_rm64, slot, key)?;
                self.put(mix(slot))?;
                self.put(mix(slot))?;
                TO_PLACES
            }
            None if probe.is_fetch => {
                self.put(mix(key))?;
                TO_LOW_PLACES
            }
            None => {
                self.number(slot, WIDE_MIXER)?;
                self.on(Code::Imul_r64_rm64, slot, key)?;
                TO_PLACES
            }
        };
        self.put(Instruction::with2(Code::Shr_rm64_imm8, slot, to_places))?;
        let (slot, buckets) = (slot.full_register32(), word(mask(probe.tally)));
        self.put(Instruction::with2(Code::And_r32_rm32, slot, buckets))
    }

    /// Finds the slot of the key, and of what it is told apart by: how far it is in the table.
    fn look_up(&mut self, probe: &KeyedProbe) -> Result<(), CannotCopy> {
        let Hands { key, slot, .. } = self.hands;
        let field = |offset: u32| slot_field(slot, buckets_of(probe) + offset);
        let by = i32::from(fixed(probe, KeyKind::Number));
        let placing = self.to.code.len();
        self.place(probe)?;
        let again = self.to.code.len();
        self.put(Instruction::with2(Code::Cmp_r64_rm64, key, field(0)))?;
        let is_other = self.skip(0x75); // jne
        self.put(match self.hands.by {
            Some(by) => Instruction::with2(Code::Cmp_r64_rm64, by, field(8)),
            None => Instruction::with2(Code::Cmp_rm64_imm32, field(8), by),
        })?;
        let is_it = self.skip(0x74); // je
        self.land(is_other);
        let count = field(SLOT_COUNT);
        self.put(Instruction::with2(Code::Cmp_rm64_imm8, count, 0))?;
        let is_empty = self.skip(0x74); // je
        let (slot, in_bucket) = (slot.full_register32(), (BUCKET_BYTES - 1) as i32);
        self.put(Instruction::with2(
            Code::Add_rm32_imm8,
            slot,
            SLOT_BYTES as i32,
        ))?;
        self.put(Instruction::with2(Code::Test_rm32_imm32, slot, in_bucket))?;
        self.back(0x75, again); // jnz
        self.step();
        self.to.full_tables.push(self.to.code.len() as u32);
        self.to.code.push(0xcc); // int3
        // There are more buckets now.
        self.back(0xeb, placing); // jmp
        self.land(is_empty);
        if matches!(probe.key, KeyOf::Text(..)) {
            self.step();
            self.to.new_texts.push(self.to.code.len() as u32);
            self.to.code.push(0xcc); // int3
        }
        self.store(field(0), key)?;
        match self.hands.by {
            Some(by) => self.store(field(8), by)?,
            None => self.put(Instruction::with2(Code::Mov_rm64_imm32, field(8), by))?,
        }
        self.land(is_it);
        Ok(())
    }

    /// Adds to the slot.
    fn commit(&mut self, probe: &KeyedProbe) -> Result<(), CannotCopy> {
        let Hands { key, slot, .. } = self.hands;
        let field = |offset: u32| slot_field(slot, buckets_of(probe) + offset);
        self.store(word(last_slot(probe.tally)), slot)?;
        self.put(Instruction::with1(Code::Inc_rm64, field(SLOT_COUNT)))?;
        self.state = self.state.tallied();
        if probe.amount.is_some() {
            self.load(key, word(last_amount(probe.tally)))?;
            self.put(Instruction::with2(
                Code::Add_rm64_r64,
                field(SLOT_AMOUNT),
                key,
            ))?;
        }
        self.state = self.state.tallied();
        Ok(())
    }

    /// A short jump forwards.
    fn skip(&mut self, code: u8) -> Short {
        self.step();
        self.to.code.extend([code, 0]);
        Short(self.to.code.len())
    }

    /// Where it leads.
    fn land(&mut self, from: Short) {
        self.to.code[from.0 - 1] = (self.to.code.len() - from.0) as u8;
    }

    /// A short jump backwards.
    fn back(&mut self, code: u8, to: usize) {
        self.step();
        let distance = to as i64 - (self.to.code.len() as i64 + 2);
        self.to.code.extend([code, distance as u8]);
    }
}

/// What a key is told apart by besides, but for addresses.
fn fixed(probe: &KeyedProbe, kind: KeyKind) -> u16 {
    probe.place << PLACE_SHIFT | kind as u16
}

/// Does a probe look for one key, of numbers that can be computed with one register more, and without a fault?
fn is_plain(probe: &KeyedProbe) -> bool {
    // What cannot be read has a slot there.
    let is_sure = probe.direct.is_some() || is_sure(probe);
    let is_plain_key = match &probe.key {
        KeyOf::Number(key) => is_simple(key, is_sure),
        KeyOf::Only(kind) => *kind == KeyKind::Number,
        KeyOf::Text(..) | KeyOf::Target(_) => false,
    };
    is_plain_key
        && probe.caller.is_none()
        && (probe.within.is_none() || probe.direct.is_some())
        && probe
            .amount
            .as_ref()
            .is_none_or(|it| is_simple(it, is_sure))
}

/// Can everything surely be read that it looks at?
fn is_sure(probe: &KeyedProbe) -> bool {
    probe.free != 0
}

/// Puts a number into a register, in as few bytes as it takes; flags stay.
fn constant(to: Register, number: u64) -> Result<Instruction, IcedError> {
    if let Ok(number) = u32::try_from(number) {
        return Instruction::with2(Code::Mov_r32_imm32, to.full_register32(), number);
    }
    match i32::try_from(number.cast_signed()) {
        Ok(number) => Instruction::with2(Code::Mov_rm64_imm32, to, number),
        Err(_) => Instruction::with2(Code::Mov_r64_imm64, to, number),
    }
}

fn zero(register: Register) -> Result<Instruction, IcedError> {
    let register = register.full_register32();
    Instruction::with2(Code::Xor_r32_rm32, register, register)
}

/// A word of the window.
fn word(offset: u32) -> MemoryOperand {
    absolute(Register::GS, offset)
}

fn absolute(segment: Register, offset: u32) -> MemoryOperand {
    let none = Register::None;
    MemoryOperand::new(none, none, 1, offset.into(), 8, false, segment)
}

/// A word of the slot that a register says.
fn slot_field(slot: Register, offset: u32) -> MemoryOperand {
    let none = Register::None;
    MemoryOperand::new(slot, none, 1, offset.into(), 8, false, Register::GS)
}
