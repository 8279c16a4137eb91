//! How does a thread get a lane in which all its modules have a slot?

use core::mem::offset_of;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use headcount_wire::{PAGE, SLOT_HEADER_BYTES, SlotHeader, failure, slot_state};

use super::delta;
use super::file;
use super::kernel::{self, Path};
use super::lane::{Lane, Thread};
use super::module::{Module, counts_here};
use super::registration::Registration;
use super::scratch::Scratch;
use super::table::{Standing, Table};

/// Dead threads' lanes to look for before a fresh one is taken: enough to keep up with a program
/// that makes threads for ever, few enough not to be noticed by one that has thousands.
const LOOKS: usize = 8;
/// Fresh lanes to try in a family before the next family is tried.
const TRIES: usize = 32;

/// Memory of ours that is as large as a slot.
#[derive(Clone, Copy)]
pub struct Place {
    pub address: u64,
    pub bytes: u64,
}

/// The range is not free, or outside what can be reached: another lane may do.
struct Unfit;

/// Sees to it that the calling thread counts this module, and only itself, from here on. Says
/// whether that is settled for good.
pub fn settle(table: &'static Table, module: &'static Module, number: usize) -> bool {
    let Ok(me) = Thread::current() else {
        module.fail(failure::THREAD_LOST);
        return true;
    };
    if table.is_inherited() {
        adopt(table, &me);
    }
    match table.standing(&me) {
        Standing::Owns(lane) if furnish(table, lane, number, &me).is_ok() => true,
        Standing::Owns(lane) => move_out(table, module, number, Some(lane), &me),
        Standing::New => move_out(table, module, number, None, &me),
        // The thread that lent us its memory will come back to its lane: only that lane will do.
        Standing::Borrows(Some(lane)) if furnish_for_lender(table, lane, number, &me) => true,
        Standing::Borrows(_) => {
            module.fail(failure::THREAD_LOST);
            table.leave_lanes();
            false
        }
        Standing::Lost => {
            module.fail(failure::THREAD_LOST);
            true
        }
        Standing::Foreign => {
            module.fail(failure::GS_IN_USE);
            true
        }
    }
}

/// The slot is to be the lender's: it will outlive us.
fn furnish_for_lender(table: &Table, lane: usize, number: usize, me: &Thread) -> bool {
    let lender = table.lane(lane).map(|lane| lane.lender(me));
    lender.is_some_and(|lender| furnish(table, lane, number, &lender).is_ok())
}

/// Takes a lane where the module fits, and with it everything the thread had in its old lane.
/// (The old lane's slots stay behind for another thread: counts are sums.)
fn move_out(
    table: &'static Table,
    module: &Module,
    number: usize,
    old: Option<usize>,
    me: &Thread,
) -> bool {
    let fits = |lane: &usize| {
        let before = old.and_then(|old| table.lane(old));
        let result = before
            .into_iter()
            .flat_map(Lane::current_modules)
            .filter(|module| {
                !table
                    .registration(*module)
                    .is_none_or(Registration::is_gone)
            })
            .chain([number])
            .try_for_each(|module| furnish(table, *lane, module, me))
            .and_then(|()| table.enter_lane(*lane, me).map_err(|_| Unfit));
        if let (Err(_), Some(lane)) = (&result, table.lane(*lane)) {
            lane.release();
        }
        result.is_ok()
    };
    let reachable = |lane: usize| reach(table, lane, number).is_ok();
    let dead = (0..LOOKS).filter_map(|_| table.take_next_if_dead(me));
    let fresh = table.families().flat_map(|family| {
        (0..TRIES)
            .take_while(move |_| reachable(table.next_fresh(family)))
            .filter_map(move |_| table.take_fresh(family, me))
    });
    let found = dead.chain(fresh).find(fits);
    match (found, old) {
        (Some(_), old) => old
            .and_then(|old| table.lane(old))
            .into_iter()
            .for_each(Lane::release),
        (None, old) => lose(table, module, old, me),
    }
    true
}

