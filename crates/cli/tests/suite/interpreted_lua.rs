//! Programs in Lua: every line as often as a line hook says.

use std::collections::BTreeMap;
use std::fs;

use crate::interpreted::{Place, counted, is_sure, lines, told};
use crate::workshop::{Workshop, is_thorough};

const LUA: &str = "/usr/bin/lua5.4";

/// What counts with a hook, and programs that do what programs do.
const TRUTH: &str = include_str!("interpreted/lua/truth.c");

macro_rules! programs {
    ($($name:literal),+) => {
        [$(($name, include_str!(concat!("interpreted/lua/", $name)))),+]
    };
}

const PROGRAMS: [(&str, &str); 16] = programs![
    "classes.lua",
    "closing.lua",
    "closures.lua",
    "coroutines.lua",
    "errors.lua",
    "iterators.lua",
    "json.lua",
    "loops.lua",
    "metamethods.lua",
    "modules.lua",
    "numbers.lua",
    "queens.lua",
    "recursion.lua",
    "sorting.lua",
    "strings.lua",
    "varargs.lua"
];

fn compile(shop: &Workshop, name: &str, source: &str, more: &[&str]) {
    let file = format!("{name}.c");
    shop.write(&file, source);
    let words = ["gcc", "-O1", "-I/usr/include/lua5.4", &file, "-o", name];
    shop.must(&[&words[..], more].concat());
}

/// The lines of a program and of its modules, as a hook has them.
fn traced(shop: &Workshop, program: &str) -> BTreeMap<Place, u64> {
    shop.must(&["./truth", "truth.txt", program]);
    let text = fs::read_to_string(shop.path("truth.txt")).unwrap();
    let mut counts = BTreeMap::new();
    for row in text.lines() {
        let [file, line, count] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let file = file.strip_prefix("./").unwrap_or(file).to_owned();
        let sum: &mut u64 = counts.entry((file, line.parse().unwrap())).or_default();
        *sum += count.parse::<u64>().unwrap();
    }
    counts
}

/// The counts of some lines of a file, all of them exact.
fn of<const N: usize>(shop: &Workshop, file: &str, these: [u32; N]) -> [u64; N] {
    let found = lines(shop, &[]);
    these.map(|line| match found.get(&(file.to_owned(), line)) {
        Some((count, is_exact)) => {
            assert!(is_exact, "{file}:{line}");
            *count
        }
        None => 0,
    })
}

#[test]
fn lines_of_lua_begin_as_often_as_its_hook_says() {
    let shop = Workshop::new();
    compile(&shop, "truth", TRUTH, &["-llua5.4"]);
    shop.write("helper.lua", include_str!("interpreted/lua/helper.lua"));
    let step = if is_thorough() { 1 } else { 2 };
    for (program, text) in PROGRAMS.into_iter().step_by(step) {
        shop.write(program, text);
        let truth = traced(&shop, program);
        assert!(truth.len() > 20, "{program}: {truth:?}");
        counted(&shop, &[LUA, program]);
        let found = lines(&shop, &[]);
        for (place, count) in &truth {
            assert_eq!(
                found.get(place),
                Some(&(*count, true)),
                "{program}: {place:?}"
            );
        }
        let never = found.iter().filter(|it| !truth.contains_key(it.0));
        for (place, (count, _)) in never {
            assert!(
                *count == 0 || place.0.starts_with('['),
                "{program}: {place:?}"
            );
        }
        is_sure(&shop);
    }
}

/// The hook does not see that the body of such a loop begins for the first time.
#[test]
fn a_loop_on_one_line_counts_as_one_on_several() {
    let shop = Workshop::new();
    let program = "\
local n = 0
for i = 1, 5 do n = n + i end
for i = 5, 1 do n = n + i end
for _, v in ipairs({1, 2, 3}) do n = n + v end
for _, v in ipairs({}) do n = n + v end
local i = 0 while i < 4 do i = i + 1 end
repeat i = i - 1 until i == 0
print(n)
";
    shop.write("short.lua", program);
    counted(&shop, &[LUA, "short.lua"]);
    is_sure(&shop);
    assert_eq!(
        of(&shop, "short.lua", [2, 3, 4, 5, 6, 7, 8]),
        [6, 1, 4, 1, 5, 4, 1]
    );
}

#[test]
fn functions_have_the_names_of_what_they_are_put_into() {
    let shop = Workshop::new();
    let program = "\
local M = { helper = function() end }
local function plain() return 1 end
function whole() return plain() end
function M.field() return whole() end
function M:method() return self.field() end
M.inner = {}
function M.inner.deep() return M:method() end
local up
local function outer()
  up = function() return M.inner.deep() end
end
outer()
up()
pcall(function() up() end)
";
    shop.write("names.lua", program);
    counted(&shop, &[LUA, "names.lua"]);
    is_sure(&shop);
    let csv = shop.report(&["--by", "function", "--format", "csv", "--language", "lua"]);
    for (name, calls) in [
        ("main chunk", 1),
        ("helper", 0),
        ("plain", 2),
        ("whole", 2),
        ("M.field", 2),
        ("M:method", 2),
        ("M.inner.deep", 2),
        ("outer", 1),
        ("up", 2),
        ("function <names.lua:14>", 1),
    ] {
        let row = format!(",{name},");
        let row = csv.lines().find(|it| it.contains(&row));
        let row = row.unwrap_or_else(|| panic!("{name}: {csv}"));
        assert!(row.split(',').any(|it| it == calls.to_string()), "{row}");
    }
}

