//! One instruction in AT&T syntax: where control goes after it, and what it does to flags and
//! registers.

use std::borrow::Cow;

use headcount_x86::mnemonic;

use crate::lex;

/// Where control goes after an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control<'t> {
    /// To the next one.
    Next,
    /// To a label, or another function.
    Jump(Target<'t>),
    /// To a label or the next one.
    Branch(Target<'t>),
    /// The same, with a displacement of one byte only: `loop`, `jrcxz`.
    ShortBranch(Target<'t>),
    /// Wherever a register or memory says.
    IndirectJump,
    /// To a function and, it may be, back.
    Call(Target<'t>),
    /// The same, wherever a register or memory says.
    IndirectCall,
    /// To the caller.
    Return,
    /// Nowhere: the instruction itself does not complete.
    Trap,
    /// Into the kernel and, it may be, back.
    Kernel,
}

/// The operand of a direct jump or call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'t> {
    /// A symbol or label; `through_plt` if another module may have its own idea of it.
    Symbol { name: &'t str, through_plt: bool },
    /// An expression we do not follow, such as `.+5`.
    Odd(&'t str),
}

/// A set of flags and registers: the nine registers a call may change, and the five arithmetic
/// flags as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set(pub u16);

/// The registers that a function may change without saving them, by number.
pub const SCRATCH: [&str; 9] = ["rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"];

impl Set {
    /// The arithmetic flags.
    pub const FLAGS: Self = Self(1 << 9);
    /// All nine registers.
    pub const REGISTERS: Self = Self((1 << 9) - 1);
    /// Everything.
    pub const ALL: Self = Self((1 << 10) - 1);

    /// One register of [`SCRATCH`].
    pub fn register(number: usize) -> Self {
        Self(1 << number)
    }

    /// Whether all of `other` is in it.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What `other` does not have.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// What an instruction needs and what it overwrites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Values it may look at.
    pub uses: Set,
    /// Values it surely overwrites, whole.
    pub kills: Set,
}

/// An instruction, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction<'t> {
    /// Its name in lower case; empty if there are only prefixes.
    pub name: Cow<'t, str>,
    /// What follows the name.
    pub operands: &'t str,
    /// Whether `rep`, `lock` or another prefix precedes it.
    pub prefixed: bool,
}

impl<'t> Instruction<'t> {
    /// Takes the text of one statement apart.
    pub fn parse(text: &'t str) -> Self {
        let mut rest = text;
        let mut prefixed = false;
        loop {
            let (word, after) = first_word(rest);
            let name = lower(word);
            if !is_prefix(&name) {
                return Self {
                    name,
                    operands: after,
                    prefixed,
                };
            }
            prefixed = true;
            rest = after;
            if rest.is_empty() {
                return Self {
                    name: Cow::Borrowed(""),
                    operands: "",
                    prefixed,
                };
            }
        }
    }

    /// Where control goes after it.
    pub fn control(&self) -> Control<'t> {
        let name = self.name.split(['.', ',']).next().unwrap_or_default();
        match name {
            "jmp" | "jmpq" | "jmpl" | "jmpw" => match self.operands.strip_prefix('*') {
                Some(_) => Control::IndirectJump,
                None => Control::Jump(target(self.operands)),
            },
            "ljmp" | "ljmpl" | "ljmpq" => Control::IndirectJump,
            "jcxz" | "jecxz" | "jrcxz" => Control::ShortBranch(target(self.operands)),
            _ if name.starts_with("loop") => Control::ShortBranch(target(self.operands)),
            _ if name.starts_with('j') => Control::Branch(target(self.operands)),
            "xbegin" => Control::Branch(Target::Odd("xbegin")),
            "call" | "callq" | "callw" | "calll" => match self.operands.strip_prefix('*') {
                // What `-fno-plt` makes of an ordinary call.
                Some(place) => match place
                    .trim_start()
                    .strip_suffix("@GOTPCREL(%rip)")
                    .map(target)
                {
                    Some(Target::Symbol { name, .. }) => Control::Call(Target::Symbol {
                        name,
                        through_plt: true,
                    }),
                    _ => Control::IndirectCall,
                },
                None => Control::Call(target(self.operands)),
            },
            "lcall" | "lcalll" | "lcallq" => Control::IndirectCall,
            "ret" | "retq" | "retw" | "retl" | "lret" | "lretq" | "lretl" | "iret" | "iretq"
            | "iretl" | "iretw" | "sysret" | "sysretq" | "sysretl" | "sysexit" | "sysexitq"
            | "uiret" => Control::Return,
            "ud0" | "ud1" | "ud2" | "ud2a" | "ud2b" | "hlt" => Control::Trap,
            "syscall" | "sysenter" | "int" | "int1" | "int3" | "icebp" => Control::Kernel,
            _ => Control::Next,
        }
    }

    /// What it needs and what it overwrites.
    pub fn effect(&self) -> Effect {
        let known = mnemonic::effect(&self.name);
        let operands = operands(self.operands);
        let mut effect = Effect::default();
        if known.reads_flags || (self.prefixed && known == mnemonic::UNKNOWN) {
            effect.uses = effect.uses.with(Set::FLAGS);
        }
        if known.kills_flags && !shifts_by_cl(&self.name, &operands) && !self.prefixed_string() {
            effect.kills = effect.kills.with(Set::FLAGS);
        }
        let hidden =
            known.hidden_registers || (self.name.starts_with("imul") && operands.len() == 1);
        if hidden || self.prefixed_string() {
            effect.uses = effect.uses.with(Set::REGISTERS);
            return effect;
        }
        for (position, operand) in operands.iter().enumerate() {
            let written = position + 1 == operands.len() && self.only_writes_last();
            match operand.strip_prefix('%').and_then(register) {
                Some((number, whole)) if written && whole => {
                    effect.kills = effect.kills.with(Set::register(number));
                }
                _ => effect.uses = effect.uses.with(registers_in(operand)),
            }
        }
        effect.kills = effect.kills.without(Set(effect.uses.0 & Set::REGISTERS.0));
        effect
    }

    /// `rep movsb` and its kin, whose count may be zero.
    fn prefixed_string(&self) -> bool {
        self.prefixed
            && ["movs", "stos", "cmps", "scas", "lods", "ins", "outs"]
                .iter()
                .any(|stem| self.name.starts_with(stem))
    }

    /// Whether the last operand is overwritten without being looked at. (A register of 32 bits
    /// is then overwritten whole; narrower ones are not, see [`register`].)
    fn only_writes_last(&self) -> bool {
        let name = self.name.as_ref();
        matches!(
            name,
            "mov"
                | "movl"
                | "movq"
                | "movabsq"
                | "movabs"
                | "lea"
                | "leal"
                | "leaq"
                | "pop"
                | "popq"
        ) || name.starts_with("movz")
            || name.starts_with("movs")
    }
}

fn lower(word: &str) -> Cow<'_, str> {
    if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(word.to_ascii_lowercase())
    } else {
        Cow::Borrowed(word)
    }
}

fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    // A pseudo prefix, `{vex}`, needs no blank behind it.
    let end = match text.strip_prefix('{').and_then(|rest| rest.find('}')) {
        Some(close) => close + 2,
        None => text.find([' ', '\t']).unwrap_or(text.len()),
    };
    (&text[..end], text[end..].trim_start())
}

fn is_prefix(word: &str) -> bool {
    matches!(
        word,
        "lock"
            | "rep"
            | "repe"
            | "repz"
            | "repne"
            | "repnz"
            | "data16"
            | "data32"
            | "addr16"
            | "addr32"
            | "notrack"
            | "bnd"
            | "xacquire"
            | "xrelease"
            | "cs"
            | "ds"
            | "es"
            | "fs"
            | "gs"
            | "ss"
            | "wait"
            | "fwait"
    ) || word.starts_with("rex")
        || word.starts_with('{')
}

fn target(operand: &str) -> Target<'_> {
    let operand = operand.trim();
    let (name, suffix) = operand.split_once('@').unwrap_or((operand, ""));
    let plain = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    let name = plain.unwrap_or(name);
    let is_symbol = !name.is_empty()
        && name != "."
        && (plain.is_some() || name.bytes().all(lex::is_symbol_byte))
        && (!name.as_bytes()[0].is_ascii_digit() || lex::is_numbered_reference(name));
    if is_symbol {
        Target::Symbol {
            name,
            through_plt: !suffix.is_empty(),
        }
    } else {
        Target::Odd(operand)
    }
}

/// The operands, split at commas outside of parentheses.
fn operands(text: &str) -> Vec<&str> {
    let mut found = Vec::with_capacity(3);
    let mut depth = 0;
    let mut start = 0;
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                found.push(text[start..position].trim());
                start = position + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        found.push(last);
    }
    found
}

