//! What do the names of instructions tell of their arithmetic?
//!
//! The names of vector instructions are made by rule: what is done, then `s` or `p` for one value or
//! all of them, then the width: `addsd`, `vfmadd231ps`.

use iced_x86::Mnemonic;
use std::sync::OnceLock;

/// What an instruction computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arithmetic {
    /// Operations on floating-point numbers, if it does any.
    pub flops: Option<Flops>,
    /// Whether it divides.
    pub divides: bool,
    /// Whether it uses only one value of its vector registers.
    pub is_scalar: bool,
}

/// Operations on floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flops {
    /// How many on each value.
    pub each: u32,
    /// The width of a value; of the sum, where narrower products are added up in it.
    pub bits: u32,
    /// How many values there are.
    pub lanes: Lanes,
}

/// How many values an instruction handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// So many.
    Some(u32),
    /// As many as its registers hold.
    All,
    /// As many as its tiles are configured to hold.
    Tiles,
}

/// What instructions of this name compute.
pub fn arithmetic(mnemonic: Mnemonic) -> Arithmetic {
    static ALL: OnceLock<Vec<Arithmetic>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let name = |it: Mnemonic| format!("{it:?}").to_ascii_lowercase();
        Mnemonic::values().map(|it| by_name(&name(it))).collect()
    });
    all[mnemonic as usize]
}

fn by_name(name: &str) -> Arithmetic {
    let flops = x87(name).or_else(|| now_3d(name)).or_else(|| tiles(name));
    Arithmetic {
        flops: flops.or_else(|| vector(name)),
        divides: divides(name),
        is_scalar: is_scalar(name),
    }
}

/// What is done, on how many values, and on how many bits: `vaddsd` is `add`, one, 64.
fn parts(name: &str) -> Option<(&str, Lanes, u32)> {
    let name = name.strip_prefix('v').unwrap_or(name);
    let (rest, lanes, bits) = match name.split_at_checked(name.len().checked_sub(2)?)? {
        (rest, "ps") => (rest, Lanes::All, 32),
        (rest, "pd") => (rest, Lanes::All, 64),
        (rest, "ph") => (rest, Lanes::All, 16),
        (rest, "ss") => (rest, Lanes::Some(1), 32),
        (rest, "sd") => (rest, Lanes::Some(1), 64),
        (rest, "sh") => (rest, Lanes::Some(1), 16),
        _ => return None,
    };
    // `pminsd` compares integers.
    (!rest.starts_with('p')).then_some((rest, lanes, bits))
}

fn vector(name: &str) -> Option<Flops> {
    let (what, lanes, bits) = parts(name)?;
    let each = match what {
        "add" | "sub" | "addsub" | "hadd" | "hsub" | "mul" | "div" | "sqrt" | "min" | "max"
        | "range" | "rcp" | "rcp14" | "rcp28" | "rsqrt" | "rsqrt14" | "rsqrt28" | "scalef"
        | "exp2" => 1,
        "dp" => 2,
        "dpbf16" => 4,
        // A complex number takes two lanes: four products and two sums, or four.
        "fmulc" | "fcmulc" => 3,
        "fmaddc" | "fcmaddc" => 4,
        "4fmadd" | "4fnmadd" => 8,
        _ if is_multiply_add(what) => 2,
        _ => return None,
    };
    let lanes = match (what, lanes) {
        ("fmulc" | "fcmulc" | "fmaddc" | "fcmaddc", Lanes::Some(_)) => Lanes::Some(2),
        _ => lanes,
    };
    Some(Flops { each, bits, lanes })
}

/// A product and a sum in one: `fmadd`, with the order of its operands behind it or not.
fn is_multiply_add(what: &str) -> bool {
    let what = what.trim_end_matches(|it: char| it.is_ascii_digit());
    matches!(
        what,
        "fmadd" | "fmsub" | "fnmadd" | "fnmsub" | "fmaddsub" | "fmsubadd"
    )
}

fn x87(name: &str) -> Option<Flops> {
    let each = match name {
        "fadd" | "faddp" | "fiadd" | "fsub" | "fsubp" | "fisub" | "fsubr" | "fsubrp" | "fisubr"
        | "fmul" | "fmulp" | "fimul" | "fsqrt" | "fscale" | "fprem" | "fprem1" | "fsin"
        | "fcos" | "fptan" | "fpatan" | "f2xm1" | "fyl2x" | "fyl2xp1" => 1,
        "fsincos" => 2,
        _ if divides_x87(name) => 1,
        _ => return None,
    };
    Some(Flops {
        each,
        bits: 80,
        lanes: Lanes::Some(1),
    })
}