/// Two thousand chunks, in few places of memory.
#[test]
fn memory_that_is_used_again_is_counted_for_each_chunk_that_had_it() {
    let shop = Workshop::new();
    let program = "\
for i = 0, 1999 do
  local text = 'y = ' .. i .. '\\n' .. ('x = y\\n'):rep(i % 3) .. 'if x % 2 == 1 then\\n  x = 7\\nend\\n'
  load(text, '=made' .. i % 3, 't', { x = i })()
  if i % 10 == 0 then
    collectgarbage()
  end
end
";
    shop.write("many.lua", program);
    counted(&shop, &[LUA, "many.lua"]);
    is_sure(&shop);
    assert_eq!(of(&shop, "made0", [1, 2, 3]), [667, 667, 333]);
    assert_eq!(of(&shop, "made1", [1, 2, 3, 4]), [667, 667, 667, 334]);
    assert_eq!(of(&shop, "made2", [1, 4, 5]), [666, 666, 333]);
    assert_eq!(of(&shop, "many.lua", [1, 2, 3, 5]), [2001, 2000, 2000, 200]);
}

#[test]
fn bytecode_in_files_is_counted_for_its_source() {
    let shop = Workshop::new();
    let program = "\
local function f(n)
  return n + 1
end
for i = 1, 10 do
  f(i)
end
";
    shop.write("f.lua", program);
    shop.must(&["luac5.4", "-o", "f.luac", "f.lua"]);
    counted(&shop, &[LUA, "f.luac"]);
    is_sure(&shop);
    assert_eq!(of(&shop, "f.lua", [2, 4, 5]), [10, 11, 10]);
    // Without lines, there are functions.
    shop.must(&["luac5.4", "-s", "-o", "f.luac", "f.lua"]);
    counted(&shop, &[LUA, "f.luac"]);
    is_sure(&shop);
    let csv = shop.report(&["--by", "function", "--format", "csv", "--language", "lua"]);
    assert!(
        csv.lines()
            .any(|it| it.contains("?,") && it.contains(",10")),
        "{csv}"
    );
}

#[test]
fn who_ends_has_counted_up_to_then() {
    let ends = [
        ("os.exit(4)", 4),
        ("os.exit(5, true)", 5),
        ("error('no')", 1),
        ("os.execute('kill -9 $PPID')", 128 + 9),
        ("coroutine.wrap(os.exit)(3)", 3),
    ];
    for (end, status) in ends {
        let shop = Workshop::new();
        let program = format!(
            "local function f(n)\n  return n\nend\nfor i = 1, 50 do\n  f(i)\nend\n{end}\nf(1)\n"
        );
        shop.write("ends.lua", &program);
        let said = shop.headcount(&["run", "-q", "--", LUA, "ends.lua"]);
        assert_eq!(said.status, Some(status), "{end}: {said:?}");
        is_sure(&shop);
        let found = lines(&shop, &[]);
        let count = |line| {
            found
                .get(&("ends.lua".to_owned(), line))
                .map_or(0, |it| it.0)
        };
        assert_eq!([2, 4, 5, 7, 8].map(count), [50, 51, 50, 1, 0], "{end}");
    }
}

/// A program that embeds Lua: states of threads, functions in C that are called back, children, another program.
const HOST: &str = r#"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int twice(lua_State *L) {
    lua_pushvalue(L, 1);
    lua_call(L, 0, 0);
    lua_pushvalue(L, 1);
    lua_call(L, 0, 0);
    return 0;
}

static void run(const char *file, int n) {
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_register(L, "twice", twice);
    if (luaL_loadfile(L, file))
        abort();
    lua_pushinteger(L, n);
    if (lua_pcall(L, 1, 0, 0))
        abort();
    lua_close(L);
}

static void *thread(void *file) {
    run(file, 100);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        run("part.lua", 1);
        _exit(7);
    }
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, thread, "part.lua");
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_register(L, "twice", twice);
    luaL_loadfile(L, "part.lua");
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (!child) {
            lua_pushinteger(L, 10);
            lua_call(L, 1, 0);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    execl(argv[0], argv[0], "again", NULL);
    return 1;
}
"#;

const PART: &str = "\
local n = ...
local function f()
  n = n + 1
end
for i = 1, n do
  twice(f)
end
";

#[test]
fn programs_that_embed_lua_are_counted_in_all_threads_and_children() {
    let whole = ["-l:liblua5.4.a", "-lm", "-ldl", "-pthread"];
    for libraries in [&["-llua5.4", "-pthread"][..], &whole] {
        let shop = Workshop::new();
        compile(&shop, "host", HOST, libraries);
        shop.write("part.lua", PART);
        let said = counted(&shop, &["./host"]);
        assert_eq!(said.status, Some(7));
        is_sure(&shop);
        let calls = 2 * (8 * 100 + 2 * 10 + 1);
        let runs = 8 + 2 + 1;
        assert_eq!(
            of(&shop, "part.lua", [1, 3, 5, 6]),
            [runs, calls, calls / 2 + runs, calls / 2],
            "{libraries:?}"
        );
    }
}

