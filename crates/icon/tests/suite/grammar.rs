//! What the library has no example of: small programs, and what is not one.

use std::path::Path;

use crate::oracle::{difference, folder, icont, ours};

#[test]
fn small_programs_become_the_ucode_that_icont_makes() {
    let folder = folder("programs");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(programs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::copy(&path, folder.join(&name)).unwrap();
        names.push(name);
    }
    names.retain(|it| it.ends_with(".icn"));
    for name in names {
        if let Some(difference) = difference(&folder, &name) {
            panic!("{name}: {difference}");
        }
        assert!(ours(&folder, &name).is_ok(), "{name} is no program");
    }
}

/// What `icont` refuses, we refuse.
const WRONG: &[&str] = &[
    "procedure main() write(1) end",
    "procedure main()\n write(1 2)\nend",
    "procedure main()\n break\nend",
    "procedure main()\n next\nend",
    "procedure main()\n while x do create break\nend",
    "procedure main()\n create return 1\nend",
    "procedure main()\n create suspend 1\nend",
    "procedure main()\n repeat create { next }\nend",
    "procedure main()\n x := case y of { }\nend",
    "procedure main()\n case y of { default: 1; default: 2 }\nend",
    "procedure main()\n case y of { 1: 2; }\nend",
    "procedure main()\n &nosuch\nend",
    "procedure main()\n local x, x\nend",
    "procedure main(x)\n local x\nend",
    "record r(x, x)",
    "procedure p()\nend\nprocedure p()\nend",
    "record p()\nprocedure p()\nend",
    "procedure main()\n \"abc\nend",
    "procedure main()\n 'abc\nend",
    "procedure main()\n 1e\nend",
    "procedure main()\n 1e+\nend",
    "procedure main()\n 37r1\nend",
    "procedure main()\n 1r0\nend",
    "procedure main()\n 8r9\nend",
    "procedure main()\n 8r\nend",
    "procedure main()\n x *: y\nend",
    "procedure main()\n x # y\n `\nend",
    "procedure main()\n x $ y\nend",
    "procedure main()\n x ( y\nend",
    "procedure main()\n if x\nend",
    "procedure main()\n if x else y\nend",
    "procedure main()\n while\nend",
    "procedure main()\n x := \nend",
    "procedure main()\n x[1:2:3]\nend",
    "procedure main()\n x[:2]\nend",
    "procedure main()\n x[1:]\nend",
    "procedure main()\n x.1\nend",
    "procedure main()\n & (x)\nend",
    "procedure main()\n x & & foo\nend",
    "procedure main()\n return &\nend",
    "procedure main(x[], y)\nend",
    "procedure main(x\nend",
    "procedure main\nend",
    "procedure ()\nend",
    "procedure main();",
    "x := 1",
    "link",
    "link 1",
    "link a,",
    "invocable x",
    "invocable",
    "invocable \"a\" : x",
    "global",
    "global x,",
    "record x",
    "record x(y[])",
    "end",
    "$endif",
    "$else",
    "$ifdef",
    "$ifdef X",
    "$ifdef _UNIX extra\n$endif",
    "$define",
    "$define 1 2",
    "$define x(y) z",
    "$define x 1\n$define x 2",
    "$define _UNIX 2",
    "$define x \"",
    "$undef",
    "$undef x y",
    "$include \"nosuch.icn\"",
    "$include",
    "$include \"x",
    "$include \"wrong.icn\"",
    "$line",
    "$line x",
    "$line 1 \"x",
    "$error",
    "$error explicit",
    "$nosuch",
    "$",
    "#line5x\nprocedure main()\nend",
    "#linear\nprocedure main()\nend",
    "procedure main()\n local x y\nend",
    "procedure main()\n initial\nend",
    "procedure main()\n initial x; initial y\nend",
    "procedure main()\n x; local y\nend",
    "procedure main()\n not\nend",
    "procedure main()\n x to\nend",
    "procedure main()\n x by y\nend",
    "procedure main()\n until do x\nend",
    "procedure main()\n create\nend",
    "procedure main()\n suspend do x\nend",
    "procedure main()\n default: x\nend",
    "procedure main()\n {x\nend",
    "procedure main()\n x}\nend",
    "procedure main()\n [x)\nend",
    "procedure main()\n x{y;z}\nend",
    "procedure main()\n break break\nend",
    "procedure main()\n while x do break break\nend",
    "procedure main()\n while x do break next\nend",
];

#[test]
fn what_icont_refuses_is_refused() {
    let folder = folder("wrong");
    for text in WRONG {
        std::fs::write(folder.join("wrong.icn"), text).unwrap();
        assert!(
            !icont(&folder, &["-s", "-c", "wrong.icn"]),
            "icont takes {text:?}"
        );
        let error = ours(&folder, "wrong.icn").err();
        assert!(error.is_some(), "we take {text:?}");
    }
}
