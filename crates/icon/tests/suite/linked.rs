//! Programs as they are linked: whose each instruction is.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use headcount_icon::{
    Count, Found, Icode, Joined, Kind, Opcode, Refusal, Translation, Unreadable, join, translate,
};

use crate::oracle::{Dice, LIBRARY, folder, icont};

/// The translation of a file, from a folder or the library.
fn source(folder: &Path, name: &[u8]) -> Option<Translation> {
    let name = std::str::from_utf8(name).ok()?;
    let read = |name: &str| {
        let here = std::fs::read(folder.join(name));
        here.or_else(|_| std::fs::read(Path::new(LIBRARY).join(name)))
            .ok()
    };
    let text: Rc<[u8]> = read(name)?.into();
    let mut find = |wanted: &[u8]| {
        let text = read(std::str::from_utf8(wanted).ok()?)?;
        Some(Found {
            name: wanted.to_vec(),
            text: text.into(),
        })
    };
    translate(name.as_bytes(), text, &mut find).ok()
}

fn linked(folder: &Path, name: &str) -> Icode {
    assert!(
        icont(folder, &["-s", &format!("{name}.icn")]),
        "{name} is not linked"
    );
    Icode::read(&std::fs::read(folder.join(name)).unwrap()).unwrap()
}

/// Translations of files, each made once.
#[derive(Default)]
struct Sources(HashMap<Vec<u8>, Option<Translation>>);

impl Sources {
    fn read(&mut self, folder: &Path, icode: &Icode) {
        for file in icode.files() {
            let translation = || source(folder, file);
            self.0.entry(file.to_vec()).or_insert_with(translation);
        }
    }

    fn of(&self, icode: &Icode) -> Vec<&Translation> {
        let found = icode.files().into_iter();
        found.filter_map(|it| self.0.get(it)?.as_ref()).collect()
    }
}

