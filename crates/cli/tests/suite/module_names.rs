//! Programs and libraries by their names, wherever counts are read.

use crate::workshop::{HEADCOUNT, Said, Workshop};
use std::fs;

const LIBRARY: &str = "\
int twice(int x)
{
    return 2 * x;
}
int thrice(int x)
{
    return 3 * x;
}
";

/// Has the name of one of its functions, and a function with the name of one of its library's.
const PROGRAM: &str = "\
int twice(int);
static int thrice(int x)
{
    return x + x + x;
}
int program(int x)
{
    return thrice(x) + twice(x);
}
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 10; i++)
        sum += program(i);
    return sum != 225;
}
";

/// A program that was counted with its library, which has no lines if `flag` says so.
fn counted(flag: &str) -> Workshop {
    let shop = Workshop::new();
    shop.write("number.c", LIBRARY);
    let library = ["gcc", flag, "-shared", "-fPIC", "number.c", "-o"];
    shop.must(&[&library[..], &["libnumber.so.1"]].concat());
    shop.build("program", PROGRAM, &["./libnumber.so.1", "-Wl,-rpath,."]);
    shop.must_count(&["--modules", &here(&shop), "./program"]);
    shop
}

/// What is built here, without the C library: every reader would read that, too.
fn here(shop: &Workshop) -> String {
    let folder = shop.path("").canonicalize().unwrap();
    format!("{}/*", folder.display())
}

/// The functions of a report that are written above.
fn functions(said: &Said) -> Vec<&str> {
    let names = said.stdout.lines().skip(1);
    let names = names.filter_map(|row| row.split(',').nth(1));
    let mut names: Vec<&str> = names
        .filter(|it| ["twice", "thrice", "program", "main"].contains(it))
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_module_is_meant_by_its_name_if_nothing_else_has_it() {
    let shop = counted("-g");
    let only = |name: &str| {
        let said = shop.headcount(&["report", "--only", name, "--format", "csv"]);
        assert_eq!(said.status, Some(0), "{said:?}");
        assert!(!said.stderr.contains("nothing counted"), "{said:?}");
        said
    };
    let library = ["thrice", "twice"];
    for name in [
        "libnumber.so.1",
        "libnumber",
        "libnumber!",
        "libnum*!*",
        "libnumber.so*",
    ] {
        let said = only(name);
        assert_eq!(functions(&said), library, "{name}");
        assert!(!said.stdout.contains("/program,"), "{name}: {said:?}");
    }
    let path = shop.path("libnumber.so.1");
    assert_eq!(functions(&only(path.to_str().unwrap())), library);
    assert_eq!(functions(&only("thrice")), ["thrice", "thrice"]);
    assert_eq!(functions(&only("libnumber!thrice")), ["thrice"]);
    assert_eq!(functions(&only("libnumber!number.c")), library);
    // The function comes first; `!` says that the module is meant.
    assert_eq!(functions(&only("program")), ["program"]);
    assert_eq!(functions(&only("program!")), ["main", "program", "thrice"]);
}

#[test]
fn every_table_can_be_one_of_a_module() {
    let shop = counted("-g");
    for unit in [
        "module",
        "file",
        "function",
        "line",
        "block",
        "instruction",
        "edge",
        "call",
    ] {
        let words = ["report", "--by", unit, "--format", "csv", "--only"];
        let of = |name: &str| shop.headcount(&[&words[..], &[name]].concat());
        let (library, program) = (of("libnumber"), of("program!"));
        let is_there = !library.stdout.contains("program") && program.stdout.lines().count() > 1;
        assert!(is_there, "{unit}: {library:?} {program:?}");
        let no_calls = unit == "call"; // they call nobody
        assert!(
            no_calls || library.stdout.lines().count() > 1,
            "{unit}: {library:?}"
        );
    }
}

#[test]
fn in_a_table_of_modules_a_name_is_that_of_a_module_though_a_function_has_it_too() {
    let shop = counted("-g");
    let words = ["report", "--by", "module", "--format", "csv", "--only"];
    let of = |name: &str| shop.must(&[&[HEADCOUNT], &words[..], &[name]].concat());
    let all = of("program!");
    assert_eq!(all.lines().count(), 2, "{all}");
    assert_eq!(of("program"), all);
}

#[test]
fn every_reader_knows_modules_by_name() {
    let shop = counted("-g");
    let must = |words: &[&str]| {
        let said = shop.headcount(words);
        assert_eq!(said.status, Some(0), "{words:?}: {said:?}");
        assert!(
            !said.stderr.contains("nothing counted"),
            "{words:?}: {said:?}"
        );
        said.stdout
    };
    let pages = |names: [&str; 2]| {
        let [one, other] = names;
        let only = ["--only", one, "--only", other];
        must(&[&["html", "-o", "-", "--no-asm"], &only[..]].concat()).len()
    };
    let page = |name| pages([name, name]);
    let (one, all) = (page("libnumber!"), pages(["libnumber!", "program!"]));
    assert!(one < all, "{one} {all}");
    for name in ["libnumber.so.1", "libnumber!"] {
        let lcov = must(&["export", "--format", "lcov", "--only", name]);
        assert!(
            lcov.contains("FNDA:10,twice") && !lcov.contains("main"),
            "{lcov}"
        );
        let listing = must(&["annotate", name]);
        assert!(
            listing.contains("return 2 * x;") && !listing.contains("x + x + x"),
            "{listing}"
        );
    }
    let listing = must(&["annotate", "libnumber!thrice"]);
    assert!(
        listing.contains("return 3 * x;") && !listing.contains("return 2 * x;"),
        "{listing}"
    );
    let why = must(&["explain", "libnumber!t*ce"]);
    assert!(
        why.contains("libnumber.so.1") && !why.contains("/program\n"),
        "{why}"
    );
    shop.must_count(&["--modules", &here(&shop), "./program"]);
    let diff = must(&["diff", "--only", "libnumber", "--format", "json"]);
    let diff: serde_json::Value = serde_json::from_str(&diff).unwrap();
    let report = must(&[
        "report",
        "--by",
        "module",
        "--only",
        "libnumber",
        "--format",
        "csv",
    ]);
    let executed: u64 = report
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        diff["executed"],
        serde_json::json!({ "old": executed, "new": executed }),
        "{diff}"
    );
}

