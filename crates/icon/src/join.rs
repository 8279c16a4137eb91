//! A linked program and translations of its sources in; whose each of its instructions is, out.
//!
//! The linker takes the ucode of each procedure that it keeps in order, so that instruction by
//! instruction the two are the same. That is checked, with all that an instruction says: a source
//! that was changed since is refused.

use std::collections::HashMap;

use crate::agree::{Agreed, agree};
use crate::icode::Icode;
use crate::line::words;
use crate::starts::Count;
use crate::tokens::Token;
use crate::translate::Translation;

/// Why the code of a file cannot be told by its tokens.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{file}: its source was not found")]
    NoSource { file: String },
    #[error("{file}: the source changed since it was translated (in the procedure {procedure})")]
    Changed { file: String, procedure: String },
}

/// Which instruction of a program is which in its sources.
#[derive(Debug)]
pub struct Joined<'a> {
    pub refused: Vec<Refusal>,
    translations: &'a [&'a Translation],
    /// Offsets of instructions, to translations and their tokens.
    tokens: HashMap<u64, (usize, u32)>,
    /// Of procedures of translations that are in the program, the offsets of their instructions.
    offsets: HashMap<(usize, usize), Vec<u64>>,
    builtin_calls: HashMap<(usize, u32), bool>,
}

pub fn join<'a>(icode: &Icode, translations: &'a [&'a Translation]) -> Joined<'a> {
    let mut known = HashMap::<(&[u8], &[u8]), Vec<_>>::new();
    for (number, translation) in translations.iter().enumerate() {
        for (procedure, code) in translation.procedures.iter().enumerate() {
            let file = translation.names.name(code.begins_in);
            let places = known.entry((file, &code.name)).or_default();
            places.push((number, procedure));
        }
    }
    let mut joined = Joined {
        refused: Vec::new(),
        translations,
        tokens: HashMap::new(),
        offsets: HashMap::new(),
        builtin_calls: HashMap::new(),
    };
    let has_source = |file: &[u8]| known.keys().any(|(it, _)| *it == file);
    for file in icode.files() {
        let mut agreed = Vec::new();
        let mut wrong = None;
        for linked in icode.procedures.iter().filter(|it| it.file == file) {
            let places = known.get(&(file, &linked.name[..]));
            let found = places
                .into_iter()
                .flatten()
                .find_map(|&(number, procedure)| {
                    let code = &translations[number].procedures[procedure];
                    Some((number, procedure, agree(icode, linked, code)?))
                });
            match found {
                Some(found) => agreed.push(found),
                None => wrong = wrong.or(Some(&linked.name)),
            }
        }
        match wrong {
            None => agreed.into_iter().for_each(|it| joined.take(it)),
            Some(_) if !has_source(file) => {
                let file = words(file);
                joined.refused.push(Refusal::NoSource { file });
            }
            Some(procedure) => joined.refused.push(Refusal::Changed {
                file: words(file),
                procedure: words(procedure),
            }),
        }
    }
    joined
}

impl Joined<'_> {
    fn take(&mut self, (number, procedure, agreed): (usize, usize, Agreed)) {
        let code = &self.translations[number].procedures[procedure];
        for (instruction, executed) in code.instructions().zip(&agreed.executed) {
            if let Some(token) = instruction.token {
                let tokens = executed.iter().map(|offset| (*offset, (number, token)));
                self.tokens.extend(tokens);
            }
        }
        let tokens = &self.translations[number].tokens;
        for token in tokens.iter().filter(|it| it.procedure == procedure) {
            if let Some(callee) = token.callee {
                let is_builtin = agreed.builtins.binary_search(&callee).is_ok();
                self.builtin_calls
                    .insert((number, token.number), is_builtin);
            }
        }
        let first = |it: &Vec<u64>| it.first().copied().unwrap_or(u64::MAX);
        let offsets = agreed.executed.iter().map(first).collect();
        self.offsets.insert((number, procedure), offsets);
    }

    /// What was joined, by its number.
    pub fn translation(&self, number: usize) -> Option<&Translation> {
        self.translations.get(number).copied()
    }

    /// Which token of which translation an instruction is of, by its offset.
    pub fn token(&self, offset: u64) -> Option<(usize, &Token)> {
        let (number, token) = self.tokens.get(&offset)?;
        Some((*number, self.translations[*number].token(*token)?))
    }

    /// How often a token of a translation was executed, with the counts of instructions by offset.
    /// None if it is not in the program: nothing names its procedure, or its file was refused.
    pub fn count(
        &self,
        translation: usize,
        token: &Token,
        of: impl Fn(u64) -> u64,
    ) -> Option<Count> {
        let offsets = self.offsets.get(&(translation, token.procedure))?;
        let of = |it: u32| offsets.get(it as usize).map_or(0, |it| of(*it));
        Some(token.start.count(of))
    }

    /// Whether a call names a function that is built in: the paper does not count its `(`. (A name
    /// that was given another value is still that name.)
    pub fn is_builtin_call(&self, translation: usize, token: &Token) -> bool {
        let key = (translation, token.number);
        self.builtin_calls.get(&key).copied().unwrap_or(false)
    }
}