#[test]
fn every_instruction_of_the_library_is_told() {
    let folder = folder("linked");
    let (mut files, mut instructions) = (0, 0);
    let mut sources = Sources::default();
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(LIBRARY).expect("the package icon-ipl is needed") {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(stem) = name.strip_suffix(".icn") else {
            continue;
        };
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        if !path.with_extension("u1").exists()
            || text.lines().any(|it| it.starts_with("procedure main"))
        {
            continue;
        }
        let program = format!("invocable all\nlink \"{stem}\"\nprocedure main()\nend\n");
        std::fs::write(folder.join("all.icn"), program).unwrap();
        if !icont(&folder, &["-s", "all.icn"]) {
            wrong.push(format!("{name}: cannot be linked"));
            continue;
        }
        let icode = match Icode::read(&std::fs::read(folder.join("all")).unwrap()) {
            Ok(icode) => icode,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        sources.0.remove(&b"all.icn"[..]);
        sources.read(&folder, &icode);
        let translations = sources.of(&icode);
        let joined = join(&icode, &translations);
        for refusal in &joined.refused {
            // The package has no source of this one.
            let file = "cfunc.icn".to_owned();
            if *refusal != (Refusal::NoSource { file }) {
                wrong.push(format!("{name}: {refusal}"));
            }
        }
        files += 1;
        instructions += icode
            .procedures
            .iter()
            .map(|it| it.instructions.len())
            .sum::<usize>();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        files > 300 && instructions > 100_000,
        "{files} files, {instructions} instructions"
    );
}

/// Writes, links and joins a program of one file.
fn with_program<T>(name: &str, text: &str, use_it: impl FnOnce(&Icode, &Joined) -> T) -> T {
    let folder = folder(name);
    std::fs::write(folder.join("p.icn"), text).unwrap();
    let icode = linked(&folder, "p");
    let mut sources = Sources::default();
    sources.read(&folder, &icode);
    let translations = sources.of(&icode);
    let joined = join(&icode, &translations);
    use_it(&icode, &joined)
}

/// The program of the paper's Appendix C. (Today's procedures have parentheses.)
const APPENDIX_C: &str = "procedure main()
  while line := read(&input) do
    write(line)
end
";

/// How often each of its instructions runs if there are `n` lines, by hand: of statements and the
/// loop, of the condition up to the read, of what follows a line.
fn appendix_c(n: u64) -> Vec<u64> {
    let (once, tried, read) = (1, n + 1, n);
    let condition = [tried; 6]; // mark0, pnull, var, var, keywd, invoke
    let body = [read; 8]; // asgn, unmark, mark, var, var, invoke, unmark, goto
    // The loop fails out of its statement: neither the `unmark` behind it runs nor anything of it.
    [&[once][..], &condition, &body, &[0, once, once]].concat()
}

#[test]
fn appendix_c_counts_as_it_did_in_1979() {
    with_program("appendix_c", APPENDIX_C, |icode, joined| {
        assert_eq!(joined.refused, []);
        let main = &icode.procedures[0];
        let executed = main
            .instructions
            .iter()
            .filter(|it| it.opcode != Opcode::Noop);
        let offsets: Vec<u64> = executed.map(|it| it.offset).collect();
        let translation = joined.translation(0).unwrap();
        let texts = translation
            .tokens
            .iter()
            .map(|it| String::from_utf8_lossy(&it.text));
        let texts: Vec<_> = texts.collect();
        let expected = [
            "while", "line", ":=", "read", "(", "&input", "do", "write", "(", "line",
        ];
        assert_eq!(texts, expected);
        for n in [0, 3, 31] {
            let by_hand = appendix_c(n);
            assert_eq!(by_hand.len(), offsets.len());
            let of = |offset: u64| by_hand[offsets.iter().position(|it| *it == offset).unwrap()];
            let count = |of_builtins: bool| -> Vec<u64> {
                let tokens = translation.tokens.iter();
                let counts = tokens.map(|token| match joined.count(0, token, of) {
                    _ if !of_builtins && joined.is_builtin_call(0, token) => 0,
                    Some(Count::Exact(count)) => count,
                    other => panic!("{other:?}"),
                });
                counts.collect()
            };
            let paper = [1, n + 1, n, n + 1, 0, n + 1, n, n, 0, n];
            assert_eq!(count(false), paper, "{n} lines");
            let ours = [1, n + 1, n, n + 1, n + 1, n + 1, n, n, n, n];
            assert_eq!(count(true), ours, "{n} lines");
        }
    });
}

#[test]
fn a_program_of_several_files_is_told_without_what_the_linker_left_out() {
    let text = "link numbers, lists
procedure main()
   write(commas(1000000), &digits, 12345678901234567890, 'abc', 1.5)
   every write(!lrotate([1, 2], 1))
end
procedure never_named()
end
";
    with_program("several", text, several_files_are_told);
}

fn several_files_are_told(icode: &Icode, joined: &Joined) {
    assert_eq!(joined.refused, []);
    assert!(icode.files().contains(&&b"numbers.icn"[..]));
    let names: Vec<&[u8]> = icode.procedures.iter().map(|it| &it.name[..]).collect();
    assert!(names.contains(&&b"commas"[..]) && !names.contains(&&b"never_named"[..]));
    // Where the table of lines has a place that a call has in ucode, it is that of the token.
    let mut calls = 0;
    for executed in icode.procedures.iter().flat_map(|it| &it.instructions) {
        let Some((_, token)) = joined.token(executed.offset) else {
            continue;
        };
        if token.kind == Kind::Call && executed.opcode == Opcode::Invoke {
            assert_eq!(icode.place(executed.offset).unwrap().line, token.line);
            calls += 1;
        }
    }
    assert!(calls > 10, "{calls}");
}

#[test]
fn files_that_were_translated_in_one_go_share_their_last_place() {
    let folder = folder("in_one_go");
    let main = "procedure main()\n   f()\n\nend\n";
    // Its first place is line 4, column 1, as the last of the other.
    let other = "\n\nprocedure\nf()\n   return 1\nend\n";
    std::fs::write(folder.join("p.icn"), main).unwrap();
    std::fs::write(folder.join("q.icn"), other).unwrap();
    assert!(icont(&folder, &["-s", "p.icn", "q.icn"]));
    let icode = Icode::read(&std::fs::read(folder.join("p")).unwrap()).unwrap();
    let mut sources = Sources::default();
    sources.read(&folder, &icode);
    let translations = sources.of(&icode);
    let joined = join(&icode, &translations);
    assert_eq!(joined.refused, []);
    let linked = icode.procedures.iter().find(|it| it.name == b"f").unwrap();
    assert_ne!(icode.place(linked.entry + 4).unwrap().line, 5);
    assert!(
        linked
            .instructions
            .iter()
            .any(|it| joined.token(it.offset).is_some())
    );
}

#[test]
fn numbers_of_every_size_are_the_linkers() {
    let text = "procedure main()
   write(9223372036854775807, 9223372036854775296, 9223372036854774784, 99999999999999999999)
   write(16r7fffffffffffffff, 36rzzzzzzzzzzzzzzzzzz, 2r1, 0, 007, 1e5, 1.5e-3, .5, 3., 00.25, 1E+2)
   write(1e307, 1e308, 1e309, 1e999, 12345e305, 1e-307, 1e-308, 1e-309, 1e-320, 0.001e310, 0e400, .5e2)
   write('', 'a', '\\xff\\0', \"\", \"\\xff\\0\", &null, &fail)
end
";
    with_program("numbers", text, |icode, joined| {
        assert_eq!(joined.refused, []);
        let told = icode.procedures[0].instructions.iter();
        let told = told.filter(|it| joined.token(it.offset).is_some()).count();
        assert!(told > 50, "{told}");
    });
}

#[test]
fn a_source_that_was_changed_is_refused_by_name() {
    let text = "procedure main()
   local x
   x := 1 + 2
   every write(!\"abc\" | 'def' | 1.5 | &lcase | x)
   while x < 10 do x +:= 1
end
";
    let changes = [
        ("1 + 2", "1 - 2"),
        ("1 + 2", "1 + 3"),
        ("abc", "abd"),
        ("def", "deg"),
        ("1.5", "2.5"),
        ("&lcase", "&ucase"),
        ("| x", "| y"),
        ("write", "abort"),
        ("x < 10", "x > 10"),
        ("while", "until"),
        ("   x :=", "    x :="),
        ("local x", "local x, y"),
        ("local x", "static x"),
        ("every", "\n every"),
    ];
    let folder = folder("changed");
    std::fs::write(folder.join("p.icn"), text).unwrap();
    let icode = linked(&folder, "p");
    let refused = |text: &str| {
        std::fs::write(folder.join("p.icn"), text).unwrap();
        let translation = source(&folder, b"p.icn").unwrap();
        join(&icode, &[&translation]).refused
    };
    assert_eq!(refused(text), []);
    for (from, to) in changes {
        let expected = Refusal::Changed {
            file: "p.icn".to_owned(),
            procedure: "main".to_owned(),
        };
        // A local variable more, that nothing uses, changes no instruction.
        let expected = match to {
            "local x, y" => vec![],
            _ => vec![expected],
        };
        assert_eq!(refused(&text.replacen(from, to, 1)), expected, "{to}");
    }
    let file = "p.icn".to_owned();
    assert_eq!(join(&icode, &[]).refused, [Refusal::NoSource { file }]);
}

#[test]
fn icode_of_another_version_is_refused_by_name() {
    let folder = folder("version");
    std::fs::write(folder.join("p.icn"), APPENDIX_C).unwrap();
    linked(&folder, "p");
    let mut file = std::fs::read(folder.join("p")).unwrap();
    let at = file.windows(5).position(|it| it == b"I9.0.").unwrap();
    file[at + 1] = b'8';
    let expected = Unreadable::Version("I8.0.00/32".to_owned());
    assert_eq!(Icode::read(&file).unwrap_err(), expected);
    assert_eq!(Icode::read(b"\x7fELF").unwrap_err(), Unreadable::NoIcode);
}

#[test]
fn no_damage_makes_the_reader_of_icode_panic() {
    let folder = folder("damaged_icode");
    let text = format!("link lists\n{APPENDIX_C}procedure f()\n return lrotate('a', 1.5)\nend\n");
    let text = text.replace("write(line)", "f(line)");
    std::fs::write(folder.join("p.icn"), text).unwrap();
    let icode = linked(&folder, "p");
    let mut sources = Sources::default();
    sources.read(&folder, &icode);
    let translations = sources.of(&icode);
    let file = std::fs::read(folder.join("p")).unwrap();
    let script = file.windows(4).position(|it| it == b"\n\x0c\n\0").unwrap();
    let check = |file: &[u8]| {
        if let Ok(icode) = Icode::read(file) {
            join(&icode, &translations);
        }
    };
    for cut in 0..file.len() {
        check(&file[..cut]);
    }
    let mut dice = Dice(9);
    for _ in 0..4000 {
        let mut damaged = file.clone();
        for _ in 0..1 + dice.below(4) {
            let at = script + dice.below(file.len() - script);
            damaged[at] = match dice.below(3) {
                0 => 0xff,
                1 => damaged[at].wrapping_add(1),
                _ => dice.below(256) as u8,
            };
        }
        check(&damaged);
    }
}
