//! Profiles in callgrind's format, for KCachegrind and `callgrind_annotate`.
//!
//! Every instruction that ran has its line, so the totals are exact. What calls cost with all that
//! they call is an estimate (`inclusive.rs`), and the file says so.

use super::inclusive::{Inclusive, Node};
use super::limit::Limit;
use super::{Exported, Material, code, several};
use crate::names::{Named, functions};
use crate::rows::{self, Tally};
use crate::source::UNKNOWN;
use crate::{Error, visible};
use headcount_model::{FileId, LinkAddr};
use std::collections::HashMap;
use std::fmt::Write;

/// The whole file.
pub fn write(material: &Material<'_>, limit: &Limit) -> Result<Exported, Error> {
    let functions = wanted(material);
    let by_address: HashMap<(usize, LinkAddr), usize> = functions
        .iter()
        .enumerate()
        .map(|(index, (module, it))| ((*module, it.function.address), index))
        .collect();
    let mut sites = Vec::new();
    let mut unknown_callees = 0;
    for (module, named) in &functions {
        let (known, unknown) = call_sites(named, material, |target| {
            by_address.get(&(*module, target)).copied()
        });
        sites.push(known);
        unknown_callees += unknown;
    }
    let graph = graph(&functions, &sites)?;
    let mut body = Body {
        out: String::new(),
        functions: &functions,
        inclusive: Inclusive::new(&graph),
        names: Names::default(),
        limit,
        total: 0,
    };
    for (index, sites) in sites.iter().enumerate() {
        body.function(index, sites, material)?;
    }
    let total = body.total;
    let mut out = header(material, total);
    out.push_str(&body.out);
    out.push_str(&format!("\ntotals: {total}\n"));
    let mut notes = Vec::new();
    if unknown_callees > 0 {
        let sites = several(unknown_callees, "call site");
        notes.push(format!(
            "{sites} left out of the call graph: only a run knows whom they call."
        ));
    }
    Ok(Exported {
        bytes: out.into_bytes(),
        notes,
    })
}

/// The functions that ran, with the numbers of their modules.
fn wanted<'a>(material: &Material<'a>) -> Vec<(usize, Named<'a>)> {
    let mut wanted = Vec::new();
    for (number, module) in material.counted.iter().enumerate() {
        for named in functions(module, material.demangle) {
            let ran = || named.blocks().any(|block| !block.count().is_never());
            if material.only.wants(&named) && ran() {
                wanted.push((number, named));
            }
        }
    }
    wanted
}

fn header(material: &Material<'_>, total: u64) -> String {
    let commands: Vec<String> = material.runs.iter().map(crate::text::command).collect();
    format!(
        "# callgrind format\n\
         version: 1\n\
         creator: headcount {}\n\
         cmd: {}\n\
         part: 1\n\
         desc: Counts: exact, by headcount\n\
         desc: Inclusive costs: estimated; a callee's is shared among call sites by their counts\n\
         positions: instr line\n\
         events: Ir\n\
         summary: {total}\n",
        env!("CARGO_PKG_VERSION"),
        visible(&commands.join("; ")),
    )
}

/// A call instruction that ran: its address, the number of its callee, and its count.
struct Site {
    address: LinkAddr,
    callee: usize,
    count: u64,
}

/// The call sites that ran, and of how many others nobody knows whom they call.
fn call_sites(
    named: &Named<'_>,
    material: &Material<'_>,
    callee: impl Fn(LinkAddr) -> Option<usize>,
) -> (Vec<Site>, usize) {
    let (mut sites, mut unknown) = (Vec::new(), 0);
    for (address, target, count) in code::calls(named, material) {
        match (target.and_then(&callee), count.value()) {
            (_, Some(0)) => (),
            (Some(callee), Some(count)) => sites.push(Site {
                address,
                callee,
                count,
            }),
            _ => unknown += 1,
        }
    }
    (sites, unknown)
}

fn graph(functions: &[(usize, Named<'_>)], sites: &[Vec<Site>]) -> Result<Vec<Node>, Error> {
    let node = |((_, named), sites): (&(usize, Named<'_>), &Vec<Site>)| {
        Ok(Node {
            own: Tally::of(named)?.executed.value().unwrap_or(0),
            entered: rows::calls(named).value().unwrap_or(0),
            calls: sites.iter().map(|it| (it.callee, it.count)).collect(),
        })
    };
    functions.iter().zip(sites).map(node).collect()
}

/// What follows the header.
struct Body<'a> {
    out: String,
    functions: &'a [(usize, Named<'a>)],
    inclusive: Inclusive<'a>,
    names: Names,
    limit: &'a Limit,
    total: u64,
}

impl Body<'_> {
    fn put(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.out, "{line}"); // a string has room
    }

    fn function(
        &mut self,
        index: usize,
        sites: &[Site],
        material: &Material<'_>,
    ) -> Result<(), Error> {
        let functions = self.functions;
        let named = &functions[index].1;
        let object = self.names.object(&named.module_path);
        let own = named.own_file().unwrap_or(UNKNOWN);
        let file = self.names.file(own);
        let name = self.names.function(&named.name);
        self.put(format_args!("\nob={object}\nfl={file}\nfn={name}"));
        let mut in_file = own;
        let mut sites = sites.iter().peekable();
        for it in code::instructions(named, material) {
            let count = match it.count.value() {
                None | Some(0) => continue,
                Some(count) => self.limit.cut(count),
            };
            let file = it
                .line
                .and_then(|(file, _)| named.file(file))
                .unwrap_or(own);
            if file != in_file {
                let key = if file == own { "fe" } else { "fi" };
                let name = self.names.file(file);
                self.put(format_args!("{key}={name}"));
                in_file = file;
            }
            let line = it.line.map_or(0, |(_, line)| line);
            self.put(format_args!("{} {line} {count}", it.address));
            self.total = self.total.checked_add(count).ok_or(Error::TooLarge)?;
            while let Some(site) = sites.next_if(|site| site.address == it.address) {
                self.call(index, site, line);
            }
        }
        Ok(())
    }

    fn call(&mut self, caller: usize, site: &Site, line: u32) {
        let functions = self.functions;
        let callee = &functions[site.callee].1;
        let cost = self.inclusive.of_calls(caller, site.callee, site.count);
        let (cost, count) = (self.limit.cut(cost), self.limit.cut(site.count));
        let file = self.names.file(callee.own_file().unwrap_or(UNKNOWN));
        let name = self.names.function(&callee.name);
        let target = callee.function.address;
        let (_, target_line) = callee.function.source.unwrap_or((FileId(0), 0));
        self.put(format_args!("cfi={file}\ncfn={name}"));
        self.put(format_args!("calls={count} {target} {target_line}"));
        self.put(format_args!("{} {line} {cost}", site.address));
    }
}

/// Names that were written before are written as numbers.
#[derive(Default)]
struct Names {
    objects: HashMap<String, usize>,
    files: HashMap<String, usize>,
    functions: HashMap<String, usize>,
}

impl Names {
    fn object(&mut self, name: &str) -> String {
        short(&mut self.objects, name)
    }

    fn file(&mut self, name: &str) -> String {
        short(&mut self.files, if name == UNKNOWN { "???" } else { name })
    }

    fn function(&mut self, name: &str) -> String {
        short(&mut self.functions, name)
    }
}

fn short(known: &mut HashMap<String, usize>, name: &str) -> String {
    if let Some(number) = known.get(name) {
        return format!("({number})");
    }
    let number = known.len() + 1;
    known.insert(name.to_owned(), number);
    format!("({number}) {}", visible(name))
}