#[test]
fn a_library_without_sources_can_still_be_named() {
    let shop = counted("-g0");
    let lines = shop.report(&["--by", "line", "--only", "libnumber"]);
    assert!(
        lines.contains("No line is known of what --only names"),
        "{lines}"
    );
    let listing = shop.headcount(&["annotate", "--asm", "libnumber.so.1"]);
    assert_eq!(listing.status, Some(0), "{listing:?}");
    assert!(listing.stdout.contains("twice") && !listing.stdout.contains("program"));
    let listing = shop.headcount(&["annotate", "libnumber.so.1"]);
    assert_eq!(listing.status, Some(2), "{listing:?}");
    assert!(listing.stderr.contains("--asm"), "{listing:?}");
}

#[test]
fn a_name_that_nothing_has_is_told_with_a_near_one() {
    let shop = counted("-g");
    let told = |words: &[&str], expected: &str| {
        let said = shop.headcount(words);
        assert!(said.stderr.contains(expected), "{words:?}: {said:?}");
        said.status
    };
    let nothing = "nothing counted is called libnumber.so.2: no function, source file or module; \
                   did you mean libnumber.so.1?";
    let name = "libnumber.so.2";
    for verb in [
        &["report"][..],
        &["report", "--by", "line", "--format", "csv"],
        &["html", "-o", "page"],
        &["export", "--format", "lcov", "-o", "lcov"],
        &["export", "--format", "sqlite", "-o", "it.sqlite"],
        &["export", "--format", "parquet", "-o", "it.parquet"],
        &["annotate", "main"],
        &["diff", "headcount.db", "headcount.db"],
    ] {
        assert_eq!(told(&[verb, &["--only", name]].concat(), nothing), Some(2));
    }
    assert_eq!(told(&["annotate", name], nothing), Some(2));
    for made in ["page", "lcov", "it.sqlite", "it.parquet"] {
        assert!(!shop.path(made).exists(), "{made}");
    }
    // To leave out what is not there is no mistake.
    assert_eq!(told(&["report", "--skip", name], nothing), Some(0));
    let no_module = "no module that was counted is called libnumbers; did you mean libnumber.so.1?";
    let report = ["report", "--only", "libnumbers!"];
    assert_eq!(told(&report, no_module), Some(2));
    for verb in [&["report"][..], &["export", "--format", "lcov"]] {
        let words = [verb, &["--module", "libnumbers"]].concat();
        assert_eq!(told(&words, no_module), Some(2));
    }
    let no_function = "no function or source file of libnumber that was counted is called \
                       thirce; did you mean thrice, twice?";
    let report = ["report", "--only", "libnumber!thirce"];
    assert_eq!(told(&report, no_function), Some(2));
    // One name that is there does not hide another that is not.
    let both = ["report", "--only", "twice", "--only", "nowhere"];
    assert_eq!(told(&both, "is called nowhere"), Some(2));
    // What is there and never ran, or is left out by another option, is no mistake.
    let never = shop.report(&["--only", "libnumber!thrice", "--format", "csv"]);
    assert!(never.contains(",thrice,"), "{never}");
    for words in [
        &["report", "--only", "twice", "--never"][..],
        &["report", "--only", "twice", "--skip", "twice"],
        &["report", "--only", "twice", "--module", "program"],
        &[
            "export", "--format", "lcov", "--only", "twice", "--module", "program",
        ],
    ] {
        assert_eq!(told(words, ""), Some(0), "{words:?}");
    }
}

