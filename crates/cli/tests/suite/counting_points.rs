//! Every kind of point that zprof (1997) counts, each in a program of its own.

use crate::workshop::{Workshop, c_compilers};

/// The points of a program and how often control came to each, in the order of the text:
/// `line:column kind count`. Both ways of counting C, with few counters and with one a block, must
/// say the same.
fn points(text: &str) -> Vec<String> {
    let shop = Workshop::new();
    shop.write("a.c", text);
    let mut all = Vec::new();
    for compiler in c_compilers() {
        for every_block in [&[][..], &["--every-block"]] {
            shop.via_source(every_block, &[compiler, "-O1", "-w", "a.c", "-o", "a"]);
            all.push((format!("cc {compiler} {every_block:?}"), ran(&shop)));
            let words = ["csource", "a.c", "-o", "counted.c"];
            shop.must_headcount(&[&words[..], every_block].concat());
            shop.must(&[compiler, "-O1", "-w", "counted.c", "-o", "a"]);
            all.push((format!("csource {compiler} {every_block:?}"), ran(&shop)));
        }
    }
    let (_, first) = all[0].clone();
    for (way, found) in all {
        assert_eq!(found, first, "{way}");
    }
    first
}

fn ran(shop: &Workshop) -> Vec<String> {
    let _ = shop.run(&["./a"]);
    let found = shop.source_blocks("a.c").into_iter();
    found
        .map(|((line, column, kind), count)| format!("{line}:{column} {kind} {count}"))
        .collect()
}

/// The points of what stands in the body of `f(int i)`, for `i` from 0 to 9. Its first line is 1.
fn points_in(body: &str) -> Vec<String> {
    let text = format!(
        "static int sink;\nstatic int f(int i)\n{{\n{body}\n    return 0;\n}}\n\
         int main(void)\n{{\n    for (int i = 0; i < 10; i++)\n        f(i);\n}}\n"
    );
    let lines = body.lines().count();
    let found = points(&text).into_iter().filter_map(|point| {
        let (line, rest) = point.split_once(':')?;
        let line = line.parse::<usize>().ok()?.checked_sub(3)?;
        (1..=lines + 1)
            .contains(&line)
            .then(|| format!("{line}:{rest}"))
    });
    found.collect()
}

#[test]
fn a_function() {
    let text = "static int twice(int x) { return 2 * x; }\n\
                static void never(void) { }\n\
                int main(void)\n{\n    twice(1);\n    twice(2);\n    (void)never;\n}\n";
    let found = points(text);
    let entries: Vec<_> = found.iter().filter(|it| it.contains("function")).collect();
    assert_eq!(
        entries,
        ["1:12 function 2", "2:13 function 0", "3:5 function 1"]
    );
}

#[test]
fn an_if() {
    assert_eq!(
        points_in("    if (i > 6)\n        sink++;"),
        ["2:9 then 3", "3:5 after 10"]
    );
}

#[test]
fn an_if_and_its_else() {
    assert_eq!(
        points_in("    if (i > 6)\n        sink++;\n    else\n        sink--;"),
        ["2:9 then 3", "4:9 else 7", "5:5 after 10"]
    );
}

#[test]
fn a_while() {
    assert_eq!(
        points_in("    while (i > 6)\n        i--;"),
        ["1:12 condition 16", "2:9 body 6", "3:5 after 10"]
    );
}

#[test]
fn a_for() {
    assert_eq!(
        points_in("    for (sink = 0; sink < i; sink++)\n        ;"),
        [
            "1:20 condition 55",
            "1:30 step 45",
            "2:9 body 45",
            "3:5 after 10"
        ]
    );
}

#[test]
fn a_do() {
    assert_eq!(
        points_in("    do\n        i--;\n    while (i > 6);"),
        ["2:9 body 13", "3:12 condition 13", "4:5 after 10"]
    );
}

#[test]
fn a_label() {
    assert_eq!(
        points_in("again:\n    if (i-- > 7)\n        goto again;"),
        ["1:1 label 13", "3:9 then 3", "4:5 after 10"]
    );
}

#[test]
fn a_case_and_a_default() {
    assert_eq!(
        points_in(
            "    switch (i) {\n    case 1:\n        sink++;\n    case 2:\n        sink++;\n        break;\n    default:\n        sink--;\n    }"
        ),
        ["2:5 case 1", "4:5 case 2", "7:5 default 8", "10:5 after 10"]
    );
}

#[test]
fn a_conditional_expression() {
    assert_eq!(
        points_in("    sink = i > 6 ? i : -i;"),
        [
            "1:20 true operand 3",
            "1:24 false operand 7",
            "2:5 after 10"
        ]
    );
}

