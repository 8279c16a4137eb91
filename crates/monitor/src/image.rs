//! A module that is counted: its facts, what of it is counted, and where an address is in it.

use std::rc::Rc;

use headcount_binary::Layout;
use headcount_model::{Block, KeyedProbes, LinkAddr, Module, Span};

use crate::journal::Counters;

/// A module of the program, analysed once however many processes load it.
#[derive(Debug)]
pub struct Image {
    /// Its number in the journal.
    pub number: usize,
    /// Its facts.
    pub module: Rc<Module>,
    /// Where its segments are.
    pub layout: Layout,
    /// For each block of the module, in the order of its functions: is it counted?
    pub chosen: Vec<bool>,
    /// What was counted so far, a number for each block.
    pub counters: Counters,
    /// What is counted by value, if that was asked for.
    pub keyed: Option<Rc<KeyedProbes>>,
    /// Every block, by address.
    by_address: Vec<Place>,
}

/// Where a block is among the facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    address: LinkAddr,
    /// Its number in the module.
    number: u32,
    function: u32,
    /// Its number in the function.
    block: u32,
}

/// A place in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Number of the block in the module.
    pub block: u32,
    /// Number of the instruction in the block.
    pub instruction: u32,
}

impl Image {
    /// Puts an image together.
    pub fn new(
        number: usize,
        module: Rc<Module>,
        layout: Layout,
        chosen: Vec<bool>,
        counters: Counters,
    ) -> Self {
        let mut by_address = Vec::new();
        for (function, facts) in (0..).zip(&module.functions) {
            for (block, block_facts) in (0..).zip(&facts.blocks) {
                by_address.push(Place {
                    address: block_facts.address,
                    number: by_address.len() as u32,
                    function,
                    block,
                });
            }
        }
        by_address.sort_unstable();
        Self {
            number,
            module,
            layout,
            chosen,
            counters,
            keyed: None,
            by_address,
        }
    }

    /// Every counted block with its number.
    pub fn counted_blocks(&self) -> impl Iterator<Item = (u32, &Block)> {
        let blocks = self.module.functions.iter().flat_map(|it| &it.blocks);
        (0..)
            .zip(blocks)
            .filter(|(number, _)| self.chosen[*number as usize])
    }

    /// The block that an address lies in.
    fn block_around(&self, address: LinkAddr) -> Option<(Place, &Block)> {
        let after = self
            .by_address
            .partition_point(|place| place.address <= address);
        let place = *self.by_address.get(after.checked_sub(1)?)?;
        let block = self.block(place);
        let inside = |span: &Span| {
            let end = span.address.0.saturating_add(span.bytes.len() as u64);
            (span.address.0..end).contains(&address.0)
        };
        block.code.iter().any(inside).then_some((place, block))
    }

    fn block(&self, place: Place) -> &Block {
        &self.module.functions[place.function as usize].blocks[place.block as usize]
    }

    /// Where in a counted block an address is. `None` if it is in none; `Some(None)` if no
    /// instruction begins there.
    pub fn position(&self, address: LinkAddr) -> Option<Option<Position>> {
        let (place, block) = self.block_around(address)?;
        if !self.chosen[place.number as usize] {
            return None;
        }
        let instruction = instruction_at(block, address);
        Some(instruction.map(|instruction| Position {
            block: place.number,
            instruction,
        }))
    }

    /// The name of the function around an address, and the source line, as far as they are known.
    pub fn describe(&self, address: LinkAddr) -> Option<Described> {
        let (place, block) = self.block_around(address)?;
        let index = instruction_at(block, address).unwrap_or(0);
        let mut behind = 0;
        let run = block.lines.iter().find(|run| {
            behind += run.instructions;
            behind > index && run.line != 0
        });
        Some(Described {
            function: self.module.functions[place.function as usize].name.clone(),
            line: run.and_then(|run| {
                let file = self.module.files.get(run.file.index())?;
                Some((file.clone(), run.line))
            }),
        })
    }

    /// The function and source line of a block.
    pub fn describe_block(&self, number: u32) -> Option<Described> {
        let place = self
            .by_address
            .iter()
            .find(|place| place.number == number)?;
        self.describe(place.address)
    }
}

/// A place in the words of its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The linker's name of the function.
    pub function: String,
    /// File and line.
    pub line: Option<(String, u32)>,
}

/// Which instruction of the block begins at an address.
fn instruction_at(block: &Block, address: LinkAddr) -> Option<u32> {
    let mut index = 0;
    for span in &block.code {
        let mut at = span.address.0;
        for length in headcount_x86::count(span).ok()? {
            if at == address.0 {
                return Some(index);
            }
            at += u64::from(length);
            index += 1;
        }
    }
    None
}
