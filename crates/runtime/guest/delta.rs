//! Which value of the gs base belongs to which lane?
//!
//! A probe adds one to `gs base + address of its counter`. Each thread counts in a *lane* of its
//! own: lane n lies `delta(n)` away from every module's counters. The deltas form families, so
//! that where one part of the address space is taken, another may serve: the negative ones for
//! programs and libraries at high addresses (nothing lives far below them), the positive ones
//! for programs linked at a low fixed address, or for kernels without `wrgsbase`, where a
//! negative base cannot be set at all.

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// From one lane of a family to the next.
const STEP: u64 = 64 << 20;
/// The same, for the family of last resort.
const SHORT_STEP: u64 = 1 << 20;
/// Lanes a family has.
pub const FAMILY_LANES: usize = 2048;
/// How many families there are.
pub const FAMILIES: usize = 9;
/// The first family whose deltas are positive.
pub const POSITIVE: usize = 4;
/// How many lanes there are.
pub const LANES: usize = FAMILIES * FAMILY_LANES;

/// Nothing is mapped below: the kernel keeps the first pages for itself.
const LOWEST: u64 = 1 << 20;
/// Counters below this address are out of reach for every negative delta.
pub const LOW: u64 = 64 * GIB + LOWEST;

/// The distance of a family's first lane. (A function, not a table: a table would have to be
/// indexed, and an index out of range would have to be reported.)
const fn base(family: usize) -> u64 {
    match family {
        0 => (64 * GIB).wrapping_neg(),
        1 => TIB.wrapping_neg(),
        2 => (8 * TIB).wrapping_neg(),
        3 => (24 * TIB).wrapping_neg(),
        // Room for 16 GiB of heap above a program at a fixed address.
        4 => 16 * GIB,
        5 => TIB,
        // Above AddressSanitizer's shadow, which ends 2 GiB above 16 TiB.
        6 => 20 * TIB,
        7 => 256 * GIB,
        // For a program at a fixed address whose libraries lie close below the stack (as without
        // address space randomization): there are about 100 MiB between them, no more.
        _ => 16 << 20,
    }
}

const fn step(family: usize) -> u64 {
    match family {
        0..8 => STEP,
        _ => SHORT_STEP,
    }
}

/// How far lane `lane` lies from the counters themselves (modulo 2^64).
pub fn delta(lane: usize) -> u64 {
    let family = lane / FAMILY_LANES;
    let distance = (lane % FAMILY_LANES) as u64 * step(family);
    match family < POSITIVE {
        true => base(family).wrapping_sub(distance),
        false => base(family).wrapping_add(distance),
    }
}

/// The lane whose delta this is.
pub fn lane(gs_base: u64) -> Option<usize> {
    (0..FAMILIES).find_map(|family| {
        let from = gs_base.wrapping_sub(base(family));
        let distance = if family < POSITIVE {
            from.wrapping_neg()
        } else {
            from
        };
        let number = distance / step(family);
        (distance.is_multiple_of(step(family)) && number < FAMILY_LANES as u64)
            .then_some(family * FAMILY_LANES + number as usize)
    })
}

/// Where the range `start..end` comes to lie when moved by `delta`, if that is a place for it:
/// inside user space, and below `ceiling`, where the main stack may grow down to.
pub fn moved(start: u64, end: u64, delta: u64, ceiling: u64) -> Option<u64> {
    let (from, to) = (start.wrapping_add(delta), end.wrapping_add(delta));
    (LOWEST <= from && from < to && to <= ceiling).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_found_by_its_delta() {
        for number in 0..LANES {
            assert_eq!(lane(delta(number)), Some(number));
        }
    }

    #[test]
    fn other_values_are_no_lane() {
        for gs_base in [0, 1, SHORT_STEP, 16 * GIB + 8, 0x7fff_dead_b000, u64::MAX] {
            assert_eq!(lane(gs_base), None, "{gs_base:#x}");
        }
    }

    #[test]
    fn a_program_at_a_fixed_address_moves_up_only() {
        let (start, end, ceiling) = (0x40_3000, 0x40_5000, 0x7fff_0000_0000);
        assert_eq!(moved(start, end, delta(0), ceiling), None);
        let up = delta(POSITIVE * FAMILY_LANES);
        assert_eq!(moved(start, end, up, ceiling), Some(start + 16 * GIB));
    }

    #[test]
    fn nothing_is_moved_to_where_the_stack_may_grow() {
        let (start, end) = (0x7fff_0000_0000, 0x7fff_0000_2000);
        let up = delta(POSITIVE * FAMILY_LANES);
        assert_eq!(moved(start, end, up, start + 8 * GIB), None);
    }
}
