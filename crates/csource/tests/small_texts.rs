//! Small texts, counted: what is put in where, and what is left alone.

use headcount_csource::{Declarations, Dialect, Options, Probe, Source, every_block, insert};
use headcount_model::BlockKind;

/// Words that a reader can check.
struct Short;

impl Dialect for Short {
    fn statement(&self, probe: Probe, out: &mut String) {
        out.push_str(&format!("c[{}]++;", probe.counter));
    }
    fn expression(&self, probe: Probe, out: &mut String) {
        out.push_str(&format!("c[{}]++", probe.counter));
    }
    fn declaration(&self, probe: Probe, out: &mut String) {
        out.push_str(&format!("int c{};", probe.counter));
    }
    fn fall_through(&self) -> &str {
        "FALL;"
    }
    fn enter(&self) -> String {
        "ENTER;".to_owned()
    }
    fn enter_declaration(&self) -> String {
        "int ENTER;".to_owned()
    }
    fn around_fork(&self, name: &str) -> Option<(String, String)> {
        Some((format!("<{name} "), ">".to_owned()))
    }
}

fn source(text: &str) -> Source<'_> {
    source_with(text, Declarations::Anywhere)
}

fn source_with(text: &str, declarations: Declarations) -> Source<'_> {
    let options = Options {
        name: "x.c".to_owned(),
        is_raw: true,
        declarations,
        ..Options::default()
    };
    Source::parse(text.as_bytes(), &options).expect("it can be read")
}

/// The counted text, every block with its counter, with no columns to keep.
fn counted(text: &str) -> String {
    with(text, Declarations::Anywhere)
}

fn with(text: &str, declarations: Declarations) -> String {
    let source = source_with(text, declarations);
    assert_eq!(source.refusals, [], "{text}");
    let plans: Vec<_> = source.units.iter().map(every_block).collect();
    String::from_utf8(insert(&source, &plans, &Short, None)).unwrap()
}

/// What is put into the body of a function.
fn inside(body: &str) -> String {
    let text = format!("void f(int a, int b, int *p) {{{body}}}");
    let counted = counted(&text);
    let start = "void f(int a, int b, int *p) { ENTER; c[0]++;";
    let inner = counted
        .strip_prefix(start)
        .and_then(|it| it.strip_suffix('}'));
    inner.unwrap_or_else(|| panic!("{counted}")).to_owned()
}

#[test]
fn an_arm_without_braces_gets_some() {
    assert_eq!(
        inside(" if (a != 0) b = b / a; "),
        " if (a != 0) { c[1]++; b = b / a; } "
    );
    assert_eq!(
        inside("if (a) b = 1; else if (b) b = 2; else b = 3; b = 4;"),
        "if (a) { c[1]++; b = 1; } else if (c[2]++, b) { c[3]++; b = 2; } else { c[4]++; b = 3; } c[5]++; b = 4;"
    );
}

#[test]
fn operands_get_a_comma_in_parentheses() {
    assert_eq!(
        inside("b = (a > b) ? a : b;"),
        "b = (a > b) ? (c[1]++, a) : (c[2]++, b);"
    );
    assert_eq!(
        inside("b = a && b || p[0];"),
        "b = a && (c[1]++, b) || (c[2]++, p[0]);"
    );
    assert_eq!(inside("b = a ?: b;"), "b = a ?: (c[1]++, b);");
}

/// `c ? p : 0`: a null pointer constant must stay one, and so must a string for those who look
/// at formats. The condition says what became of it.
#[test]
fn constants_stay_constants() {
    assert_eq!(
        inside("p = a ? p : 0;"),
        "p = ((a) || (c[2]++, 0)) ? (c[1]++, p) : 0;"
    );
    assert_eq!(
        inside("b = a == 2 ? 1 : -1;"),
        "b = ((a == 2) ? (c[1]++, 1) : (c[2]++, 0)) ? 1 : -1;"
    );
    for untouched in [
        "static int x = 1 ? 2 : 3;",
        "enum { A = 1 ? 2 : 3 };",
        "char s[sizeof(int) > 2 && sizeof(a) ? 1 : 2];",
        "b = sizeof(a ? a : b) + sizeof a++;",
        "b = 4 > 3 ? 1 : 2;",
        "_Static_assert(1 && 2, \"x\");",
    ] {
        assert_eq!(inside(untouched), untouched);
    }
}

