//! The files of modules that were counted, for what profiles do not keep.

use headcount_model::{CodeSymbol, LinkAddr, Module};
use headcount_report::export::Chain;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The files, each read once.
#[derive(Default)]
pub struct Files {
    known: RefCell<HashMap<String, Rc<Vec<u8>>>>,
}

impl Files {
    /// The link address of a module's first byte: 0, but for programs that are not
    /// position-independent. Where the file is gone, that is a guess.
    pub fn base(&self, module: &Module) -> u64 {
        let layout = headcount_binary::layout(&self.bytes(module));
        layout.map_or(0, |it| {
            let starts = it.segments.iter().map(|it| it.address.0);
            starts.min().unwrap_or(0)
        })
    }

    /// The symbols of its code.
    pub fn symbols(&self, module: &Module) -> Result<Vec<CodeSymbol>, String> {
        let bytes = self.same_build(module)?;
        headcount_binary::code_symbols(&bytes).map_err(|it| it.to_string())
    }

    /// Which functions each address belongs to.
    pub fn chains(&self, module: &Module, addresses: &[LinkAddr]) -> Result<Vec<Chain>, String> {
        let bytes = self.same_build(module)?;
        headcount_binary::inline_chains(&bytes, addresses).map_err(|it| it.to_string())
    }

    /// The bytes of the file, if it is still the one that was counted.
    fn same_build(&self, module: &Module) -> Result<Rc<Vec<u8>>, String> {
        let bytes = self.bytes(module);
        if bytes.is_empty() {
            return Err("is not there any more, and this format needs it".into());
        }
        match headcount_binary::is_build(&bytes, &module.build_id) {
            true => Ok(bytes),
            false if !module.build_id.starts_with("elf-") => Err(
                "was built with counters in it; count the program as it is, with `headcount run`"
                    .into(),
            ),
            false => Err("was built anew since it was counted; count it again".into()),
        }
    }

    fn bytes(&self, module: &Module) -> Rc<Vec<u8>> {
        let mut known = self.known.borrow_mut();
        // A profile may come from anyone and may name anything.
        let is_file = std::fs::metadata(&module.path).is_ok_and(|it| it.is_file());
        let read = || match is_file {
            true => Rc::new(std::fs::read(&module.path).unwrap_or_default()),
            false => Rc::default(),
        };
        known
            .entry(module.path.clone())
            .or_insert_with(read)
            .clone()
    }
}
