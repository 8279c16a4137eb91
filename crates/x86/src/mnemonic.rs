//! What an instruction does to flags and registers, known by its AT&T name alone.
//!
//! An increment (`inc`) overwrites five of the six arithmetic flags and spares the carry. So
//! "flags" here means those five: OF, SF, ZF, AF, PF.
//!
//! The facts come from the decoder's own tables: of all encodings that share a name, the most
//! cautious answer is taken. A name that is not known gets the most cautious answer of all.

use std::collections::HashMap;
use std::sync::LazyLock;

use iced_x86::{Code, Instruction, RflagsBits};

/// What every instruction with one name does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// It may look at one of the five flags.
    pub reads_flags: bool,
    /// It overwrites all five, whatever its operands.
    pub kills_flags: bool,
    /// It uses registers that its operands do not name.
    pub hidden_registers: bool,
}

/// What to assume of an instruction nobody knows.
pub const UNKNOWN: Effect = Effect {
    reads_flags: true,
    kills_flags: false,
    hidden_registers: true,
};

/// The flags `inc` overwrites.
const FIVE: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;

/// The effect of the instruction with this AT&T name, without its prefixes.
pub fn effect(name: &str) -> Effect {
    known(name)
        .or_else(|| known(&standard_condition(name)?))
        .or_else(|| known(name.strip_suffix(['b', 'w', 'l', 'q'])?))
        .or_else(|| {
            let bare = name.strip_suffix(['b', 'w', 'l', 'q'])?;
            known(&standard_condition(bare)?)
        })
        .unwrap_or(UNKNOWN)
}

fn known(name: &str) -> Option<Effect> {
    TABLE.get(name).copied()
}

/// `jz` is `je`, `cmovnae` is `cmovb`: the name the decoder uses for a condition.
fn standard_condition(name: &str) -> Option<String> {
    let (stem, condition) = ["cmov", "set", "j"]
        .iter()
        .find_map(|stem| Some((stem, name.strip_prefix(stem)?)))?;
    let standard = match condition {
        "c" | "nae" => "b",
        "nb" | "nc" => "ae",
        "z" => "e",
        "nz" => "ne",
        "na" => "be",
        "nbe" => "a",
        "nge" => "l",
        "nl" => "ge",
        "ng" => "le",
        "nle" => "g",
        "pe" => "p",
        "po" => "np",
        _ => return None,
    };
    Some(format!("{stem}{standard}"))
}

static TABLE: LazyLock<HashMap<String, Effect>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    for code in Code::values() {
        let one = effect_of(code);
        let name = format!("{:?}", code.mnemonic()).to_lowercase();
        let all = table.entry(name).or_insert(one);
        *all = Effect {
            reads_flags: all.reads_flags || one.reads_flags,
            kills_flags: all.kills_flags && one.kills_flags,
            hidden_registers: false,
        };
    }
    // Names that only AT&T syntax has, with the decoder's name for each.
    for (alias, of) in [
        ("cltq", "cdqe"),
        ("cltd", "cdq"),
        ("cqto", "cqo"),
        ("cwtl", "cwde"),
        ("cwtd", "cwd"),
        ("cbtw", "cbw"),
        ("movabs", "mov"),
        ("movsbl", "movsx"),
        ("movsbq", "movsx"),
        ("movsbw", "movsx"),
        ("movswl", "movsx"),
        ("movswq", "movsx"),
        ("movslq", "movsxd"),
        ("movzbl", "movzx"),
        ("movzbq", "movzx"),
        ("movzbw", "movzx"),
        ("movzwl", "movzx"),
        ("movzwq", "movzx"),
        ("movsl", "movsd"),
    ] {
        if let Some(effect) = table.get(of).copied() {
            table.insert(alias.to_owned(), effect);
        }
    }
    for (name, effect) in &mut table {
        effect.hidden_registers = hides_registers(name);
    }
    table
});

