//! The files of modules that were counted, for what profiles do not keep.

use headcount_binary::{InlinedNames, Wanted};
use headcount_model::{CodeSymbol, LinkAddr, Module, Pointer};
use headcount_monitor::{FileBytes, find_debug_file, foreign_file};
use headcount_report::export::Chain;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The files, each read once.
#[derive(Default)]
pub struct Files {
    known: RefCell<HashMap<String, FileBytes>>,
}

impl Files {
    /// The link address of a module's first byte: 0, but for programs that are not
    /// position-independent. Where the file is gone, that is a guess.
    pub fn base(&self, module: &Module) -> u64 {
        let layout = headcount_binary::layout((*self.bytes(module)).as_ref());
        layout.map_or(0, |it| {
            let starts = it.segments.iter().map(|it| it.address.0);
            starts.min().unwrap_or(0)
        })
    }

    /// The symbols of its code.
    pub fn symbols(&self, module: &Module) -> Result<Vec<CodeSymbol>, String> {
        let bytes = self.same_build(module)?;
        headcount_binary::code_symbols((*bytes).as_ref()).map_err(|it| it.to_string())
    }

    /// What its pointers lead to; nothing, if the file that says it is gone.
    pub fn pointers(&self, module: &Module) -> HashMap<LinkAddr, Pointer> {
        let bytes = self.same_build(module).ok();
        let pointers = bytes.and_then(|it| headcount_binary::pointers((*it).as_ref()).ok());
        pointers.unwrap_or_default()
    }

    /// Which functions each address belongs to.
    pub fn chains(&self, module: &Module, addresses: &[LinkAddr]) -> Result<Vec<Chain>, String> {
        let bytes = self.same_build(module)?;
        headcount_binary::inline_chains((*bytes).as_ref(), addresses).map_err(|it| it.to_string())
    }

    /// What was inlined into its functions.
    pub fn inlined_names(&self, module: &Module) -> Result<InlinedNames, String> {
        let bytes = self.same_build(module)?;
        let path = Path::new(&module.path);
        let find = &mut |wanted: Wanted<'_>| find_debug_file(path, &wanted);
        headcount_binary::inlined_names((*bytes).as_ref(), find).map_err(|it| it.to_string())
    }

    /// The bytes of the file, if it is still the one that was counted.
    fn same_build(&self, module: &Module) -> Result<FileBytes, String> {
        let bytes = self.bytes(module);
        if (*bytes).as_ref().is_empty() {
            return Err("is not there any more, and is needed for this".into());
        }
        match headcount_binary::is_build((*bytes).as_ref(), &module.build_id) {
            true => Ok(bytes),
            false if !module.build_id.starts_with("elf-") => Err(
                "was built with counters in it; count the program as it is, with `headcount run`"
                    .into(),
            ),
            false => Err("was built anew since it was counted; count it again".into()),
        }
    }

    /// A profile may come from anyone and may name anything.
    fn bytes(&self, module: &Module) -> FileBytes {
        let mut known = self.known.borrow_mut();
        let read = || foreign_file::bytes(Path::new(&module.path));
        known
            .entry(module.path.clone())
            .or_insert_with(|| read().unwrap_or_else(|_| Arc::new(Vec::new())))
            .clone()
    }
}