/// AMD's 3DNow!, two numbers in an MMX register.
fn now_3d(name: &str) -> Option<Flops> {
    let lanes = match name {
        "pfadd" | "pfsub" | "pfsubr" | "pfmul" | "pfmin" | "pfmax" | "pfacc" | "pfnacc"
        | "pfpnacc" => 2,
        "pfrcp" | "pfrsqrt" => 1,
        _ => return None,
    };
    Some(Flops {
        each: 1,
        bits: 32,
        lanes: Lanes::Some(lanes),
    })
}

/// Products of matrices.
fn tiles(name: &str) -> Option<Flops> {
    let is_product = matches!(
        name,
        "tdpbf16ps" | "tdpfp16ps" | "tcmmimfp16ps" | "tcmmrlfp16ps"
    );
    is_product.then_some(Flops {
        each: 2,
        bits: 32,
        lanes: Lanes::Tiles,
    })
}

fn divides(name: &str) -> bool {
    let of_vectors = parts(name).is_some_and(|(what, _, _)| what == "div");
    matches!(name, "div" | "idiv") || divides_x87(name) || of_vectors
}

fn divides_x87(name: &str) -> bool {
    matches!(
        name,
        "fdiv" | "fdivp" | "fidiv" | "fdivr" | "fdivrp" | "fidivr"
    )
}

/// One value: its name says so, or it moves or converts one between kinds of registers.
fn is_scalar(name: &str) -> bool {
    let bare = name.strip_prefix('v').unwrap_or(name);
    let is_one = matches!(parts(name), Some((what, Lanes::Some(_), _)) if what != "broadcast");
    let is_move = matches!(bare, "movd" | "movq" | "movw");
    let is_conversion =
        bare.starts_with("cvt") && ["2si", "2usi", "si2"].iter().any(|it| bare.contains(it));
    // Conversions of two integers in an MMX register.
    let is_pair = bare.contains("pi");
    is_one || is_move || is_conversion && !is_pair
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flops(name: &str) -> Option<(u32, u32, Lanes)> {
        by_name(name).flops.map(|it| (it.each, it.bits, it.lanes))
    }

    #[test]
    fn names_tell_what_is_computed() {
        assert_eq!(flops("addsd"), Some((1, 64, Lanes::Some(1))));
        assert_eq!(flops("vmulps"), Some((1, 32, Lanes::All)));
        assert_eq!(flops("vfmadd231ps"), Some((2, 32, Lanes::All)));
        assert_eq!(flops("vfnmsubsd"), Some((2, 64, Lanes::Some(1))));
        assert_eq!(flops("vfmaddsub132pd"), Some((2, 64, Lanes::All)));
        assert_eq!(flops("vaddph"), Some((1, 16, Lanes::All)));
        assert_eq!(flops("vfmaddcsh"), Some((4, 16, Lanes::Some(2))));
        assert_eq!(flops("vdpbf16ps"), Some((4, 32, Lanes::All)));
        assert_eq!(flops("fdivrp"), Some((1, 80, Lanes::Some(1))));
        assert_eq!(flops("tdpbf16ps"), Some((2, 32, Lanes::Tiles)));
        for none in [
            "pabsd", "vpminsd", "movss", "xorps", "cmpsd", "ucomisd", "cvtsi2sd", "roundps",
            "paddd", "add", "movsd", "fld", "fchs", "vblendps",
        ] {
            assert_eq!(flops(none), None, "{none}");
        }
    }

    #[test]
    fn divisions_are_those_of_all_kinds_of_numbers() {
        let named = |name: &str| by_name(name).divides;
        for name in ["div", "idiv", "divsd", "vdivps", "vdivph", "fidivr"] {
            assert!(named(name), "{name}");
        }
        for name in ["mul", "sqrtsd", "vrcpps", "fmul"] {
            assert!(!named(name), "{name}");
        }
    }

    #[test]
    fn one_value_is_told_from_several() {
        let named = |name: &str| by_name(name).is_scalar;
        for name in [
            "addss",
            "vmovsd",
            "movd",
            "vmovq",
            "cvtsi2sd",
            "cvttsd2si",
            "vcvtss2usi",
            "ucomiss",
            "cvtss2sd",
            "vmovw",
        ] {
            assert!(named(name), "{name}");
        }
        for name in [
            "addps",
            "pabsd",
            "vpmaxsd",
            "vbroadcastss",
            "vbroadcastsd",
            "pxor",
            "xorps",
            "movdqa",
            "cvtpi2ps",
            "cvtps2pd",
            "aesenc",
        ] {
            assert!(!named(name), "{name}");
        }
    }
}
