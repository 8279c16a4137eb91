use std::rc::Rc;

use crate::{Count, Error, Found, Kind, Start, Translation, translate};

fn program(text: &str) -> Result<Translation, Error> {
    let include: Rc<[u8]> = (*b"$define LIMIT (1 + 2)\n").into();
    translate(b"t.icn", text.as_bytes().into(), &mut |name| {
        (name == b"limits.icn").then(|| Found {
            name: name.to_vec(),
            text: include.clone(),
        })
    })
}

/// Tokens, as `line:column text`.
fn tokens(text: &str) -> Vec<String> {
    let translation = program(text).unwrap();
    let show = |it: &crate::Token| {
        let text = String::from_utf8_lossy(&it.text);
        format!("{}:{} {text}", it.line, it.column)
    };
    translation.tokens.iter().map(show).collect()
}

fn body(text: &str) -> Vec<String> {
    let all = tokens(&format!("procedure main()\n{text}\nend\n"));
    all.into_iter()
        .map(|it| it.split_once(' ').unwrap().1.to_owned())
        .collect()
}

#[test]
fn tokens_are_what_is_executed_in_the_order_of_the_text() {
    let counted = "count := count + 1\n while line := read(f) do process(line)";
    let expected = [
        "count", ":=", "count", "+", "1", "while", "line", ":=", "read", "(", "f", "do", "process",
        "(", "line",
    ];
    assert_eq!(body(counted), expected);
    assert_eq!(
        body("(a); { b; c }; [d]; e[f]; e[f:g]; h.i"),
        [
            "a", "b", "c", "[", "d", "e", "[", "f", "e", "f", ":", "g", "h", "."
        ]
    );
    assert_eq!(
        body("if a then b else c"),
        ["if", "a", "then", "b", "else", "c"]
    );
    assert_eq!(
        body("case a of { 1: b; default: c }"),
        ["case", "a", "of", "1", ":", "b", "default", "c"]
    );
    assert_eq!(
        body("1 to 2 by 3; &pos; & pos"),
        ["1", "to", "2", "by", "3", "&pos", "&pos"]
    );
    assert_eq!(
        body("p{a, b}; (a, b); a[b, c]"),
        ["p", "{", "a", ",", "b", "(", "a", "b", "a", "[", "b", "c"]
    );
    assert_eq!(
        body("|a; a | b; ==a; a ||:= b"),
        ["|", "a", "a", "|", "b", "==", "a", "a", "||:=", "b"]
    );
}

#[test]
fn what_a_macro_stands_for_stands_where_it_is_used() {
    let text = "$include \"limits.icn\"\nprocedure main()\n\tx := LIMIT; y\nend\n";
    let expected = ["3:2 x", "3:4 :=", "3:7 1", "3:7 +", "3:7 2", "3:14 y"];
    assert_eq!(tokens(text), expected);
}

#[test]
fn errors_say_where() {
    let of = |text: &str| program(text).unwrap_err().to_string();
    let text = "procedure main()\n   write(1 2)\nend\n";
    assert_eq!(of(text), "t.icn:2:12: \"2\" where ) is expected");
    let text = "procedure main()\n   break\nend\n";
    assert_eq!(of(text), "t.icn:2:4: break is not possible here");
    let text = "procedure main()\n   x := \"abc\nend\n";
    assert_eq!(of(text), "t.icn:2:9: a quote is not closed");
    assert_eq!(
        of("$include \"no\"\n"),
        "t.icn:1:0: \"no\" cannot be opened"
    );
    assert_eq!(of("$ifdef X\n"), "t.icn:1:0: a $if has no $endif");
    assert_eq!(
        of("procedure main("),
        "t.icn:1:16: \"end of file\" where ) is expected"
    );
}

/// The start of the first token with this text.
fn start(text: &str, wanted: &str) -> Start {
    let translation = program(&format!("procedure main()\n{text}\nend\n")).unwrap();
    let mut tokens = translation.tokens.into_iter();
    let token = tokens.find(|it| it.text == wanted.as_bytes() && it.kind == Kind::Structure);
    token.unwrap().start
}

#[test]
fn a_loop_behind_an_instruction_starts_with_it() {
    // The statement is marked, and nothing else comes to the loop in `x := ...` either.
    assert_eq!(start("x := while y", "while"), Start::Instruction(2));
    assert_eq!(start("while while y", "while"), start("while y", "while"));
    assert_eq!(
        start("if x then repeat break", "repeat"),
        Start::Instruction(3)
    );
}

#[test]
fn a_loop_behind_a_statement_that_may_fail_has_bounds_that_agree_if_all_was_ended() {
    // mark, mark0, mark, f, invoke, unmark | mark0, x, unmark, mark, g, invoke, unmark, goto
    let start = start("every { f(); while x do g() }", "while");
    let Start::Between { first, .. } = start else {
        panic!("{start:?}");
    };
    assert_eq!(first, 6);
    let count = |counts: [u64; 14]| start.count(|it| counts.get(it as usize).copied().unwrap_or(0));
    // Twice to the loop, of which one turn fails in its body and one ends well.
    let ended = [1, 1, 2, 2, 2, 1, 4, 4, 2, 2, 2, 2, 1, 1];
    assert_eq!(count(ended), Count::Exact(2));
    // The same, but one body was never ended: that may have been the second time, or not.
    let pending = [1, 1, 2, 2, 2, 1, 3, 3, 2, 2, 2, 2, 0, 0];
    assert_eq!(count(pending), Count::Between(1, 2));
}

#[test]
fn ucode_says_whose_its_instructions_are() {
    let translation = program("procedure main()\n x := y + 1\nend\n").unwrap();
    let whose: Vec<String> = translation.procedures[0]
        .instructions()
        .map(|it| match it.token.and_then(|it| translation.token(it)) {
            Some(token) => {
                let text = String::from_utf8_lossy(&token.text);
                format!("{} {text}", it.opcode.name())
            }
            None => it.opcode.name().to_owned(),
        })
        .collect();
    let expected = [
        "mark", "pnull :=", "var x", "pnull +", "var y", "int 1", "plus +", "asgn :=", "unmark",
        "pnull", "pfail",
    ];
    assert_eq!(whose, expected);
}
