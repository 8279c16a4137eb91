//! Where do the counters live? In a file if one can be made, or else in memory.
//!
//! No descriptor is kept: the program must not see one. When a thread needs a slot, the file is
//! opened again by its path, and known again by its device and inode. Room on the disk is made
//! sure of before anything is mapped: a full disk must never become a SIGBUS of the program's.

use core::mem::offset_of;
use core::sync::atomic::Ordering::*;

use headcount_wire::{self as wire, FileHeader, HEADER_BYTES, PAGE, SlotHeader, failure};

use super::facts::{self, Text};
use super::kernel::{self, File, Path};
use super::lane::Thread;
use super::module::Module;
use super::scratch::Scratch;
use super::table::Table;
use super::{keep, linker, slot};

/// How much of a module's name goes into the name of its counter file.
const NAME_BYTES: usize = 100;

/// Makes the counter file, and returns its header, mapped in `room`; if there can be no file, a
/// header in memory that says so. Null if there is no memory either.
pub fn create(module: &Module, table: Option<&Table>, room: Option<u64>) -> *mut FileHeader {
    let Some(mut draft) = Scratch::new(HEADER_BYTES) else {
        return core::ptr::null_mut();
    };
    // SAFETY: zeros, which are a valid header, on a page boundary; the draft is ours alone.
    let header = unsafe { &mut *draft.bytes().as_mut_ptr().cast::<FileHeader>() };
    describe(module, header);
    let made = make(module, table, header);
    let mapped = match &made {
        Some(Made { file, status, .. }) => {
            module.device.store(status.device, Relaxed);
            module.inode.store(status.inode, Relaxed);
            map_header(room, kernel::MAP_SHARED, Some(file))
        }
        None => {
            header.failures |= failure::NO_FILE;
            map_header(room, kernel::MAP_PRIVATE | kernel::MAP_ANONYMOUS, None)
        }
    };
    let Ok(address) = mapped else {
        module.inode.store(0, Relaxed);
        return core::ptr::null_mut();
    };
    copy_header(header, address as *mut FileHeader);
    if let Some(Made { folder, .. }) = &made {
        // Last: whoever clears the folder knows from the header that the copy is needed.
        _ = keep::keep(folder, header);
    }
    address as *mut FileHeader
}

/// A new counter file, and the folder it is in.
struct Made {
    file: File,
    status: kernel::Status,
    folder: File,
}

/// Fills in everything about the module and its process.
fn describe(module: &Module, header: &mut FileHeader) {
    header.version = wire::VERSION;
    header.fingerprint = module.fingerprint.load(Relaxed);
    header.counters = module.counters.load(Relaxed);
    header.stride = module.stride();
    header.pid = kernel::process();
    header.created = kernel::now();
    if let Ok(id) = kernel::random() {
        header.id = id;
    }
    if let Ok(length) = kernel::read_file(b"/proc/self/cmdline\0", &mut header.command) {
        header.command_len = length as u32;
    }
    if let Some(mut scratch) = Scratch::new(4 * PAGE) {
        let text = scratch.bytes();
        if let Ok(length) = kernel::read_file(b"/proc/self/stat\0", text) {
            let ticks = text.get(..length).and_then(facts::start_ticks);
            header.start_ticks = ticks.unwrap_or(0);
        }
        header.path_len = module_path(text, &mut header.path).unwrap_or(0) as u32;
    }
    header.magic = wire::FILE_MAGIC;
}

/// The path of the module: of the file that this code is mapped from, in `/proc/self/maps`.
fn module_path(buffer: &mut [u8], into: &mut [u8]) -> Option<usize> {
    let address = module_path as *const () as u64;
    let maps = Path::new(b"/proc/self/maps\0")?;
    let maps = kernel::open(maps, kernel::O_RDONLY | kernel::O_CLOEXEC).ok()?;
    let mut filled = 0;
    loop {
        let bytes = kernel::read(&maps, buffer.get_mut(filled..)?).ok()?;
        if bytes == 0 {
            return None;
        }
        filled += bytes;
        let mut rest = buffer.get(..filled)?;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at_checked(end)?;
            if let Some(path) = facts::path_at(line, address) {
                let path = path.get(..into.len()).unwrap_or(path);
                return Text::new(into).bytes(path).length();
            }
            rest = after.get(1..)?;
        }
        // The beginning of a line: more of it comes with the next bytes.
        let begun = filled - rest.len();
        for from in begun..filled {
            let byte = *buffer.get(from)?;
            *buffer.get_mut(from - begun)? = byte;
        }
        filled -= begun;
    }
}

