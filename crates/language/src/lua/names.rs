//! Names of functions and of sources.
//!
//! A function of Lua has no name; but the instructions behind the one that makes it say what it is put into.

use super::opcodes::{CLOSURE, GETFIELD, GETTABUP, GETUPVAL, SETFIELD, SETTABUP, SETUPVAL, Word};
use super::proto::Proto;
use crate::Memory;

/// The upvalue that globals are fields of.
const GLOBALS: &str = "_ENV";

/// So many instructions before one are looked at for what a register holds.
const FARTHEST_BACK: usize = 8;

/// The name of each function in a function; `None` for those that are not put anywhere at once.
pub(super) fn names(memory: &dyn Memory, outer: &Proto) -> Vec<Option<String>> {
    let mut names = vec![None; outer.inner.len()];
    for (at, word) in outer.code.iter().enumerate() {
        if word.opcode() == CLOSURE
            && let Some(name) = names.get_mut(word.bx())
        {
            *name = Name { memory, outer, at }.of_closure(*word);
        }
    }
    names
}

/// A name that is looked for at an instruction.
struct Name<'a> {
    memory: &'a dyn Memory,
    outer: &'a Proto,
    at: usize,
}

impl Name<'_> {
    /// What the function is put into that an instruction makes.
    fn of_closure(&self, made: Word) -> Option<String> {
        let next = *self.outer.code.get(self.at + 1)?;
        let is_it = !next.k() && next.c() == made.a();
        match next.opcode() {
            SETTABUP if is_it => {
                let field = self.outer.constant(self.memory, next.b())?;
                Some(self.field_of_upvalue(next.a(), field))
            }
            SETFIELD if is_it => {
                let field = self.outer.constant(self.memory, next.b())?;
                let table = self.in_register(next.a(), self.at);
                Some(match table {
                    Some(table) => format!("{table}{}{field}", self.separator(made)),
                    None => field,
                })
            }
            SETUPVAL if next.a() == made.a() => self.upvalue(next.b()),
            _ => self.local(made.a(), self.at + 1),
        }
    }

    /// What is called with an object in front is written with a colon.
    fn separator(&self, made: Word) -> &'static str {
        let function = self.outer.inner.get(made.bx());
        let first = function
            .filter(|it| it.parameters > 0)
            .and_then(|it| it.locals.first());
        match first.is_some_and(|it| it.name == "self") {
            true => ":",
            false => ".",
        }
    }

    fn upvalue(&self, number: u32) -> Option<String> {
        self.outer.upvalues.get(number as usize)?.clone()
    }

    fn field_of_upvalue(&self, number: u32, field: String) -> String {
        match self.upvalue(number) {
            Some(table) if table != GLOBALS => format!("{table}.{field}"),
            _ => field,
        }
    }

    /// The local variable that a register is from an instruction on.
    fn local(&self, register: u32, at: usize) -> Option<String> {
        let locals = self.outer.locals.iter();
        let mut alive = locals.filter(|it| it.begins <= at && at < it.ends);
        let local = alive.nth(register as usize)?;
        (!local.name.starts_with('(')).then(|| local.name.clone())
    }

    /// What a register holds before an instruction, in words.
    fn in_register(&self, register: u32, at: usize) -> Option<String> {
        if let Some(local) = self.local(register, at) {
            return Some(local);
        }
        let first = at.saturating_sub(FARTHEST_BACK);
        let before = self.outer.code[first..at].iter().enumerate().rev();
        let (index, word) = before
            .map(|(index, word)| (first + index, *word))
            .find(|(_, word)| word.a() == register && word.sets_first())?;
        match word.opcode() {
            GETTABUP => {
                let field = self.outer.constant(self.memory, word.c())?;
                Some(self.field_of_upvalue(word.b(), field))
            }
            GETFIELD => {
                let field = self.outer.constant(self.memory, word.c())?;
                let table = self.in_register(word.b(), index)?;
                Some(format!("{table}.{field}"))
            }
            GETUPVAL => self.upvalue(word.b()),
            _ => None,
        }
    }
}

/// What the source of a piece of program is called, as in Lua's own messages; but files have their whole names.
pub(super) fn source(source: Option<&str>) -> String {
    /// So many bytes of a text are quoted, with all that is around them in a line of 60.
    const LONGEST: usize = 44;
    let Some(source) = source else {
        return "?".to_owned();
    };
    if let Some(name) = source.strip_prefix(['=', '@']) {
        return name.to_owned();
    }
    let first = source.split('\n').next().unwrap_or("");
    if first.len() == source.len() && source.len() <= LONGEST {
        return format!("[string \"{source}\"]");
    }
    let mut end = first.len().min(LONGEST + 1);
    while !first.is_char_boundary(end) {
        end -= 1;
    }
    format!("[string \"{}...\"]", &first[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_called_what_lua_calls_them() {
        let cases = [
            (Some("@a/b.lua"), "a/b.lua"),
            (Some("=stdin"), "stdin"),
            (Some("return 1"), "[string \"return 1\"]"),
            (Some("x = 1\ny = 2"), "[string \"x = 1...\"]"),
            (None, "?"),
        ];
        for (given, expected) in cases {
            assert_eq!(source(given), expected);
        }
        let long = "ä".repeat(40);
        let expected = format!("[string \"{}...\"]", "ä".repeat(22));
        assert_eq!(source(Some(&long)), expected);
    }
}
