use headcount_model::{Binary, Expression, Unary, Width};

use crate::{At, Names, Scale, Term, Thread, Typed, Unreadable, evaluate, parse};

struct Nobody;

impl Names for Nobody {
    fn variable(&self, name: &str) -> Result<Typed, String> {
        Err(format!("no variable is called {name}"))
    }

    fn field(&self, _: &Typed, _: &str, _: bool) -> Result<Typed, String> {
        unreachable!("there are no variables")
    }

    fn element(&self, _: &Typed, _: Expression) -> Result<Typed, String> {
        unreachable!("there are no variables")
    }
}

/// Registers hold their number times 100; memory holds the lower byte of its addresses.
struct Registers;

impl Thread for Registers {
    fn register(&self, number: u8) -> u64 {
        u64::from(number) * 100
    }

    fn thread_pointer(&self) -> u64 {
        0
    }

    fn load_address(&self, link: u64) -> u64 {
        link
    }

    fn memory(&self, at: u64, bytes: usize) -> Option<[u8; 8]> {
        let mut found = [0; 8];
        for (index, byte) in found[..bytes].iter_mut().enumerate() {
            *byte = (at as u8).wrapping_add(index as u8);
        }
        (at != 0).then_some(found)
    }
}

fn value(key: &str) -> Result<i64, Unreadable> {
    let asked = parse(&format!("f({key})")).unwrap();
    let expression = asked.key.unwrap().resolve(At::Entry, &Nobody).unwrap();
    evaluate(&expression, &Registers)
}

#[test]
fn operators_bind_as_in_c() {
    assert_eq!(value("1 + 2 * 3"), Ok(7));
    assert_eq!(value("(1 + 2) * 3"), Ok(9));
    assert_eq!(value("1 << 2 + 1"), Ok(8));
    assert_eq!(value("6 & 3 == 3"), Ok(6 & 1));
    assert_eq!(value("10 - 3 - 2"), Ok(5));
    assert_eq!(value("4 | 2 ^ 7 & 3"), Ok(5));
    assert_eq!(value("-7 / 2"), Ok(-3));
    assert_eq!(value("-7 % 2"), Ok(-1));
    assert_eq!(value("!0 + !5"), Ok(1));
    assert_eq!(value("~0"), Ok(-1));
    assert_eq!(value("3 > 2"), Ok(1));
    assert_eq!(value("2 >= 3"), Ok(0));
    assert_eq!(value("-1 >> 60"), Ok(15));
}

#[test]
fn registers_arguments_and_memory_are_read() {
    assert_eq!(value("arg1"), Ok(700));
    assert_eq!(value("arg6"), Ok(900));
    assert_eq!(value("%r10 + eax"), Ok(1000));
    assert_eq!(value("bl"), Ok(300 & 0xff));
    assert_eq!(value("r15w"), Ok(1500));
    assert_eq!(value("u8[0x41]"), Ok(0x41));
    assert_eq!(value("i8[0xff]"), Ok(-1));
    assert_eq!(value("u16[0x41]"), Ok(0x4241));
    assert_eq!(value("[rdi + 8]"), value("u64[708]"));
    // The seventh argument is behind the return address.
    assert_eq!(value("arg7"), value("[rsp + 8]"));
}

#[test]
fn what_cannot_be_read_has_no_value() {
    assert_eq!(value("[0]"), Err(Unreadable));
    assert_eq!(value("1 / (arg1 - 700)"), Err(Unreadable));
    assert_eq!(value("(1 << 63) / -1"), Err(Unreadable));
}

#[test]
fn keys_are_put_together() {
    assert_eq!(value("log2(1)"), Ok(0));
    assert_eq!(value("log2(arg1)"), Ok(9));
    assert_eq!(value("log2(0)"), Ok(-1));
    assert_eq!(value("log2(-1)"), Ok(63));
    assert_eq!(value("linear(arg1, 64)"), Ok(640));
    assert_eq!(value("linear(-1, 10)"), Ok(-10));
    assert_eq!(value("linear(-10, 10)"), Ok(-10));
    let asked = parse("f(range(arg1, -5..100))").unwrap();
    assert_eq!(asked.scale, Scale::Range(-5, 100));
}

#[test]
fn a_text_has_a_place_a_key_an_amount_and_callers() {
    let asked = parse("sum free_list_len in pool.c:88").unwrap();
    assert_eq!(asked.place, "pool.c:88");
    assert!(asked.key.is_none() && asked.amount.is_some() && !asked.by_caller);
    let asked = parse(" malloc(arg1) by caller ").unwrap();
    assert_eq!((asked.place.as_str(), asked.by_caller), ("malloc", true));
    assert_eq!(asked.expression, "arg1");
    let asked = parse("ns::f(int, char*)(arg1 & (1 << 3))").unwrap();
    assert_eq!(asked.place, "ns::f(int, char*)");
    let asked = parse("malloc by caller").unwrap();
    assert!(asked.key.is_none() && asked.by_caller);
    let asked = parse("sum arg1 in libc!write(arg2)").unwrap();
    assert_eq!(asked.place, "libc!write");
    assert!(asked.key.is_some() && asked.amount.is_some());
}