/// Makes an empty counter file with room for its header, and writes its path into the module.
fn make(module: &Module, table: Option<&Table>, header: &FileHeader) -> Option<Made> {
    let privileged = table.map_or_else(kernel::is_privileged, Table::is_privileged);
    if privileged || header.id == [0; 16] {
        return None;
    }
    // SAFETY: only called by the thread that is getting to know the module.
    let path = unsafe { module.path_to_write() };
    let (folder_length, chosen) = folder_path(table, path)?;
    *path.get_mut(folder_length)? = 0;
    let folder_path = Path::new(path)?;
    let never_follow = if chosen { 0 } else { kernel::O_NOFOLLOW };
    _ = kernel::make_folder(folder_path, 0o700);
    let flags = kernel::O_RDONLY | kernel::O_DIRECTORY | kernel::O_CLOEXEC | never_follow;
    let folder = kernel::open(folder_path, flags).ok()?;
    // A folder that another user put in our way would let them have our files.
    if !chosen && kernel::status(&folder).ok()?.owner != kernel::effective_user() {
        return None;
    }
    if let (Some(table), Some(path)) = (table, path.get(..folder_length)) {
        table.decide_folder(path);
    }

    let (folder_part, name) = path.split_at_mut_checked(folder_length + 1)?;
    file_name(header, wire::FILE_SUFFIX, name)?;
    *folder_part.last_mut()? = b'/';
    let name = Path::new(name)?;
    let flags = kernel::O_RDWR | kernel::O_CREAT | kernel::O_EXCL | kernel::O_NOFOLLOW;
    let file = kernel::open_at(Some(&folder), name, flags | kernel::O_CLOEXEC, 0o600).ok()?;
    let status = make_room(&file, 0, HEADER_BYTES as u64)
        .and_then(|()| kernel::change_mode(&file, 0o600))
        .and_then(|()| kernel::status(&file));
    if status.is_err() {
        kernel::remove_at(&folder, name);
    }
    Some(Made {
        file,
        status: status.ok()?,
        folder,
    })
}

/// Writes the absolute path of the folder for counter files; says its length, and whether the
/// user chose it.
fn folder_path(table: Option<&Table>, path: &mut [u8]) -> Option<(usize, bool)> {
    // Another module of this process was first, and made sure of it.
    if let Some(length) = table.and_then(|table| table.folder(path)) {
        return Some((length, true));
    }
    let chosen = chosen_folder();
    let folder = chosen.unwrap_or(wire::DEFAULT_FOLDER.as_bytes());
    let length = match folder.starts_with(b"/") {
        true => 0,
        false => kernel::current_folder(path).ok()?,
    };
    // The kernel says "(unreachable)" if there is no way from the root to where we are.
    if length > 0 && path.first() != Some(&b'/') {
        return None;
    }
    let mut text = Text::new(path.get_mut(length..)?);
    if length > 0 {
        text.bytes(b"/");
    }
    Some((length + text.bytes(folder).length()?, chosen.is_some()))
}

/// The value of HEADCOUNT_DIR.
fn chosen_folder() -> Option<&'static [u8]> {
    let mut setting = linker::environment();
    if setting.is_null() {
        return None;
    }
    loop {
        // SAFETY: the environment is a list of strings that ends with a null pointer.
        let text = unsafe { *setting };
        if text.is_null() {
            return None;
        }
        // SAFETY: a string ends with NUL, and was not yet changed by the program, or else
        // `setenv` made it another list.
        let text = unsafe { bytes_at(text) };
        let value = facts::value_of(text, wire::FOLDER_VARIABLE.as_bytes());
        if let Some(folder) = value.filter(|folder| !folder.is_empty()) {
            return Some(folder);
        }
        // SAFETY: the null pointer has not been reached.
        setting = unsafe { setting.add(1) };
    }
}

/// # Safety
/// There must be a NUL after `text`.
unsafe fn bytes_at(text: *const u8) -> &'static [u8] {
    let mut length = 0;
    // SAFETY: not past the NUL.
    while unsafe { *text.add(length) } != 0 {
        length += 1;
    }
    // SAFETY: all of them were just read.
    unsafe { core::slice::from_raw_parts(text, length) }
}

/// `<module>.<process>.<random><suffix>`
pub fn file_name(header: &FileHeader, suffix: &str, into: &mut [u8]) -> Option<usize> {
    let path = header.path.get(..header.path_len as usize)?;
    let name = match facts::base_name(path) {
        [] => b"unknown",
        name => name,
    };
    let random = header.id.get(..8)?;
    let mut text = Text::new(into);
    text.bytes(name.get(..NAME_BYTES).unwrap_or(name));
    text.bytes(b".")
        .decimal(header.pid)
        .bytes(b".")
        .hexadecimal(random);
    text.bytes(suffix.as_bytes()).bytes(b"\0").length()
}

/// Makes sure that writing to this part of the file cannot fail.
fn make_room(file: &File, offset: u64, bytes: u64) -> kernel::Result<()> {
    if offset.checked_add(bytes).is_none_or(is_too_long) {
        return Err(kernel::EFBIG);
    }
    match kernel::allocate(file, offset, bytes) {
        Err(kernel::EOPNOTSUPP | kernel::ENOSYS) => write_zeros(file, offset, bytes),
        result => result,
    }
}

