//! Which routines did a program use when it was counted before? They get their copies as soon as
//! their module is mapped, all at once, instead of one by one as each is met.
//!
//! That is a guess, and costs a little where it is wrong: a copy that nobody enters counts nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::rc::Rc;

use headcount_model::packed::{Packed, Packer};

/// For how many runs a routine is not used before it is forgotten.
const MOST_IDLE: u64 = 4;

/// What all programs of a run used.
#[derive(Debug, Default)]
pub struct UsedBefore(HashMap<Rc<Path>, Program>);

/// The routines of one module, by their starts: how many runs ago they were last used.
type Routines = BTreeMap<u64, u64>;

/// What one program used, by the fingerprints of its modules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Program {
    modules: BTreeMap<Rc<str>, Routines>,
    /// Modules that it had in this run.
    seen: Vec<Rc<str>>,
    /// What was recalled.
    before: Vec<u8>,
}

impl UsedBefore {
    /// What a program used of one of its modules, by address. `recall` knows of earlier runs.
    pub fn of(
        &mut self,
        program: &Rc<Path>,
        module: &Rc<str>,
        recall: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Vec<u64> {
        let program = self.0.entry(Rc::clone(program)).or_insert_with_key(|path| {
            let before = recall(&name(path)).unwrap_or_default();
            Program {
                modules: unpack(&before).unwrap_or_default(),
                seen: Vec::new(),
                before,
            }
        });
        if !program.seen.contains(module) {
            program.seen.push(Rc::clone(module));
        }
        let routines = program.modules.get(module);
        routines.into_iter().flatten().map(|it| *it.0).collect()
    }

    /// A program has met a routine that had no copy.
    pub fn met(&mut self, program: &Path, module: &Rc<str>, start: u64) {
        if let Some(program) = self.0.get_mut(program) {
            let routines = program.modules.entry(Rc::clone(module)).or_default();
            routines.insert(start, 0);
        }
    }

    /// At the end of a run, hands over what there is to know for others, if that is not what was
    /// known before. `ran`: did the routine of a module that begins here run?
    pub fn remember(&mut self, ran: &dyn Fn(&str, u64) -> bool, remember: &dyn Fn(&str, &[u8])) {
        for (path, program) in &mut self.0 {
            for module in &program.seen {
                if let Some(routines) = program.modules.get_mut(module) {
                    grow_older(routines, |start| ran(module, start));
                }
            }
            let now = pack(&program.modules);
            if now != program.before {
                remember(&name(path), &now);
            }
        }
    }
}

fn grow_older(routines: &mut Routines, ran: impl Fn(u64) -> bool) {
    for (start, idle) in routines.iter_mut() {
        *idle = match ran(*start) {
            true => 0,
            false => *idle + 1,
        };
    }
    routines.retain(|_, idle| *idle < MOST_IDLE);
}

fn name(program: &Path) -> String {
    format!("used-{}", program.display())
}

fn pack(modules: &BTreeMap<Rc<str>, Routines>) -> Vec<u8> {
    let mut to = Packer::default();
    to.number(modules.len());
    for (module, routines) in modules {
        to.text(module);
        to.column(routines.keys().copied());
        to.column(routines.values().copied());
    }
    to.0
}

/// What [`pack`] wrote. `None`: it did not write this.
fn unpack(bytes: &[u8]) -> Option<BTreeMap<Rc<str>, Routines>> {
    let mut from = Packed(bytes);
    let modules = from.many(|it| {
        let module = it.text()?;
        let (starts, idle) = (it.column()?, it.column()?);
        let is_whole = starts.len() == idle.len() && idle.iter().all(|it| *it < MOST_IDLE);
        let routines = starts.into_iter().zip(idle).collect();
        is_whole.then_some((Rc::from(module), routines))
    })?;
    from.0.is_empty().then(|| modules.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// What is kept from run to run.
    type Memory = RefCell<HashMap<String, Vec<u8>>>;

    /// A run of a program that meets some routines, and uses some. Which had it used before?
    fn run(memory: &Memory, meets: &[u64], uses: &[u64]) -> Vec<u64> {
        let mut used = UsedBefore::default();
        let (program, module): (Rc<Path>, Rc<str>) = (Rc::from(Path::new("/it")), Rc::from("m"));
        let recall = |name: &str| memory.borrow().get(name).cloned();
        let before = used.of(&program, &module, &recall);
        for start in meets {
            used.met(&program, &module, *start);
        }
        used.remember(&|_, start| uses.contains(&start), &|name, bytes| {
            memory.borrow_mut().insert(name.to_owned(), bytes.to_vec());
        });
        before
    }

    #[test]
    fn what_a_program_used_is_known_until_it_was_not_used_for_some_time() {
        let memory = Memory::default();
        assert!(run(&memory, &[0x10, 0x20, u64::MAX], &[0x10, 0x20, u64::MAX]).is_empty());
        for _ in 0..MOST_IDLE {
            assert_eq!(run(&memory, &[], &[0x10]), [0x10, 0x20, u64::MAX]);
        }
        assert_eq!(run(&memory, &[], &[0x10]), [0x10]);
        assert_eq!(run(&memory, &[], &[]), [0x10]);
    }

    #[test]
    fn nothing_is_written_where_nothing_is_new() {
        let memory = Memory::default();
        run(&memory, &[0x10], &[0x10]);
        let name = memory.borrow().keys().next().cloned().expect("it is kept");
        let kept = memory.borrow_mut().remove(&name).expect("it is kept");
        let mut used = UsedBefore::default();
        let program: Rc<Path> = Rc::from(Path::new("/it"));
        used.of(&program, &Rc::from("m"), &|_| Some(kept.clone()));
        used.remember(&|_, _| true, &|_, _| panic!("it is the same"));
    }

    #[test]
    fn whatever_is_kept_is_read_or_refused() {
        let routines: Routines = [(0x10, 0), (0x1000, 1), (u64::MAX, 3)].into();
        let modules = [(Rc::from("m"), routines)].into();
        let whole = pack(&modules);
        assert_eq!(unpack(&whole), Some(modules));
        for length in 0..whole.len() {
            assert_eq!(unpack(&whole[..length]), None, "{length}");
        }
        for place in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut damaged = whole.clone();
                damaged[place] = byte;
                let _ = unpack(&damaged);
            }
        }
    }
}