/// The table has no room for this module: a thread that comes to it is counted nowhere.
pub fn give_up(table: &'static Table, module: &'static Module) -> bool {
    if let Ok(me) = Thread::current() {
        let old = match table.standing(&me) {
            Standing::Owns(lane) => Some(lane),
            Standing::New => None,
            _ => return true,
        };
        lose(table, module, old, &me);
    }
    true
}

/// There is no place for this thread: it counts in place, together with all others like it.
fn lose(table: &Table, module: &Module, old: Option<usize>, me: &Thread) {
    module.fail(failure::THREAD_LOST);
    table.leave_lanes();
    let lane = old.or_else(|| {
        table
            .families()
            .find_map(|family| table.take_fresh(family, me))
    });
    if let Some(lane) = lane {
        lose_lane(table, lane, me);
    }
}

/// The owner of this lane is counted nowhere from here on, in no module.
fn lose_lane(table: &Table, number: usize, me: &Thread) {
    table.leave_lanes();
    for module in table
        .lane(number)
        .into_iter()
        .flat_map(Lane::current_modules)
    {
        lose_module(table, module);
    }
    table.lose(number, me);
}

fn lose_module(table: &Table, number: usize) {
    if let Some(module) = table.registration(number).and_then(Registration::module) {
        module.fail(failure::THREAD_LOST);
    }
}

/// Where a module's slot lies in a lane.
fn reach(table: &Table, lane: usize, number: usize) -> Result<Place, Unfit> {
    let registration = table.registration(number).ok_or(Unfit)?;
    let (start, end) = registration.range();
    delta::moved(start, end, delta::delta(lane), table.ceiling())
        .map(|address| Place {
            address,
            bytes: end - start,
        })
        .ok_or(Unfit)
}

/// Makes sure that a module has a slot in a lane of the calling thread's.
fn furnish(table: &Table, lane_number: usize, number: usize, me: &Thread) -> Result<(), Unfit> {
    let place = reach(table, lane_number, number)?;
    let lane = table.lane(lane_number).ok_or(Unfit)?;
    let header = place.address as *mut SlotHeader;
    if lane.is_current(number) {
        let owner = counts_here(me.process, me.thread);
        // SAFETY: `current` says that a slot is mapped there. A reader may look at it.
        unsafe { AtomicU64::from_ptr((&raw mut (*header).pid).cast()) }.store(owner, Relaxed);
        return Ok(());
    }
    take_memory(place, lane.is_mapped(number))?;
    lane.set_mapped(number, true);
    if let Some(module) = table.registration(number).and_then(Registration::module) {
        if module.has_file() && file::map_slot(module, place, me).is_err() {
            module.fail(failure::THREAD_IN_MEMORY);
            // What failed half-way may have unmapped what was there.
            take_memory(place, true)?;
        }
        // SAFETY: mapped just now.
        unsafe { module.head_slot(header, me.process, me.thread) };
        move_counts(module, place);
    }
    lane.set_current(number, true);
    Ok(())
}

/// Makes a slot that was just mapped ours, if it still is the one's who had it before.
pub fn change_owner(place: Place, before: u64, me: &Thread) -> bool {
    let owner = (place.address + offset_of!(SlotHeader, pid) as u64) as *mut u64;
    // SAFETY: the slot is mapped. Others may be after it too, hence the atomic.
    unsafe { AtomicU64::from_ptr(owner) }
        .compare_exchange(before, counts_here(me.process, me.thread), Relaxed, Relaxed)
        .is_ok()
}