/// Whether a file may not have so many bytes: the kernel would send SIGXFSZ.
pub fn is_too_long(bytes: u64) -> bool {
    bytes > kernel::limit(kernel::RLIMIT_FSIZE)
}

/// For file systems that cannot promise room, but keep what was written.
fn write_zeros(file: &File, offset: u64, bytes: u64) -> kernel::Result<()> {
    let mut zeros = Scratch::new(64 * PAGE).ok_or(kernel::ENOMEM)?;
    let zeros = zeros.bytes();
    let mut done = 0;
    while done < bytes {
        let part = zeros.get(..(bytes - done) as usize).unwrap_or(zeros);
        match kernel::write_at(file, part, offset + done)? {
            0 => return Err(kernel::EFBIG),
            written => done += written as u64,
        }
    }
    Ok(())
}

fn map_header(room: Option<u64>, flags: u32, file: Option<&File>) -> kernel::Result<u64> {
    let fixed = room.map_or(0, |_| kernel::MAP_FIXED);
    let (address, bytes) = (room.unwrap_or(0), HEADER_BYTES as u64);
    // SAFETY: the room in the table is this module's; without one, the kernel finds a place.
    unsafe { kernel::map(address, bytes, flags | fixed, file.map(|file| (file, 0))) }
}

/// The magic, which is the first word, comes last.
fn copy_header(from: &FileHeader, to: *mut FileHeader) {
    let (from, to) = ((&raw const *from).cast::<u64>(), to.cast::<u64>());
    for word in (0..size_of::<FileHeader>() / 8).rev() {
        // SAFETY: both are headers, which consist of whole words.
        unsafe { to.add(word).write_volatile(from.add(word).read()) };
    }
}

/// As many slots are handed out before any is used again, and as many as fit in so many bytes: up
/// to there the report can tell every process by itself.
const OWN_SLOTS: u32 = 64;
const OWN_BYTES: u64 = 32 << 20;
/// How many slots to look at for one that a dead process left.
const LOOKS: u32 = 8;

/// Puts a slot of the module's file over memory that was mapped for it: a new one, or one that a
/// process left that is dead.
pub fn map_slot(module: &Module, place: slot::Place, me: &Thread) -> kernel::Result<()> {
    let path = Path::new(module.path()).ok_or(kernel::EFAULT)?;
    let flags = kernel::O_RDWR | kernel::O_NOFOLLOW | kernel::O_CLOEXEC;
    let file = kernel::open(path, flags)?;
    let status = kernel::status(&file)?;
    if status.device != module.device.load(Relaxed) || status.inode != module.inode.load(Relaxed) {
        return Err(kernel::EACCES);
    }
    let slots = module.slots().ok_or(kernel::ENOMEM)?;
    let handed_out = slots.load(Relaxed);
    let is_long = u64::from(handed_out) * place.bytes > OWN_BYTES && handed_out > OWN_SLOTS;
    if is_long && take_over(&file, handed_out, place, me) {
        return Ok(());
    }
    let offset = slot_offset(slots.fetch_add(1, Relaxed), place);
    make_room(&file, offset, place.bytes)?;
    module.grow(offset + place.bytes);
    map_at(&file, offset, place)
}

fn slot_offset(number: u32, place: slot::Place) -> u64 {
    HEADER_BYTES as u64 + u64::from(number) * place.bytes
}

fn map_at(file: &File, offset: u64, place: slot::Place) -> kernel::Result<()> {
    let flags = kernel::MAP_SHARED | kernel::MAP_FIXED;
    // SAFETY: a `Place` is memory of ours.
    unsafe { kernel::map(place.address, place.bytes, flags, Some((file, offset))) }?;
    // Only counters of code that runs should cost anything.
    kernel::expect_no_order(place.address, place.bytes);
    Ok(())
}

/// Looks for a slot whose process is dead, and maps it. Its counts stay: they are part of the sum.
fn take_over(file: &File, handed_out: u32, place: slot::Place, me: &Thread) -> bool {
    const WORDS: usize = size_of::<SlotHeader>() / 8;
    const OWNER: usize = offset_of!(SlotHeader, pid) / 8;
    const NAMESPACE: usize = offset_of!(SlotHeader, namespace) / 8;
    let namespace = kernel::namespace();
    (0..LOOKS).any(|look| {
        // Numbers of processes follow one another, so that each looks somewhere else.
        let number = me.process.wrapping_mul(LOOKS).wrapping_add(look) % handed_out;
        let offset = slot_offset(number, place);
        let mut header = [0_u64; WORDS];
        if kernel::read_at(file, &mut header, offset).is_err() {
            return false;
        }
        let owner = header[OWNER];
        header[0] == wire::SLOT_MAGIC
            && namespace != 0
            && header[NAMESPACE] == namespace
            && !kernel::is_process_alive(owner as u32)
            && map_at(file, offset, place).is_ok()
            && slot::change_owner(place, owner, me)
    })
}
