//! Counting by value where breakpoints are met: what copies compute in their tables is computed here.

use std::collections::HashSet;
use std::io;
use std::rc::Rc;

use headcount_model::{KeyKind, KeyOf, KeyedProbe, LinkAddr, LoadAddr, LoadBias};
use headcount_patch::{target_of, text_hash};
use headcount_tally::{Thread, Unreadable, evaluate};

use crate::catalog;
use crate::hits::register;
use crate::image::Image;
use crate::kernel::Registers;
use crate::monitor::Monitor;
use crate::space::Space;
use crate::values::{CodeAt, Found, FoundKey, Sum};
use crate::wait::Stopped;

/// A thread that stands still.
pub struct AtBreakpoint<'a> {
    pub space: &'a Space,
    /// How far the module was moved that it is about.
    pub bias: LoadBias,
    pub registers: Registers,
}

impl Thread for AtBreakpoint<'_> {
    fn register(&self, number: u8) -> u64 {
        register(&self.registers, number)
    }

    fn thread_pointer(&self) -> u64 {
        self.registers.fs_base
    }

    fn load_address(&self, link: u64) -> u64 {
        self.bias.0.wrapping_add(link)
    }

    fn memory(&self, at: u64, bytes: usize) -> Option<[u8; 8]> {
        let mut word = [0; 8];
        self.space
            .read_original(LoadAddr(at), word.get_mut(..bytes)?)?;
        Some(word)
    }
}

/// What a probe finds.
struct Finding {
    key: FoundKey,
    text: Option<Vec<u8>>,
    amount: i64,
    by: Option<CodeAt>,
}

/// What is counted at a breakpoint.
struct Hit {
    found: Found,
    sum: Sum,
    /// If it is one.
    text: Option<Vec<u8>>,
}

impl AtBreakpoint<'_> {
    fn find(&self, probe: &KeyedProbe, image: u32) -> Finding {
        let by = match (&probe.key, &probe.caller) {
            (KeyOf::Target(_), _) => Some(CodeAt::Module(image, probe.at.0)),
            (_, Some(caller)) => match evaluate(caller, self) {
                Ok(caller) => Some(self.code_at(caller.cast_unsigned())),
                Err(Unreadable) => return Finding::unreadable(Some(CodeAt::Elsewhere)),
            },
            (_, None) => None,
        };
        let found = self.key(probe).and_then(|(key, text)| {
            let amount = probe.amount.as_ref().map(|it| evaluate(it, self));
            Ok(Finding {
                key,
                text,
                amount: amount.transpose()?.unwrap_or(0),
                by,
            })
        });
        found.unwrap_or_else(|Unreadable| Finding::unreadable(by))
    }

    fn key(&self, probe: &KeyedProbe) -> Result<(FoundKey, Option<Vec<u8>>), Unreadable> {
        let kind = |kind| Ok((FoundKey::Kind(kind), None));
        match &probe.key {
            KeyOf::Only(KeyKind::Number) => Ok((FoundKey::Number(0), None)),
            KeyOf::Only(other) => kind(*other),
            KeyOf::Target(target) => {
                let target = evaluate(target, self)?.cast_unsigned();
                Ok((FoundKey::Code(self.code_at(target)), None))
            }
            KeyOf::Text(address, bytes) => {
                let text = self.text(evaluate(address, self)?.cast_unsigned(), *bytes)?;
                Ok((FoundKey::Text(text_hash(&text)), Some(text)))
            }
            KeyOf::Number(key) => {
                let number = evaluate(key, self)?;
                match probe.within {
                    Some((least, _)) if number < least => kind(KeyKind::Below),
                    Some((_, end)) if number >= end => kind(KeyKind::Above),
                    _ => Ok((FoundKey::Number(number), None)),
                }
            }
        }
    }

    /// The bytes of a text before a zero, but no more than these.
    fn text(&self, at: u64, most: u32) -> Result<Vec<u8>, Unreadable> {
        self.space.text(LoadAddr(at), most).ok_or(Unreadable)
    }

    fn code_at(&self, at: u64) -> CodeAt {
        let at = LoadAddr(at);
        let found = self.space.module_at(at).and_then(|module| {
            let LinkAddr(link) = module.bias.undo(at)?;
            Some(CodeAt::Module(module.image as u32, link))
        });
        found.unwrap_or(CodeAt::Elsewhere)
    }
}