/// Maps zeros, for good if there is no file. Over what is ours already, or where nothing is.
fn take_memory(place: Place, ours: bool) -> Result<(), Unfit> {
    let flags = kernel::MAP_PRIVATE | kernel::MAP_ANONYMOUS;
    let result = match ours {
        false => kernel::map_if_free(place.address, place.bytes, kernel::MAP_NORESERVE),
        // SAFETY: the caller says that it is ours.
        true => unsafe {
            kernel::map(place.address, place.bytes, flags | kernel::MAP_FIXED, None).map(drop)
        },
    };
    result.map_err(|_| Unfit)
}

/// Pages of counters that are cheaper to read than to ask about.
const FEW_PAGES: usize = 16;

/// What was counted in place, before there was any lane, goes into the first slot.
fn move_counts(module: &Module, place: Place) {
    if module.moved.swap(1, Relaxed) != 0 {
        return;
    }
    let counters = module.counters.load(Relaxed) as usize;
    let pages = (counters * 8).div_ceil(PAGE);
    let first_page = module.start.load(Relaxed) / PAGE as u64;
    let mut scratch = (pages > FEW_PAGES)
        .then(|| Scratch::new(pages * 8))
        .flatten();
    let touched = scratch
        .as_mut()
        .and_then(|scratch| pages_touched(first_page, scratch));
    for page in 0..pages {
        if touched.is_none_or(|touched| touched.get(page).is_none_or(|state| is_there(*state))) {
            let first = page * (PAGE / 8);
            move_some(module, place, first..counters.min(first + PAGE / 8));
        }
    }
}

/// What `/proc/self/pagemap` says of the counters' pages: a program may have millions of counters
/// and have come to none.
fn pages_touched(first_page: u64, scratch: &mut Scratch) -> Option<&[u64]> {
    let path = Path::new(b"/proc/self/pagemap\0")?;
    let file = kernel::open(path, kernel::O_RDONLY | kernel::O_CLOEXEC).ok()?;
    let pages = scratch.words();
    kernel::read_at(&file, pages, first_page * 8).ok()?;
    Some(pages)
}

/// Whether a page is in memory or in swap (bits 63 and 62). All others are zero still.
fn is_there(page: u64) -> bool {
    page >> 62 != 0
}

fn move_some(module: &Module, place: Place, counters: Range<usize>) {
    let from = module.start.load(Relaxed) as *mut u64;
    let to = (place.address + SLOT_HEADER_BYTES as u64) as *mut u64;
    for counter in counters {
        // SAFETY: the module's counters are there as long as it is; the slot has as many. Another
        // thread that cannot have a lane may be counting, hence atomics.
        let (from, to) = unsafe {
            (
                AtomicU64::from_ptr(from.add(counter)),
                AtomicU64::from_ptr(to.add(counter)),
            )
        };
        if from.load(Relaxed) != 0 {
            to.fetch_add(from.swap(0, Relaxed), Relaxed);
        }
    }
}

/// In a forked child: new slots, at the same place, for all modules the thread counts. Until this
/// is done the child counts in its parent's slots.
pub fn adopt(table: &'static Table, me: &Thread) {
    let Some((number, lane, was_lost)) = table.inherit(me) else {
        return;
    };
    let mut is_lost = was_lost;
    for module in lane.current_modules() {
        lane.set_current(module, false);
        if was_lost || furnish(table, number, module, me).is_err() {
            is_lost = true;
            lose_module(table, module);
        }
    }
    if is_lost {
        lose_lane(table, number, me);
    }
}

/// Marks this process's slots of a module as left in good order.
pub fn mark_exited(table: &Table, number: usize) {
    let generation = table.generation();
    for (lane_number, lane) in table.used_lanes() {
        let Ok(place) = reach(table, lane_number, number) else {
            continue;
        };
        if lane.is_of(generation) && lane.is_current(number) {
            let header = place.address as *mut SlotHeader;
            // SAFETY: `current` says that a slot is mapped there; its thread may be counting on.
            unsafe { AtomicU32::from_ptr(&raw mut (*header).state) }
                .store(slot_state::EXITED, Relaxed);
        }
    }
}