/// The first operand of `?:` is its condition as well, so that only the last can carry a counter.
#[test]
fn a_constant_behind_a_short_conditional_is_counted_or_named() {
    assert_eq!(inside("b = a ?: 7;"), "b = a ?: ((c[1]++, 1) ? 7 : 0);");
    assert_eq!(
        inside("b = a ?: (-1);"),
        "b = a ?: ((c[1]++, 1) ? (-1) : 0);"
    );
    assert_eq!(
        inside("b = a ?: sizeof(int);"),
        "b = a ?: ((c[1]++, 1) ? sizeof(int) : 0);"
    );
    assert_eq!(inside("p = p ?: \"x\";"), "p = p ?: (c[1]++, \"x\");");
    for null in ["p ?: 0", "p ?: (void *)0", "p ?: NULL", "a ?: '\\0'"] {
        let text = format!("void s(int *); void f(int a, int *p) {{ int *q = {null}; }}");
        let source = source(&text);
        let refusals: Vec<&str> = source
            .refusals
            .iter()
            .map(|it| it.reason.as_str())
            .collect();
        assert_eq!(
            refusals,
            ["the constant behind `?:`, a null pointer perhaps, which only a constant is"],
            "{null}"
        );
    }
}

#[test]
fn loops_count_their_conditions_and_steps() {
    assert_eq!(
        inside("for (int i = 0; i < a; i++) b++;"),
        "for (int i = 0; c[1]++, i < a; c[3]++, i++) { c[2]++; b++; }"
    );
    assert_eq!(
        inside("while (a--) ; do b--; while (b > 0);"),
        "while (c[1]++, a--) { c[2]++; ; } c[3]++; do { c[4]++; b--; } while (c[5]++, b > 0);"
    );
    assert_eq!(
        inside("for (;;) { if (a) break; } do { b = 1; } while (0);"),
        "for (;;) { c[1]++; if (a) { c[2]++; break; } } c[3]++; do { c[4]++; b = 1; } while (0);"
    );
}

#[test]
fn labels_and_cases_are_counted_behind_their_colons() {
    assert_eq!(
        inside(
            "switch (a) { case 1: case 2 ... 4: b = 1; break; default: b = 2; } out: b = 3; goto out;"
        ),
        "switch (a) { case 1: c[1]++; FALL; case 2 ... 4: c[2]++; b = 1; break; default: c[3]++; b = 2; } \
         out: c[4]++; b = 3; goto out;"
    );
    assert_eq!(
        inside("switch (a) case 1: b = 1;"),
        "switch (a) { case 1: c[1]++; b = 1; }"
    );
    assert_eq!(
        inside("if (a) l: b = 1; l2: __attribute__((unused)) b = 2;"),
        "if (a) { c[1]++; l: c[2]++; b = 1; } l2: __attribute__((unused)) c[3]++; b = 2;"
    );
}

#[test]
fn a_call_that_may_not_return_ends_a_block() {
    assert_eq!(inside("g(); b = 1;"), "g(); c[1]++; b = 1;");
    assert_eq!(inside("a = 2; b = 1;"), "a = 2; b = 1;");
}

