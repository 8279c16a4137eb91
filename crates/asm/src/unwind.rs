//! What the text tells an unwinder: the state of the frame at each instruction (`.cfi_`
//! directives), and where exceptions land (`.gcc_except_table`).

use std::collections::BTreeMap;
use std::fmt::Write;

/// How to find the caller's frame from one place in a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Register and offset that give the frame's address.
    cfa: (String, i64),
    /// Registers saved at an offset from it.
    saved: BTreeMap<String, i64>,
}

/// Follows `.cfi_` directives through a file.
#[derive(Debug, Default)]
pub struct Frames {
    /// Every state met, numbered. Number 0 is "no unwind information here".
    states: Vec<Option<Frame>>,
    /// The state now: `None` outside of procedures, `Some(None)` if it is beyond us.
    now: Option<Option<Frame>>,
    remembered: Vec<Option<Frame>>,
    current: Option<u32>,
}

/// A frame state met in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameId {
    /// There is no unwind information at this place.
    #[default]
    None,
    /// There is, but it uses directives we do not follow.
    Beyond,
    /// This one.
    Known(u32),
}

impl Frames {
    /// Takes note of a directive; others than `.cfi_` ones are ignored.
    pub fn directive(&mut self, name: &str, arguments: &str) {
        let Some(name) = name.strip_prefix(".cfi_") else {
            return;
        };
        match name {
            "startproc" => {
                let initial = arguments.is_empty().then(|| Frame {
                    cfa: ("%rsp".to_owned(), 8),
                    saved: BTreeMap::new(),
                });
                self.now = Some(initial);
                self.remembered.clear();
            }
            "endproc" => self.now = None,
            "personality" | "lsda" | "sections" | "signal_frame" | "return_column" => return,
            "remember_state" => self.remembered.extend(self.now.clone()),
            "restore_state" => {
                if let (Some(now), Some(before)) = (&mut self.now, self.remembered.pop()) {
                    *now = before;
                }
            }
            _ => self.change(name, arguments),
        }
        self.current = None;
    }

    fn change(&mut self, name: &str, arguments: &str) {
        let Some(now) = &mut self.now else { return };
        let Some(frame) = now else { return };
        let mut words = arguments.split(',').map(str::trim);
        let first = words.next().unwrap_or_default();
        let second = words.next();
        if frame.change(name, first, second).is_none() {
            *now = None;
        }
    }

    /// The state that holds for an instruction standing here.
    pub fn here(&mut self) -> FrameId {
        match &self.now {
            None => FrameId::None,
            Some(None) => FrameId::Beyond,
            Some(Some(frame)) => {
                let current = self.current.unwrap_or_else(|| {
                    if self.states.last() != Some(&Some(frame.clone())) {
                        self.states.push(Some(frame.clone()));
                    }
                    self.states.len() as u32 - 1
                });
                self.current = Some(current);
                FrameId::Known(current)
            }
        }
    }

    /// Directives that make the state `to` hold where `from` held.
    pub fn change_to(&self, from: FrameId, to: FrameId) -> String {
        let mut text = String::new();
        let (Some(from), Some(to)) = (self.get(from), self.get(to)) else {
            return text;
        };
        if from.cfa != to.cfa {
            let _ = write!(text, ".cfi_def_cfa {}, {}; ", to.cfa.0, to.cfa.1);
        }
        for (register, offset) in &to.saved {
            if from.saved.get(register) != Some(offset) {
                let _ = write!(text, ".cfi_offset {register}, {offset}; ");
            }
        }
        for register in from
            .saved
            .keys()
            .filter(|name| !to.saved.contains_key(*name))
        {
            let _ = write!(text, ".cfi_restore {register}; ");
        }
        text
    }

    /// Directives for code that moves the stack pointer down by `bytes`, and for the way back.
    pub fn adjust(&self, frame: FrameId, bytes: u32) -> (String, String) {
        match self.get(frame) {
            Some(frame) if matches!(frame.cfa.0.as_str(), "%rsp" | "rsp" | "7") => (
                format!(".cfi_adjust_cfa_offset {bytes}; "),
                format!(".cfi_adjust_cfa_offset -{bytes}; "),
            ),
            _ => (String::new(), String::new()),
        }
    }