/// A shift by a register leaves the flags alone when the register holds 0.
fn shifts_by_cl(name: &str, operands: &[&str]) -> bool {
    ["sh", "sa", "ro", "rc"]
        .iter()
        .any(|stem| name.starts_with(stem))
        && operands.first().is_some_and(|first| *first == "%cl")
}

/// All scratch registers that a piece of text names.
fn registers_in(text: &str) -> Set {
    text.split('%').skip(1).fold(Set::default(), |set, rest| {
        let end = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        match register(&rest[..end]) {
            Some((number, _)) => set.with(Set::register(number)),
            None => set,
        }
    })
}

/// The number in [`SCRATCH`] of the register with this name, and whether writing this name
/// overwrites all 64 bits (32-bit writes clear the upper half).
fn register(name: &str) -> Option<(usize, bool)> {
    if let Some(digits) = name.strip_prefix('r') {
        let (digits, whole) = match digits.strip_suffix(['b', 'w']) {
            Some(digits) => (digits, false),
            None => (digits.strip_suffix('d').unwrap_or(digits), true),
        };
        if let Ok(number @ 8..=11) = digits.parse::<usize>() {
            return Some((number - 3, whole));
        }
    }
    let (number, whole) = match name {
        "rax" | "eax" => (0, true),
        "ax" | "al" | "ah" => (0, false),
        "rcx" | "ecx" => (1, true),
        "cx" | "cl" | "ch" => (1, false),
        "rdx" | "edx" => (2, true),
        "dx" | "dl" | "dh" => (2, false),
        "rsi" | "esi" => (3, true),
        "si" | "sil" => (3, false),
        "rdi" | "edi" => (4, true),
        "di" | "dil" => (4, false),
        _ => return None,
    };
    Some((number, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(text: &str) -> Effect {
        Instruction::parse(text).effect()
    }

    const RAX: Set = Set(1);
    const RCX: Set = Set(2);

    #[test]
    fn a_move_overwrites_its_register_and_needs_its_address() {
        assert_eq!(
            effect("movl 8(%rcx), %eax"),
            Effect {
                uses: RCX,
                kills: RAX
            }
        );
        assert_eq!(effect("movl (%rax), %eax").kills, Set::default());
        assert_eq!(effect("movb $1, %al").kills, Set::default());
    }

    #[test]
    fn arithmetic_needs_its_last_operand_too() {
        assert_eq!(
            effect("addl $1, %eax"),
            Effect {
                uses: RAX,
                kills: Set::FLAGS
            }
        );
        assert_eq!(effect("shll %cl, %eax").kills, Set::default());
        assert_eq!(effect("shll $2, %eax").kills, Set::FLAGS);
        assert!(effect("rep cmpsb").uses.has(Set::REGISTERS));
        assert!(!effect("repz cmpsb").kills.has(Set::FLAGS));
    }

    #[test]
    fn control_goes_where_the_text_says() {
        let control = |text| Instruction::parse(text).control();
        let symbol = |name, through_plt| Target::Symbol { name, through_plt };
        assert_eq!(control("jmp .L3"), Control::Jump(symbol(".L3", false)));
        assert_eq!(control("notrack jmp *%rax"), Control::IndirectJump);
        assert_eq!(control("jne 1b"), Control::Branch(symbol("1b", false)));
        assert_eq!(
            control("loop 1b"),
            Control::ShortBranch(symbol("1b", false))
        );
        assert_eq!(
            control("call puts@PLT"),
            Control::Call(symbol("puts", true))
        );
        assert_eq!(control("callq *8(%rax)"), Control::IndirectCall);
        assert_eq!(
            control("call *puts@GOTPCREL(%rip)"),
            Control::Call(symbol("puts", true))
        );
        assert_eq!(control("call *table(%rip)"), Control::IndirectCall);
        assert_eq!(control("jmp f"), Control::Jump(symbol("f", false)));
        assert_eq!(control("rep ret"), Control::Return);
        assert_eq!(control("int3"), Control::Kernel);
        assert_eq!(control("jmp .+5"), Control::Jump(Target::Odd(".+5")));
        assert_eq!(control("JMP foo"), Control::Jump(symbol("foo", false)));
        assert_eq!(control("lock addl $1, (%rax)"), Control::Next);
    }
}