impl Finding {
    fn unreadable(by: Option<CodeAt>) -> Self {
        Self {
            key: FoundKey::Kind(KeyKind::Unreadable),
            text: None,
            amount: 0,
            by,
        }
    }
}

impl Image {
    /// Where breakpoints are needed because values are counted there.
    pub fn tallied(&self) -> HashSet<LinkAddr> {
        let Some(probes) = &self.keyed else {
            return HashSet::new();
        };
        let places = probes.probes.iter().map(|it| it.at);
        let is_counted = |at: &LinkAddr| matches!(self.position(*at), Some(Some(_)));
        let mut all: HashSet<LinkAddr> = places.filter(is_counted).collect();
        if probes.targets.is_some() {
            let spans = self.counted_blocks().flat_map(|(_, block)| &block.code);
            let code = spans.flat_map(headcount_x86::walk).flatten();
            let indirect = code.filter(|it| target_of(it).is_some());
            all.extend(indirect.map(|it| LinkAddr(it.ip())));
        }
        all
    }
}

impl Monitor<'_> {
    /// Finds out what is to be counted by value in an image.
    pub fn tally_in_image(&mut self, number: usize) -> io::Result<()> {
        if self.tallies.is_none() || self.catalog.images[number].keyed.is_some() {
            return Ok(());
        }
        let module = Rc::clone(&self.catalog.images[number].module);
        let Some(file) = self.files.all().get(number) else {
            return Ok(());
        };
        let bytes = file.bytes().clone();
        let Ok(outline) = catalog::outline(&module.path, &bytes) else {
            return Ok(());
        };
        let keyed = self.keyed_in(&module.path, outline.key(), &bytes, number)?;
        self.catalog.images[number].keyed = keyed;
        Ok(())
    }

    /// Counts by value what a thread finds at a breakpoint.
    pub fn tally_hit(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<()> {
        if self.tallies.is_none() || !self.counts(stopped.tid()) {
            return Ok(());
        }
        let found = self.findings(stopped, at)?;
        if let Some(tallies) = &mut self.tallies {
            for hit in &found {
                if let Some(text) = &hit.text {
                    tallies.keep_text(text)?;
                }
                tallies.hit(hit.found, hit.sum)?;
            }
        }
        let found = found.into_iter().map(|it| (it.found, it.sum)).collect();
        self.thread(stopped).tallied = found;
        Ok(())
    }

    /// The instruction below the breakpoint that a thread met last did not run.
    pub fn take_tally_back(&mut self, stopped: &Stopped) -> io::Result<()> {
        let found = std::mem::take(&mut self.thread(stopped).tallied);
        let Some(tallies) = &mut self.tallies else {
            return Ok(());
        };
        for (found, sum) in found {
            tallies.hit(found, sum.negated())?;
        }
        Ok(())
    }

    fn findings(&mut self, stopped: &Stopped, at: LoadAddr) -> io::Result<Vec<Hit>> {
        let space = self.thread(stopped).space;
        let Some(space) = self.spaces.get(&space) else {
            return Ok(Vec::new());
        };
        let module = space.module_at(at);
        let place = module.and_then(|it| Some((it, it.bias.undo(at)?)));
        let Some((module, link)) = place else {
            return Ok(Vec::new());
        };
        let Some(keyed) = &self.catalog.images[module.image].keyed else {
            return Ok(Vec::new());
        };
        let mut probes = keyed.at(link).to_vec();
        if keyed.targets.is_some() {
            let target = space.target(at, link);
            probes.extend(target.and_then(|it| keyed.of_target(link, it)));
        }
        if probes.is_empty() {
            return Ok(Vec::new());
        }
        let thread = AtBreakpoint {
            space,
            bias: module.bias,
            registers: stopped.registers()?,
        };
        let found = probes.iter().map(|probe| {
            let it = thread.find(probe, module.image as u32);
            let found = Found {
                tally: probe.tally,
                place: probe.place,
                key: it.key,
                by: it.by,
            };
            let (count, amount) = (1, it.amount);
            Hit {
                found,
                sum: Sum { count, amount },
                text: it.text,
            }
        });
        Ok(found.collect())
    }
}