fn effect_of(code: Code) -> Effect {
    let mut instruction = Instruction::default();
    instruction.set_code(code);
    // Shifts by nothing leave the flags alone; no compiler writes them with a constant 0. The
    // form that shifts by CL is told apart by its operand.
    instruction.set_immediate8(1);
    Effect {
        reads_flags: instruction.rflags_read() & FIVE != 0,
        kills_flags: instruction.rflags_modified() & FIVE == FIVE,
        hidden_registers: false,
    }
}

/// Whether some form of the instruction uses general registers its operands do not name (Intel
/// SDM 2, the instructions' own pages). `imul` does in its one-operand form only, which the
/// caller can tell.
fn hides_registers(name: &str) -> bool {
    const EXACT: [&str; 46] = [
        "call", "cbw", "cdq", "cdqe", "clzero", "cpuid", "cqo", "cwd", "cwde", "div", "enter",
        "idiv", "in", "int", "int1", "int3", "into", "iret", "iretd", "iretq", "jcxz", "jecxz",
        "jrcxz", "lahf", "leave", "mul", "mulx", "out", "pconfig", "rdmsr", "rdpkru", "rdpmc",
        "rdtsc", "rdtscp", "ret", "retf", "sahf", "syscall", "sysenter", "sysexit", "sysret",
        "tpause", "umwait", "wrmsr", "wrpkru", "xlatb",
    ];
    const ALIASES: [&str; 6] = ["cltq", "cltd", "cqto", "cwtl", "cwtd", "cbtw"];
    const STEMS: [&str; 25] = [
        "cmps", "cmpxchg", "encl", "getsec", "ins", "invlpga", "lods", "loop", "maskmov",
        "monitor", "movsb", "movsd", "movsl", "movsq", "movsw", "mwait", "outs", "pcmpestr",
        "pcmpistr", "rdpru", "scas", "stos", "vm", "xrstor", "xsave",
    ];
    const MORE: [&str; 6] = [
        "xcrypt",
        "xgetbv",
        "xsetbv",
        "xstore",
        "vpcmpestr",
        "vpcmpistr",
    ];
    EXACT.contains(&name)
        || ALIASES.contains(&name)
        || STEMS.iter().chain(&MORE).any(|stem| name.starts_with(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(name: &str) -> bool {
        effect(name).reads_flags
    }

    fn kills(name: &str) -> bool {
        effect(name).kills_flags
    }

    #[test]
    fn conditions_read_flags_but_the_carry_alone_does_not_count() {
        for name in [
            "je", "jz", "jne", "ja", "jnbe", "jle", "setg", "cmovs", "cmovzl", "jp", "jpe",
        ] {
            assert!(reads(name), "{name}");
        }
        for name in [
            "jc", "jb", "jae", "jnc", "setb", "cmovae", "adcl", "sbbq", "jmp",
        ] {
            assert!(!reads(name), "{name}");
        }
    }

    #[test]
    fn arithmetic_overwrites_all_five() {
        for name in [
            "addl", "subq", "cmpb", "testl", "xorl", "incl", "decq", "negl", "adcq", "andw", "orb",
            "imulq", "ucomisd", "vucomiss", "comiss", "bsrl", "popfq", "cmpxchgq", "xaddl",
            "andnq",
        ] {
            assert!(kills(name), "{name}");
        }
        for name in [
            "movl", "leaq", "btl", "notl", "pushq", "movaps", "vaddsd", "bswapl", "rorl",
        ] {
            assert!(!kills(name), "{name}");
        }
    }

    #[test]
    fn what_nobody_knows_is_feared() {
        assert_eq!(effect("frobnicate"), UNKNOWN);
    }

    #[test]
    fn hidden_registers_are_seen() {
        for name in [
            "divl", "mulq", "cltd", "cqto", "cpuid", "rdtsc", "stosb", "cmpxchgl", "mulxq",
        ] {
            assert!(effect(name).hidden_registers, "{name}");
        }
        for name in [
            "movl", "leaq", "addq", "vaddsd", "pushq", "popq", "shll", "imulq",
        ] {
            assert!(!effect(name).hidden_registers, "{name}");
        }
    }
}