#[test]
fn errors_point_at_the_character() {
    let at = |text: &str| parse(text).unwrap_err().at;
    assert_eq!(at("f(arg1 +)"), 8);
    assert_eq!(at("f(arg1 arg2)"), 7);
    assert_eq!(at("f(12q)"), 2);
    assert_eq!(at("f(a ? b)"), 4);
    assert_eq!(at("(arg1)"), 0);
    assert_eq!(at("malloc"), 6);
    assert_eq!(at("f((arg1)"), 1);
    assert_eq!(at("f(linear(arg1, 0))"), 15);
    assert_eq!(at("f(range(arg1, 5..5))"), 17);
    assert_eq!(at("sum arg1 on f"), 13);
    let shown = parse("f(arg1 +)").unwrap_err().to_string();
    assert!(shown.ends_with("  f(arg1 +)\n          ^"), "{shown}");
}

#[test]
fn names_mean_something_only_where_they_are_known() {
    let resolve = |text: &str, at| {
        let key: Term = parse(text).unwrap().key.unwrap();
        key.resolve(at, &Nobody).map_err(|it| it.at)
    };
    assert_eq!(resolve("f(ret)", At::Return), Ok(Expression::Register(0)));
    assert_eq!(resolve("f(ret)", At::Entry), Err(2));
    assert_eq!(resolve("f(1 + arg1)", At::Inside), Err(6));
    assert_eq!(resolve("f(rxx)", At::Entry), Err(2));
    assert_eq!(resolve("f(arg65)", At::Entry), Err(2));
}

#[test]
fn no_text_is_too_much() {
    let deep = format!("f({}1{})", "(".repeat(5000), ")".repeat(5000));
    assert!(parse(&deep).is_err());
    let deep = format!("f({}1)", "-".repeat(5000));
    assert!(parse(&deep).is_err());
    let words = [
        "f",
        "(",
        ")",
        "[",
        "arg1",
        "1",
        "-",
        "..",
        "sum",
        " in ",
        "by caller",
        "é",
        ".",
    ];
    let mut seed = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..seed % 12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(words[(seed >> 33) as usize % words.len()]);
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // It need not make sense, but must not panic, nor its error.
        let _ = parse(&text).map_err(|it| it.to_string());
    }
}

#[test]
fn widths_narrow_as_memory_does() {
    let narrow = |bytes, is_signed, number| {
        let width = Width { bytes, is_signed };
        let of = Box::new(Expression::Constant(number));
        evaluate(&Expression::Narrow(width, of), &Registers)
    };
    assert_eq!(narrow(1, true, 0x1ff), Ok(-1));
    assert_eq!(narrow(4, false, -1), Ok(0xffff_ffff));
    assert_eq!(narrow(8, true, -1), Ok(-1));
    let log = Expression::Unary(Unary::Log2, Box::new(Expression::Constant(1 << 40)));
    assert_eq!(evaluate(&log, &Registers), Ok(40));
    let shift = Expression::binary(
        Binary::ShiftLeft,
        Expression::Constant(1),
        Expression::Constant(65),
    );
    assert_eq!(evaluate(&shift, &Registers), Ok(2));
}

#[test]
fn damaged_texts_are_understood_or_refused_at_one_of_their_characters() {
    let good = [
        "sum free_list_len * 8 in pool.c:88",
        "libc.so.6!malloc(log2(arg1 + 16)) by caller",
        "f(range(*p->next[3].x & ~0xff, -5..100))",
        "ns::größe(int)(linear(u16[rsp + 8] % 3, 16))",
        "g(str([rdi] >> 3, 32)) by caller",
    ];
    let mut seed = 7_u64;
    let mut roll = |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % sides
    };
    let signs: Vec<char> = "()[]*&<>-+.,!=é0x \t\0\u{301}\u{10ffff}".chars().collect();
    for round in 0..40_000 {
        let mut text: Vec<char> = good[round % good.len()].chars().collect();
        for _ in 0..=roll(3) {
            let at = roll(text.len());
            match roll(4) {
                0 => drop(text.remove(at)),
                1 => text.insert(at, signs[roll(signs.len())]),
                2 => text[at] = signs[roll(signs.len())],
                _ => text.truncate(at + 1),
            }
            if text.is_empty() {
                text.push('f');
            }
        }
        let text: String = text.into_iter().collect();
        if let Err(misread) = parse(&text) {
            let is_inside = text.is_char_boundary(misread.at) && misread.at <= text.len();
            assert!(is_inside, "{text:?}: {misread:?}");
            assert!(!misread.why.is_empty() && misread.to_string().ends_with('^'));
        }
    }
}