/// GNU's `a ?: b`; a constant in it is counted, too, unless it may be a null pointer.
#[test]
fn a_conditional_expression_without_its_middle() {
    for (text, place) in [
        ("    sink = (i > 6) ?: i;", "1:23"),
        ("    sink = (i > 6) ?: 7;", "1:23"),
        ("    unsigned char c = (unsigned char)i / 7 ?: 250;", "1:47"),
        ("    const char *s = (i > 6 ? \"a\" : 0) ?: \"b\";", "1:42"),
    ] {
        let found = points_in(text);
        let wanted = format!("{place} false operand 7");
        assert!(found.contains(&wanted), "{text}: {found:?}");
    }
    let shop = Workshop::new();
    let text = "char *f(char *p) { return p ?: 0; }\nint main(void)\n{\n    return f(0) != 0;\n}\n";
    shop.write("a.c", text);
    shop.via_source(&[], &["gcc", "-w", "a.c", "-o", "a"]);
    shop.must(&["./a"]);
    let refusals = shop.refusals();
    assert!(
        refusals.contains("f (a.c:1): the constant behind `?:`"),
        "{refusals}"
    );
}

/// zprof counts a statement that follows an `if`, a `switch` or a loop, whatever statement it is.
#[test]
fn a_loop_after_a_condition_has_a_count_of_its_own_beginning() {
    for (loop_, kinds) in [
        (
            "    do {\n        i++;\n    } while (i < 12);",
            ["3:5 after 7", "3:8 body 63", "5:14 condition 63"],
        ),
        (
            "    while (i < 12)\n        i++;\n    ;",
            ["3:5 after 7", "3:12 condition 70", "4:9 body 63"],
        ),
        (
            "    while (1)\n        if (i++ > 12) break;\n    ;",
            ["3:5 after 7", "4:9 body 77", "4:23 then 7"],
        ),
    ] {
        let found = points_in(&format!("    if (i > 6)\n        return 1;\n{loop_}"));
        assert_eq!(
            found[..4],
            [&["2:9 then 3"], &kinds[..]].concat(),
            "{loop_}"
        );
    }
}

/// Counts of the lines of a program.
fn lines(text: &str) -> Vec<Option<u64>> {
    let shop = Workshop::new();
    shop.write("a.c", text);
    shop.via_source(&[], &["gcc", "-w", "a.c", "-o", "a"]);
    let _ = shop.run(&["./a"]);
    let counts = shop.counts("a.c");
    let numbers = 1..=text.lines().count() as u32;
    numbers.map(|line| counts.get(&line).copied()).collect()
}

/// What each line of a program says behind `//`, beside what was counted.
fn check_lines(text: &str) {
    let stated = text.lines().map(|line| {
        let (_, count) = line.split_once("//")?;
        count.trim().parse().ok()
    });
    let stated: Vec<Option<u64>> = stated.collect();
    let found = lines(text);
    for (line, (stated, found)) in (1..).zip(stated.iter().zip(&found)) {
        let line_text = text.lines().nth(line - 1).unwrap_or_default();
        assert_eq!(found, stated, "line {line}: {line_text}");
    }
}

/// In every arm that may be left, one way each.
#[test]
fn lines_after_a_condition_show_how_often_they_were_begun() {
    check_lines(
        "#include <setjmp.h>
#include <stdlib.h>
static jmp_buf back;
static int f(int i)          // 10
{
    if (i == 1)              // 10
        return 1;            // 1
    do {                     // 9
        i += 10;             // 9
    } while (i < 10);        // 9
    if (i == 12)             // 9
        longjmp(back, 1);    // 1
    else
        i++;                 // 8
    do                       // 8
        i++;                 // 14
    while (i % 3);           // 14
    if (i == 15)             // 8
        goto out;            // 1
    do i++; while (i % 4);   // 19
    switch (i) {             // 7
    case 20:                 // 3
    case 21:                 // 3
        return 2;            // 3
    default:                 // 4
        i--;                 // 4
    }
    while (1) {              // 4
        if (i++ > 20)        // 10
            break;           // 4
    }
    for (;;) {               // 4
        if (i++ > 30)        // 34
            break;           // 4
    }
    while (i > 30)           // 12
        i--;                 // 8
    while (i-- > 28)         // 12
        ;                    // 8
out:                         // 5
    return i;                // 5
}
int main(void)               // 1
{
    volatile int i = 0;      // 1
    if (setjmp(back))        // 1
        i++;                 // 1
    do {                     // 2
        f(i);                // 10
        i++;                 // 9
    } while (i < 10);        // 9
    if (i)                   // 1
        exit(0);             // 1
    do {                     // 0
        i++;                 // 0
    } while (i);             // 0
}
",
    );
}

/// Labels that have a line for themselves.
#[test]
fn lines_with_nothing_but_a_label_show_its_count() {
    check_lines(
        "static int f(int i)          // 6
{
    switch (i) {             // 6
    case 0:                  // 1
    case 1:                  // 2
        i += 10;             // 2
        /* fall through */
    case 2:                  // 3
        break;               // 3
    case 3:                  // 1
        i = 0;               // 1
    {
    default:                 // 3
        i++;                 // 3
    }
    }
again:                       // 9
    if (i++ % 2)             // 9
        goto again;          // 3
    if (i > 100)             // 6
        goto never;          // 0
    goto last;               // 6
never:                       // 0
last:                        // 6
    ;
    return 0;                // 6
}
int main(void)               // 1
{
    for (int i = 0; i < 6; i++) // 7
        f(i);                // 6
}
",
    );
}
