//! The instructions of Lua 5.4: their numbers, names and arguments.

/// How many there are.
pub(super) const COUNT: usize = NAMES.len();

pub(super) const LOADKX: u8 = 4;
pub(super) const LFALSESKIP: u8 = 6;
pub(super) const GETUPVAL: u8 = 9;
pub(super) const SETUPVAL: u8 = 10;
pub(super) const GETTABUP: u8 = 11;
pub(super) const GETFIELD: u8 = 14;
pub(super) const SETTABUP: u8 = 15;
pub(super) const SETFIELD: u8 = 18;
pub(super) const NEWTABLE: u8 = 19;
const FIRST_ARITHMETIC: u8 = 21;
const LAST_ARITHMETIC: u8 = 45;
pub(super) const CLOSE: u8 = 54;
pub(super) const TBC: u8 = 55;
pub(super) const JMP: u8 = 56;
const FIRST_TEST: u8 = 57;
const LAST_TEST: u8 = 67;
pub(super) const TAILCALL: u8 = 69;
pub(super) const RETURN: u8 = 70;
pub(super) const RETURN0: u8 = 71;
pub(super) const RETURN1: u8 = 72;
pub(super) const FORLOOP: u8 = 73;
pub(super) const FORPREP: u8 = 74;
pub(super) const TFORPREP: u8 = 75;
pub(super) const TFORCALL: u8 = 76;
pub(super) const TFORLOOP: u8 = 77;
pub(super) const SETLIST: u8 = 78;
pub(super) const CLOSURE: u8 = 79;
pub(super) const VARARGPREP: u8 = 81;
pub(super) const EXTRAARG: u8 = 82;

#[rustfmt::skip]
const NAMES: [&str; 83] = [
    "MOVE", "LOADI", "LOADF", "LOADK", "LOADKX", "LOADFALSE", "LFALSESKIP", "LOADTRUE", "LOADNIL",
    "GETUPVAL", "SETUPVAL", "GETTABUP", "GETTABLE", "GETI", "GETFIELD", "SETTABUP", "SETTABLE", "SETI",
    "SETFIELD", "NEWTABLE", "SELF", "ADDI", "ADDK", "SUBK", "MULK", "MODK", "POWK", "DIVK", "IDIVK",
    "BANDK", "BORK", "BXORK", "SHRI", "SHLI", "ADD", "SUB", "MUL", "MOD", "POW", "DIV", "IDIV", "BAND",
    "BOR", "BXOR", "SHL", "SHR", "MMBIN", "MMBINI", "MMBINK", "UNM", "BNOT", "NOT", "LEN", "CONCAT",
    "CLOSE", "TBC", "JMP", "EQ", "LT", "LE", "EQK", "EQI", "LTI", "LEI", "GTI", "GEI", "TEST", "TESTSET",
    "CALL", "TAILCALL", "RETURN", "RETURN0", "RETURN1", "FORLOOP", "FORPREP", "TFORPREP", "TFORCALL",
    "TFORLOOP", "SETLIST", "CLOSURE", "VARARG", "VARARGPREP", "EXTRAARG",
];

/// An instruction, as it is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(pub(super) u32);

impl Word {
    pub(super) fn opcode(self) -> u8 {
        (self.0 & 0x7f) as u8
    }

    pub(super) fn a(self) -> u32 {
        self.0 >> 7 & 0xff
    }

    pub(super) fn k(self) -> bool {
        self.0 >> 15 & 1 == 1
    }

    pub(super) fn b(self) -> u32 {
        self.0 >> 16 & 0xff
    }

    pub(super) fn c(self) -> u32 {
        self.0 >> 24
    }

    pub(super) fn bx(self) -> usize {
        (self.0 >> 15) as usize
    }

    /// How far a jump goes from behind it.
    pub(super) fn distance(self) -> i64 {
        i64::from(self.0 >> 7) - i64::from((1 << 24) - 1)
    }

    pub(super) fn is_test(self) -> bool {
        (FIRST_TEST..=LAST_TEST).contains(&self.opcode())
    }

    /// Is there an instruction behind it that looks for a metamethod, and is left out where the operands are
    /// numbers?
    pub(super) fn is_arithmetic(self) -> bool {
        (FIRST_ARITHMETIC..=LAST_ARITHMETIC).contains(&self.opcode())
    }

    pub(super) fn is_return(self) -> bool {
        matches!(self.opcode(), RETURN | RETURN0 | RETURN1)
    }

    pub(super) fn name(self) -> &'static str {
        NAMES.get(usize::from(self.opcode())).unwrap_or(&"?")
    }

    /// Can it do nothing but what it says: no error, no call, no yield?
    pub(super) fn is_plain(self) -> bool {
        const PLAIN: [&str; 18] = [
            "MOVE",
            "LOADI",
            "LOADF",
            "LOADK",
            "LOADKX",
            "LOADFALSE",
            "LFALSESKIP",
            "LOADTRUE",
            "LOADNIL",
            "GETUPVAL",
            "JMP",
            "NOT",
            "EQK",
            "EQI",
            "TEST",
            "TESTSET",
            "FORLOOP",
            "TFORLOOP",
        ];
        PLAIN.contains(&self.name())
    }

    /// Is something new in its first register afterwards?
    pub(super) fn sets_first(self) -> bool {
        const OTHERS: [&str; 8] = [
            "SETUPVAL", "SETTABUP", "SETTABLE", "SETI", "SETFIELD", "SETLIST", "TEST", "EXTRAARG",
        ];
        !self.is_test() && !OTHERS.contains(&self.name()) || self.name() == "TESTSET"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_where_the_interpreter_has_them() {
        // JMP -2; FORPREP 1, 5.
        let jump = Word(u32::from(JMP) | ((1 << 24) - 3) << 7);
        assert_eq!((jump.name(), jump.distance()), ("JMP", -2));
        let prepare = Word(u32::from(FORPREP) | 1 << 7 | 5 << 15);
        assert_eq!(
            (prepare.name(), prepare.a(), prepare.bx()),
            ("FORPREP", 1, 5)
        );
        let names: Vec<&str> = (0..3).map(|it| Word(it).name()).collect();
        assert_eq!(names, ["MOVE", "LOADI", "LOADF"]);
        assert_eq!(Word(EXTRAARG.into()).name(), "EXTRAARG");
        assert_eq!(Word(127).name(), "?");
    }
}
