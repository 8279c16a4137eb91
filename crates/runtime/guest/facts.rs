//! What do the kernel's texts say? (`/proc/self/maps`, `stat`, `auxv`, the environment.)
//!
//! Bytes in, values out: nothing here reads a file, and nothing can panic.

/// Keys of the auxiliary vector (`elf.h`).
pub mod key {
    pub const SECURE: u64 = 23;
    pub const RANDOM: u64 = 25;
    pub const HWCAP2: u64 = 26;
}

/// Bit of [`key::HWCAP2`]: user code may use `wrgsbase`.
pub const FSGSBASE: u64 = 1 << 1;

/// The value of a key in `/proc/self/auxv`: pairs of words.
pub fn auxiliary(auxv: &[u8], key: u64) -> Option<u64> {
    auxv.chunks_exact(16).find_map(|pair| {
        let (name, value) = pair.split_at_checked(8)?;
        (word(name) == key).then(|| word(value))
    })
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The file that a line of `/proc/self/maps` says is mapped at `address`.
pub fn path_at(line: &[u8], address: u64) -> Option<&[u8]> {
    let (start, rest) = hexadecimal(line);
    let (end, _) = hexadecimal(rest.strip_prefix(b"-")?);
    // Range, rights, offset, device, inode: a path begins with the first slash.
    let path = line.iter().position(|byte| *byte == b'/')?;
    (start <= address && address < end).then_some(line.get(path..)?)
}

fn hexadecimal(mut text: &[u8]) -> (u64, &[u8]) {
    let mut value = 0;
    while let [first, rest @ ..] = text {
        let Some(digit) = char::from(*first).to_digit(16) else {
            break;
        };
        value = value << 4 | u64::from(digit);
        text = rest;
    }
    (value, text)
}

/// When the process started, in clock ticks since boot: field 22 of `/proc/self/stat`.
pub fn start_ticks(stat: &[u8]) -> Option<u64> {
    // The second field, the name in brackets, may itself hold spaces and brackets.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let field = stat
        .get(name_end + 2..)?
        .split(|byte| *byte == b' ')
        .nth(22 - 3)?;
    Some(field.iter().fold(0, |number, digit| {
        u64::wrapping_mul(number, 10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))
    }))
}

/// The value of a variable, if this is its setting.
pub fn value_of<'a>(setting: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    setting.strip_prefix(name)?.strip_prefix(b"=")
}

/// The last part of a path.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Text put together in a buffer that may turn out too short.
pub struct Text<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Text<'a> {
    pub fn new(buffer: &'a mut [u8]) -> Text<'a> {
        Text { buffer, length: 0 }
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Text<'a> {
        for byte in bytes {
            if let Some(place) = self.buffer.get_mut(self.length) {
                *place = *byte;
            }
            self.length += 1;
        }
        self
    }

    pub fn decimal(&mut self, number: u32) -> &mut Text<'a> {
        if number >= 10 {
            self.decimal(number / 10);
        }
        self.bytes(&[b'0' + (number % 10) as u8])
    }

    pub fn hexadecimal(&mut self, bytes: &[u8]) -> &mut Text<'a> {
        for digit in bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]) {
            self.bytes(&[digit + if digit < 10 { b'0' } else { b'a' - 10 }]);
        }
        self
    }

    /// How long the text is, if all of it fitted.
    pub fn length(&self) -> Option<usize> {
        (self.length <= self.buffer.len()).then_some(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_the_auxiliary_vector() {
        let auxv: Vec<u8> = [3_u64, 0x400_040, 26, 2, 0, 0]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(auxiliary(&auxv, key::HWCAP2), Some(2));
        assert_eq!(auxiliary(&auxv, key::SECURE), None);
        assert_eq!(auxiliary(&auxv[..20], key::HWCAP2), None);
    }

    #[test]
    fn a_line_of_maps_names_the_file_at_an_address() {
        let line = b"5581f000-55820000 r-xp 00001000 fd:01 1234   /tmp/a program (deleted)";
        assert_eq!(
            path_at(line, 0x5581_f123),
            Some(&b"/tmp/a program (deleted)"[..])
        );
        assert_eq!(path_at(line, 0x5582_0000), None);
        assert_eq!(
            path_at(b"7ffd000-7ffe000 rw-p 0 00:00 0   [stack]", 0x7ff_d010),
            None
        );
        assert_eq!(path_at(b"", 0), None);
    }

    #[test]
    fn the_start_time_is_found_behind_a_hostile_name() {
        let stat = b"77 (a) S 1 (b) R 1 77 77 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 8912345 0 0";
        assert_eq!(start_ticks(stat), Some(8_912_345));
        assert_eq!(start_ticks(b"77 (a) S"), None);
        assert_eq!(start_ticks(b""), None);
    }

    #[test]
    fn a_setting_is_split_at_its_own_name_only() {
        assert_eq!(
            value_of(b"HEADCOUNT_DIR=/a=b", b"HEADCOUNT_DIR"),
            Some(&b"/a=b"[..])
        );
        assert_eq!(value_of(b"HEADCOUNT_DIRS=/a", b"HEADCOUNT_DIR"), None);
    }

    #[test]
    fn text_that_does_not_fit_has_no_length() {
        let mut buffer = [0; 8];
        let mut text = Text::new(&mut buffer);
        text.decimal(4021).hexadecimal(&[0x0f, 0xa5]);
        assert_eq!(text.length(), Some(8));
        assert_eq!(text.bytes(b"x").length(), None);
        assert_eq!(&buffer, b"40210fa5");
    }
}
