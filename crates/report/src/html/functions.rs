//! Which functions does the page have, and what is told of each?

use super::{Page, value};
use crate::Error;
use crate::count::Count;
use crate::names::{self, Named};
use crate::rows::{Tally, calls};
use headcount_model::LinkAddr;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The functions in the order of the program: what is told of others names them by their place
/// here.
#[derive(Default)]
pub struct Functions<'a> {
    pub list: Vec<Shown<'a>>,
    /// Their places, by module and entry.
    places: HashMap<(usize, LinkAddr), usize>,
}

/// A function of which something was counted.
pub struct Shown<'a> {
    pub module: usize,
    pub named: Named<'a>,
    pub calls: Count,
    /// Whether it is the user's own.
    pub is_own: bool,
    pub tally: Tally,
}

/// All that are wanted.
pub fn all<'a>(page: &Page<'a>) -> Result<Functions<'a>, Error> {
    let mut list = Vec::new();
    for (module, counted) in page.counted.iter().enumerate() {
        for named in names::functions(counted, page.demangle) {
            if !page.only.wants(&named) {
                continue;
            }
            list.push(Shown {
                module,
                calls: calls(&named),
                is_own: page.own.library(&named).is_none(),
                tally: Tally::of(&named)?,
                named,
            });
        }
    }
    let places = list.iter().enumerate();
    let places = places
        .map(|(place, it)| ((it.module, it.named.function.address), place))
        .collect();
    Ok(Functions { list, places })
}

impl Functions<'_> {
    /// The place of the function with this entry.
    pub fn at(&self, module: usize, entry: LinkAddr) -> Option<usize> {
        self.places.get(&(module, entry)).copied()
    }
}

impl Shown<'_> {
    /// Its row in the index: what `page/data.js` makes a function of.
    pub fn row(&self, file: Option<usize>, code: Option<usize>) -> Value {
        let function = self.named.function;
        json!([
            value::name(&self.named.name),
            self.module,
            file.map_or(Value::from(-1), Value::from),
            function.source.map_or(0, |(_, line)| line),
            value::count(self.calls),
            value::count(self.tally.executed),
            self.tally.instructions,
            value::count(self.tally.never),
            format!("{:x}", function.address.0),
            function.blocks.len(),
            code.map_or(Value::from(-1), Value::from),
            u8::from(self.is_own),
        ])
    }
}