    fn get(&self, id: FrameId) -> Option<&Frame> {
        match id {
            FrameId::Known(number) => self.states.get(number as usize)?.as_ref(),
            _ => None,
        }
    }
}

impl Frame {
    /// Applies a directive; `None` if it is one we do not follow.
    fn change(&mut self, name: &str, first: &str, second: Option<&str>) -> Option<()> {
        let number = |text: &str| text.parse::<i64>().ok();
        match name {
            "def_cfa" => self.cfa = (first.to_owned(), number(second?)?),
            "def_cfa_offset" => self.cfa.1 = number(first)?,
            "adjust_cfa_offset" => self.cfa.1 = self.cfa.1.checked_add(number(first)?)?,
            "def_cfa_register" => self.cfa.0 = first.to_owned(),
            "offset" => {
                self.saved.insert(first.to_owned(), number(second?)?);
            }
            "rel_offset" => {
                let offset = number(second?)?.checked_sub(self.cfa.1)?;
                self.saved.insert(first.to_owned(), offset);
            }
            "restore" => {
                self.saved.remove(first);
            }
            _ => return None,
        }
        Some(())
    }
}

/// Finds landing pads in the call-site tables of `.gcc_except_table`.
///
/// A row is four numbers: start and length of a region, its landing pad, its action. gcc and
/// clang write them as `A-F`, `B-A`, `P-F` (or 0) and a plain number, `F` being where the
/// function begins. So a pad follows a length, and a length is what subtracts the label that the
/// entry before it began with.
#[derive(Debug, Default)]
pub struct LandingPads<'t> {
    /// The label a row began with, then whether its length has been read.
    row: Option<(&'t str, bool)>,
}

impl<'t> LandingPads<'t> {
    /// Reads one number of the table; answers with a label if control may land there.
    pub fn read(&mut self, entry: &'t str) -> Option<&'t str> {
        let (label, base) = match entry.split_once('-') {
            Some((label, base)) => (label.trim(), base.trim()),
            None => {
                self.row = None;
                return None;
            }
        };
        match self.row {
            Some((start, false)) if base == start => {
                self.row = Some((start, true));
                None
            }
            Some((_, true)) => {
                self.row = None;
                Some(label)
            }
            _ => {
                self.row = Some((label, false));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pad_is_the_third_number_of_a_row() {
        let mut pads = LandingPads::default();
        let rows = [
            ".LLSDACSE0-.LLSDACSB0",
            ".LEHB0-.LFB1",
            ".LEHE0-.LEHB0",
            ".L5-.LFB1",
            "0x1",
            ".LEHB1-.LFB1",
            ".LEHE1-.LEHB1",
            "0",
            "0",
            ".LEHB2-.LFB1",
            ".LEHE2-.LEHB2",
            ".L9-.LFB1",
            "0",
        ];
        let found: Vec<_> = rows.into_iter().filter_map(|row| pads.read(row)).collect();
        assert_eq!(found, [".L5", ".L9"]);
    }

    #[test]
    fn frames_are_followed_and_can_be_restored_elsewhere() {
        let mut frames = Frames::default();
        frames.directive(".cfi_startproc", "");
        let entry = frames.here();
        frames.directive(".cfi_def_cfa_offset", "16");
        frames.directive(".cfi_offset", "6, -16");
        let inside = frames.here();
        assert_eq!(
            frames.change_to(entry, inside),
            ".cfi_def_cfa %rsp, 16; .cfi_offset 6, -16; "
        );
        assert_eq!(
            frames.change_to(inside, entry),
            ".cfi_def_cfa %rsp, 8; .cfi_restore 6; "
        );
        frames.directive(".cfi_escape", "0x0f");
        assert_eq!(frames.here(), FrameId::Beyond);
        frames.directive(".cfi_endproc", "");
        assert_eq!(frames.here(), FrameId::None);
    }
}