#[test]
fn a_program_in_two_languages_is_counted_in_both() {
    let shop = Workshop::new();
    let program = "\
import ctypes
lua = ctypes.CDLL('liblua5.4.so.0')
lua.luaL_newstate.restype = ctypes.c_void_p
state = ctypes.c_void_p(lua.luaL_newstate())
lua.luaL_openlibs(state)
for i in range(3):
    assert not lua.luaL_loadfilex(state, b'inner.lua', None)
    assert not lua.lua_pcallk(state, 0, 0, 0, None, None)
print('done')
";
    shop.write("outer.py", program);
    shop.write(
        "inner.lua",
        "local n = 0\nfor i = 1, 10 do\n  n = n + i\nend\n",
    );
    counted(&shop, &["/usr/bin/python3.11", "-B", "outer.py"]);
    is_sure(&shop);
    assert_eq!(of(&shop, "outer.py", [2, 6, 7, 9]), [1, 4, 3, 1]);
    assert_eq!(of(&shop, "inner.lua", [1, 2, 3]), [3, 33, 30]);
    let only = [
        "run",
        "-q",
        "--language",
        "lua",
        "--",
        "/usr/bin/python3.11",
        "-B",
        "outer.py",
    ];
    assert_eq!(shop.headcount(&only).status, Some(0));
    assert_eq!(of(&shop, "outer.py", [2]), [0]);
    assert_eq!(of(&shop, "inner.lua", [3]), [30]);
}

#[test]
fn a_lua_that_is_not_known_is_named() {
    let of_version = |ident: &str| {
        format!(
            "const char lua_ident[] = \"{ident}\";\nint lua_load(void) {{ return lua_ident[0]; }}\n\
             int main(void) {{ return lua_load() == 0; }}\n"
        )
    };
    for (ident, why) in [
        (
            "$Lua: Lua 5.1.5 Copyright",
            "it is Lua 5.1.5, and only Lua 5.4 is known",
        ),
        (
            "$LuaVersion: Lua 5.3.6  Copyright",
            "it is Lua 5.3.6, and only Lua 5.4 is known",
        ),
        (
            "LuaJIT 2.1.0-beta3",
            "it is LuaJIT 2.1.0, and only Lua 5.4 is known",
        ),
        (
            "$LuaVersion: Lua 5.4.6  Copyright",
            "it has no table of its instructions' code",
        ),
    ] {
        let shop = Workshop::new();
        compile(&shop, "it", &of_version(ident), &[]);
        counted(&shop, &["./it"]);
        let text = shop.report(&["--all"]);
        assert!(text.contains(why), "{ident}: {text}");
    }
    // Without symbols, nobody knows when programs come.
    let shop = Workshop::new();
    let words = ["-s", "-l:liblua5.4.a", "-lm", "-ldl", "-pthread"];
    compile(&shop, "host", HOST, &words);
    shop.write("part.lua", PART);
    counted(&shop, &["./host", "once"]);
    let text = shop.report(&["--all"]);
    assert!(text.contains("does not say where lua_load is"), "{text}");
}

#[test]
fn instructions_have_rows_in_the_order_of_lines() {
    let shop = Workshop::new();
    shop.write(
        "t.lua",
        "local t = {}\nfor i = 1, 10 do\n  t[i] = i * 2\nend\nif #t > 3 then\n  print(#t)\nend\n",
    );
    counted(&shop, &[LUA, "t.lua"]);
    let csv = shop.report(&["--by", "token", "--language", "lua", "--format", "csv"]);
    let rows: Vec<&str> = csv.lines().skip(1).collect();
    for row in [
        "lua,t.lua,1,0,NEWTABLE,,1,0,,",
        "lua,t.lua,2,0,FORPREP,,1,0,,",
        "lua,t.lua,2,0,FORLOOP,,10,0,,",
        "lua,t.lua,3,0,SETTABLE,,10,0,,",
        // Is it fetched only if the numbers are none.
        "lua,t.lua,3,0,MMBINK,,0,0,,",
        // Behind a test, a jump is not fetched; it did not jump.
        "lua,t.lua,5,0,JMP,,0,0,,",
        "lua,t.lua,6,0,CALL,,1,0,,",
    ] {
        assert!(rows.contains(&row), "{row}: {csv}");
    }
    let lines = rows.iter().map(|row| row.split(',').nth(2).unwrap());
    assert!(
        lines.map(|it| it.parse::<u32>().unwrap()).is_sorted(),
        "{csv}"
    );
    let lcov = told(&shop, &["export", "--format", "lcov"]);
    assert!(lcov.contains("DA:3,10"), "{lcov}");
    let source = told(&shop, &["annotate", "t.lua"]);
    assert!(source.contains("t[i] = i * 2"), "{source}");
    told(&shop, &["annotate", "--columns", "t.lua"]);
}
