//! How a function is counted by copies of its routines: found out again from its file.

use std::fmt;
use std::path::Path;

use headcount_binary::Outline;
use headcount_model::{Function, KeyedProbes, LinkAddr, Module, Place};
use headcount_monitor::foreign_file;
use headcount_patch::{Adding, Events, Sketch, template};
use headcount_report::thousands;

/// How the routines of a function are copied.
#[derive(Debug, Default)]
pub struct Copied {
    routines: u64,
    blocks: u64,
    edges: u64,
    block_counters: u64,
    edge_counters: u64,
    jumps: u64,
    islands: u64,
    traps: u64,
    calls: u64,
    moved_calls: u64,
    has_unknown_jumps: bool,
}

/// What the files of modules say, each read once.
#[derive(Default)]
pub struct Files(Vec<(String, Option<Outline>)>);

impl Files {
    fn outline(&mut self, path: &str) -> Option<&mut Outline> {
        let known = self.0.iter().position(|(known, _)| known == path);
        let index = known.unwrap_or_else(|| {
            let bytes = foreign_file::bytes(Path::new(path)).ok();
            let outline = bytes.and_then(|it| Outline::read(it, &mut |_| None).ok());
            self.0.push((path.to_owned(), outline));
            self.0.len() - 1
        });
        self.0.get_mut(index)?.1.as_mut()
    }
}

impl Copied {
    /// Of a function whose module's file is still there. `None` if it is another by now, or if it
    /// cannot be copied.
    pub fn of(files: &mut Files, module: &Module, function: &Function) -> Option<Self> {
        let outline = files.outline(&module.path)?;
        let mut copied = Self::default();
        let mut seen: Vec<u64> = Vec::new();
        for block in &function.blocks {
            let part = outline.part_at(block.address)?;
            if seen.contains(&part.start) {
                continue;
            }
            seen.push(part.start);
            let start = LinkAddr(part.start);
            let routine = outline.routine(start, &[start]).ok()?.routine.ok()?;
            let offset = usize::try_from(block.address.0 - part.start).ok()?;
            let span = block.code.first()?;
            if routine.bytes.get(offset..offset + span.bytes.len()) != Some(&span.bytes) {
                return None;
            }
            copied.add(routine)?;
        }
        Some(copied)
    }

    fn add(&mut self, routine: headcount_model::Routine) -> Option<()> {
        /// As far away as copies usually are; what they look like does not depend on it.
        const AWAY: u64 = 1 << 24;
        let place = LinkAddr(routine.start.0.wrapping_add(AWAY));
        self.has_unknown_jumps |= routine.has_unknown_jumps;
        let sketch = Sketch::of(routine, Adding::One).ok()?;
        let frequencies = headcount_flow::frequencies(sketch.natural_graph(), &[]);
        let plan = headcount_flow::place_counters(sketch.graph(), &frequencies, sketch.costs());
        let plan = plan.ok()?;
        let copy = template(&sketch, &plan, Events::None, &KeyedProbes::NONE)
            .ok()?
            .copy_at(place, 0, &[])
            .ok()?;
        let in_blocks = plan.counters.iter();
        let in_blocks = in_blocks.filter(|it| matches!(it, Place::Block(_))).count() as u64;
        self.routines += 1;
        self.blocks += u64::from(sketch.graph().blocks);
        self.edges += sketch.graph().edges.len() as u64;
        self.block_counters += in_blocks;
        self.edge_counters += plan.counters.len() as u64 - in_blocks;
        self.islands += copy.islands() as u64;
        self.jumps += (copy.jumps.len() - copy.islands()) as u64;
        self.traps += copy.traps() as u64;
        self.calls += copy.calls().count() as u64;
        self.moved_calls += u64::from(copy.moved_calls());
        Some(())
    }
}

fn number(n: u64, word: &str) -> String {
    match n {
        1 => format!("1 {word}"),
        n => format!("{} {word}s", thousands(n)),
    }
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.routines {
            1 => "in a copy".to_owned(),
            n => format!("in {n} copies, of parts that lie apart"),
        };
        writeln!(
            f,
            "  is counted {place}: {} and {} by {}, {} in blocks and {} on edges.",
            number(self.blocks, "block"),
            number(self.edges, "edge"),
            number(self.block_counters + self.edge_counters, "counter"),
            thousands(self.block_counters),
            thousands(self.edge_counters),
        )?;
        let entries = self.jumps + self.islands + self.traps;
        writeln!(
            f,
            "  Control gets into it at {}: {} by a jump, {} by a short jump to an island, {} by a \
             trap{}.",
            number(entries, "place"),
            thousands(self.jumps),
            thousands(self.islands),
            thousands(self.traps),
            match self.traps {
                0 => "",
                _ => ", unless its neighbours have room for a jump",
            }
        )?;
        if self.calls + self.moved_calls > 0 {
            let calls = match self.calls {
                1 => "1 call is".to_owned(),
                n => format!("{} calls are", thousands(n)),
            };
            let moved = thousands(self.moved_calls);
            writeln!(
                f,
                "  {calls} made from where they stand, {moved} from the copy, to make room for a \
                 jump."
            )?;
        }
        match self.has_unknown_jumps {
            true => writeln!(
                f,
                "  It has an indirect jump of which nobody knows where it leads; if that is in \
                 here, it traps and is counted all the same."
            ),
            false => Ok(()),
        }
    }
}
