//! Memory for a moment: the program's stack may be short, and its heap is not ours.

use super::kernel;

pub struct Scratch {
    address: u64,
    length: usize,
}

impl Scratch {
    pub fn new(length: usize) -> Option<Scratch> {
        let flags = kernel::MAP_PRIVATE | kernel::MAP_ANONYMOUS;
        // SAFETY: the kernel chooses a free place.
        let address = unsafe { kernel::map(0, length as u64, flags, None) }.ok()?;
        Some(Scratch { address, length })
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `new` mapped this many bytes, `drop` unmaps them, and `self` is borrowed.
        unsafe { core::slice::from_raw_parts_mut(self.address as *mut u8, self.length) }
    }

    pub fn words(&mut self) -> &mut [u64] {
        // SAFETY: as in `bytes`; pages are aligned.
        unsafe { core::slice::from_raw_parts_mut(self.address as *mut u64, self.length / 8) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: nobody can hold a part of it any longer.
        unsafe { kernel::unmap(self.address, self.length as u64) };
    }
}