#[test]
fn gnu_c_is_understood() {
    assert_eq!(
        inside("b = ({ __label__ l; int t = a; l: t; });"),
        "b = ({ __label__ l; c[1]++; int t = a; l: c[2]++; t; });"
    );
    assert_eq!(
        inside("void *t[] = { &&l }; goto *t[0]; l: ;"),
        "void *t[] = { &&l }; goto *t[0]; l: c[1]++; ;"
    );
    assert_eq!(
        inside("int g(int x) { return x ? a : b; } b = 1;"),
        "int g(int x) { c[1]++; return x ? (c[2]++, a) : (c[3]++, b); } b = 1;"
            .replace("{ c[1]", "{ ENTER; c[1]")
    );
    assert_eq!(
        inside("__asm__ volatile (\"nop\" : : \"r\" (a)); b = 2;"),
        "__asm__ volatile (\"nop\" : : \"r\" (a)); b = 2;"
    );
}

#[test]
fn old_definitions_are_found() {
    let text = "main (argc, argv)\n  int argc; char **argv;\n{ return 0; }\nint (*g (x)) (int) int x; { return 0; }";
    let source = source(text);
    let names: Vec<&str> = source.units.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["main", "g"]);
}

#[test]
fn a_type_is_a_type_where_nothing_hides_it() {
    let text = "typedef int tt; int f(int tt) { return (tt) && tt; } int g(int x) { return (tt) &&l, 0; l: return 0; }";
    let out = counted(text);
    assert!(out.contains("return (tt) && (c[1]++, tt);"), "{out}");
    assert!(out.contains("return (tt) &&l, 0;"), "{out}");
}

#[test]
fn blocks_know_what_they_are_and_where() {
    let source = source("int f(int a)\n{\n  return a\n    ? 1 : f(2);\n}\n");
    let unit = &source.units[0];
    let found: Vec<_> = unit
        .blocks
        .iter()
        .filter_map(|it| Some((it.kind?, source.position(it.token))))
        .map(|(kind, at)| (kind, at.line, at.column))
        .collect();
    assert_eq!(
        found,
        [
            (BlockKind::Function, 1, 5),
            (BlockKind::TrueOperand, 4, 7),
            (BlockKind::FalseOperand, 4, 11),
        ]
    );
}

#[test]
fn what_cannot_be_read_is_refused_and_the_rest_is_counted() {
    let text = "int f(int a) { return a @ 1; }\nint g(int a) { return a; }\n";
    let source = source(text);
    assert_eq!(source.units.len(), 1);
    assert_eq!(source.units[0].name, "g");
    assert_eq!(source.refusals[0].subject, "f");
    assert_eq!(source.refusals[0].line, 1);
    let options = Options::default();
    assert!(Source::parse(b"int f() { ( }", &options).is_err());
}

#[test]
fn declarations_stay_first_if_they_must() {
    let text = "void f(int a) { int b = 1; b = a; if (a) { int d = 2; d++; } }";
    assert_eq!(
        with(text, Declarations::First),
        "void f(int a) { int b = 1; ENTER; c[0]++; b = a; if (a) { int d = 2; c[1]++; d++; } }"
    );
    // What may not come back is counted before.
    let text = "void f(int a) { int b = 1; int d = g(); int e = 2; b = d; }";
    assert_eq!(
        with(text, Declarations::First),
        "void f(int a) { int b = 1; int ENTER; int c0; int d = g(); int c1; int e = 2; b = d; }"
    );
}

/// Where nobody says which C it is, a function tells.
#[test]
fn declarations_stay_first_where_they_all_are() {
    let first = "void f(int a) { int b = 1; b = a; if (a) { int d = 2; d++; } }";
    assert_eq!(
        with(first, Declarations::AsWritten),
        with(first, Declarations::First)
    );
    for mixed in [
        "void f(int a) { int b = 1; b = a; int c = b; }",
        "void f(int a) { int b; for (int i = 0; i < a; i++) b = 1; }",
        "void f(int a) { int b; if (a) { b = ({ a++; int d = 2; d; }); } }",
    ] {
        assert_eq!(
            with(mixed, Declarations::AsWritten),
            with(mixed, Declarations::Anywhere)
        );
    }
}
