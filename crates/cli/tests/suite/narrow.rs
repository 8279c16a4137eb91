//! What a terminal of 80 columns shows: each row on one line, and no number cut in two.

use crate::workshop::{HEADCOUNT, Workshop};

const SOURCE: &str = r#"
namespace {
struct a_structure_with_quite_a_long_name {
    unsigned state;
    __attribute__((noinline)) unsigned next_of_some_numbers(unsigned limit) {
        if (state % 3 == 0 && limit > 7) /* this comment makes a long line of a short one */
            state += LIMIT;
        state = state * 1103515245u + 12345u;
        return state % limit;
    }
};
}
int main() {
    a_structure_with_quite_a_long_name generator{42};
    unsigned sum = 0;
    for (unsigned i = 0; i < 400000u + LIMIT; i++) /* this one, too, has something to say */
        if (generator.next_of_some_numbers(i % 1000 + 8) % 2)
            sum++;
    return sum == 7;
}
"#;

/// A folder with a profile of a program, and one of another version of it.
fn counted() -> Workshop {
    let shop = Workshop::new();
    shop.write("generator.cc", SOURCE);
    for (profile, limit) in [("old.db", "-DLIMIT=10"), ("new.db", "-DLIMIT=5000")] {
        shop.must(&["g++", "-g", "-O0", limit, "generator.cc", "-o", "generator"]);
        let run = ["run", "-q", "-o", profile, "--", "./generator"];
        assert_eq!(shop.headcount(&run).status, Some(0));
    }
    shop
}

/// What a command shows on a terminal of 80 columns, each line at most so wide.
fn screen(shop: &Workshop, words: &str) -> String {
    let ours = format!("stty cols 80 rows 24; PAGER=cat LC_ALL=C.UTF-8 {HEADCOUNT} {words}");
    let out = shop.path("screen");
    let said = shop.run(&["script", "-qec", &ours, out.to_str().unwrap()]);
    assert_eq!(said.status, Some(0), "{said:?}");
    // What is behind is drawn over what tells of progress.
    let lines = said.stdout.lines();
    let lines = lines.map(|it| it.rsplit("\x1b[K").next().unwrap_or(it).trim_end());
    let shown: Vec<&str> = lines.collect();
    let widest = shown.iter().map(|it| it.chars().count()).max();
    let shown = shown.join("\n");
    assert!(widest <= Some(80), "{words}\n{shown}");
    shown
}

#[test]
fn how_often_a_condition_held_is_not_cut() {
    let shop = counted();
    let shown = screen(&shop, "report old.db --by branch");
    assert!(shown.contains("taken 400,010 / not 1  "), "{shown}");
}

#[test]
fn what_a_function_is_in_makes_room_for_its_name() {
    let shop = counted();
    for by in ["function", "call", "instruction"] {
        let shown = screen(&shop, &format!("report old.db --by {by}"));
        assert!(shown.contains("next_of_some_numbers("), "{shown}");
    }
}

#[test]
fn rows_of_diff_take_one_line_and_have_their_text() {
    let shop = counted();
    let shown = screen(&shop, "diff old.db new.db");
    assert!(shown.lines().count() < 40, "{shown}");
    assert!(shown.contains("generator.cc:"), "{shown}");
    assert!(shown.contains("for (unsigned"), "{shown}");
    let shown = screen(&shop, "diff old.db new.db --by line");
    assert!(shown.contains("405,0"), "{shown}");
}

/// Names as programmers say them, who do not care for namespaces without a name, nor for arguments.
#[test]
fn a_function_is_found_by_the_end_of_its_path() {
    let shop = counted();
    for name in [
        "next_of_some_numbers",
        "a_structure_with_quite_a_long_name::next_of_some_numbers",
    ] {
        for words in [
            ["report", "old.db", "--callers", name].as_slice(),
            &["report", "old.db", "--only", name],
            &["annotate", "-i", "old.db", "--asm", name],
            &["explain", "-i", "old.db", name],
        ] {
            let said = shop.headcount(words);
            assert_eq!(said.status, Some(0), "{words:?} {said:?}");
            let whole = "(anonymous namespace)::a_structure_with_quite_a_long_name::next_of_some";
            assert!(said.stdout.contains(whole), "{words:?} {}", said.stdout);
        }
    }
    let only = "a_structure_with_quite_a_long_name::next*";
    let run = ["run", "-q", "--only", only, "--", "./generator"];
    assert_eq!(shop.headcount(&run).status, Some(0));
    let said = shop.headcount(&["report", "old.db", "--only", "of_some_numbers"]);
    assert_eq!(said.status, Some(2), "{said:?}");
}