#[test]
fn a_module_that_is_named_is_all_that_is_counted() {
    for engine in ["detour", "breakpoint"] {
        let shop = counted("-g");
        shop.forget();
        shop.must_count(&["--engine", engine, "--only", "libnumber.so.1", "./program"]);
        let calls = ["twice", "thrice", "program", "main"].map(|it| shop.calls(it));
        assert_eq!(calls, [Some(10), Some(0), None, None], "{engine}");
        shop.forget();
        shop.must_count(&["--engine", engine, "--only", "libnumber!twice", "./program"]);
        assert_eq!(shop.calls("twice"), Some(10), "{engine}");
        assert_eq!(shop.calls("thrice"), None, "{engine}");
    }
}

#[test]
fn modules_of_the_same_name_are_told_apart() {
    let shop = Workshop::new();
    let mut loads = String::new();
    for name in ["one", "two"] {
        fs::create_dir(shop.path(name)).unwrap();
        shop.write(
            &format!("{name}.c"),
            format!("int {name}(int x) {{ return x; }}\n"),
        );
        let library = format!("{name}/libsame.so");
        let source = format!("{name}.c");
        shop.must(&["gcc", "-shared", "-fPIC", &source, "-o", &library]);
        loads.push_str(&format!(
            "((int (*)(int)) dlsym(dlopen(\"./{library}\", RTLD_NOW), \"{name}\"))(1);\n"
        ));
    }
    let program = format!("#include <dlfcn.h>\nint main(void)\n{{\n{loads}return 0;\n}}\n");
    shop.build("program", &program, &[]);
    shop.must_count(&["./program"]);
    let text = shop.report(&["--only", "libsame.so"]);
    assert!(text.contains("one/libsame.so  one\n"), "{text}");
    assert!(text.contains("two/libsame.so  two\n"), "{text}");
    assert_eq!(functions_in(&shop, "two/libsame.so"), ["two"]);
    let listing = shop.headcount(&["annotate", "--asm", "libsame.so"]).stdout;
    for name in ["one", "two"] {
        let path = shop.path(&format!("{name}/libsame.so"));
        let heading = format!("{name}  in {}\n", path.canonicalize().unwrap().display());
        assert!(listing.contains(&heading), "{listing}");
    }
    // The same path, but another build.
    shop.write("two.c", "int two(int x) { return 2 * x + 1; }\n");
    shop.must(&["gcc", "-shared", "-fPIC", "two.c", "-o", "two/libsame.so"]);
    shop.must_count(&["./program"]);
    let text = shop.report(&["--runs", "all"]);
    assert!(
        text.contains("two/libsame.so was counted in 2 builds"),
        "{text}"
    );
}

/// Those of `one` and `two` that are in a module.
fn functions_in(shop: &Workshop, module: &str) -> Vec<String> {
    let csv = shop.report(&["--only", module, "--format", "csv"]);
    let names = csv.lines().filter_map(|row| row.split(',').nth(1));
    let own = names.filter(|it| ["one", "two"].contains(it));
    own.map(str::to_owned).collect()
}

#[test]
fn functions_are_called_what_other_code_calls_them() {
    let shop = Workshop::new();
    let library = "\
__attribute__((visibility(\"hidden\"))) int __GI_answer(int n)
{
    return n + 1;
}
extern int __libc_answer(int) __attribute__((alias(\"__GI_answer\")));
extern int answer(int) __attribute__((weak, alias(\"__GI_answer\")));
";
    shop.write("number.c", library);
    for debug in ["-g", "-g0"] {
        let build = ["gcc", debug, "-shared", "-fPIC", "number.c"];
        shop.must(&[&build[..], &["-o", "libnumber.so.1"]].concat());
        let program = "int answer(int); int main(void) { return answer(3) != 4; }";
        shop.build("program", program, &["./libnumber.so.1", "-Wl,-rpath,."]);
        shop.must_count(&["--modules", &here(&shop), "./program"]);
        let rows = shop.report(&["--by", "function", "--all", "--format", "csv"]);
        let has = |name: &str| rows.contains(&format!("libnumber.so.1,{name},"));
        assert!(has("answer"), "{debug}: {rows}");
        assert!(
            !has("__GI_answer") && !has("__libc_answer"),
            "{debug}: {rows}"
        );
    }
}
