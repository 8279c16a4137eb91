//! An executable or library with counters in it: its ELF file in, its facts out.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, bail};
use headcount_asm::map::{self, ObjectMap, Record, TextRecord, UnitMap};
use headcount_binary::InlinedCopies;
use headcount_flow::Contradiction;
use headcount_model::{
    Block, FileId, Function, FunctionCounts, FunctionEdge, GraphCounts, LineRun, LinkAddr, Module,
    Node, Readings, Refusal, Span,
};
use headcount_monitor::foreign_file;
use headcount_wire::{COUNTERS_SECTION, IDS_SECTION, MAP_SECTION, fingerprint};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use std::collections::{BTreeSet, HashMap, HashSet};

use crate::source_module::PlacedText;

/// A module with the way from its counters to its counts.
pub struct CountedModule {
    /// Its facts.
    pub module: Module,
    /// The fingerprint that its counter files must carry.
    pub fingerprint: u64,
    /// How many counters the runtime keeps for it.
    pub counters: u64,
    /// Counters in ordinary memory that nobody keeps: where they are, and how many.
    pub memory: Vec<(LinkAddr, usize)>,
    units: Vec<PlacedUnit>,
    texts: Vec<PlacedText>,
}

/// A unit, and where its blocks and edges are in the module's facts.
struct PlacedUnit {
    map: UnitMap,
    counters: Home,
    /// Function and block of each block.
    blocks: Vec<(usize, usize)>,
    /// Function and edge of each edge.
    edges: Vec<(usize, usize)>,
}

/// Where the counters of a unit are.
#[derive(Clone, Copy, Debug)]
enum Home {
    /// Among those that the runtime keeps; the first has this index.
    Kept(usize),
    /// Among those in ordinary memory, likewise.
    Memory(usize),
}

/// Counts of a whole module, and the functions whose counters contradict each other.
pub struct Recovered {
    /// The counts, in the module's order.
    pub functions: Vec<FunctionCounts>,
    /// Names of functions that were cut short.
    pub uncertain: Vec<String>,
    /// How many functions counted in ordinary memory, which nobody read.
    pub unread: usize,
}

impl CountedModule {
    /// Reads an ELF file.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let bytes = foreign_file::bytes(path).with_context(|| format!("{name}: cannot be read"))?;
        Self::from_bytes(path, (*bytes).as_ref())
    }

    /// Reads the bytes of an ELF file, which has this path.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self> {
        let name = || format!("{}", path.display());
        let file =
            object::File::parse(bytes).with_context(|| format!("{}: is no ELF file", name()))?;
        Self::parse(path, &file, InlinedCopies::read(bytes)).with_context(name)
    }

    fn parse(path: &Path, file: &object::File, copies: InlinedCopies) -> Result<Self> {
        let section = |name: &str| -> Result<Vec<u8>> {
            let section = file.section_by_name(name);
            let section = section.with_context(|| {
                format!("has no section {name}; it was not built with `headcount cc`, or was stripped of it")
            })?;
            let data = section.data();
            let data = data.with_context(|| format!("its section {name} is broken"))?;
            Ok(data.to_vec())
        };
        let map = section(MAP_SECTION)?;
        if map.is_empty() {
            bail!("its section {MAP_SECTION} is empty");
        }
        let ids = section(IDS_SECTION)?;
        // Without one, the runtime keeps nothing.
        let kept = file.section_by_name(COUNTERS_SECTION);
        let kept = kept.map(|section| (section.address(), section.size()));
        let (start, size) = kept.unwrap_or_default();
        let counters = size / 8;
        let fingerprint = fingerprint(&ids, counters);
        let build_id: String = file
            .build_id()
            .ok()
            .flatten()
            .unwrap_or_default()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut builder = Builder {
            code: Code::of(file),
            copies,
            module: Module {
                path: path.to_string_lossy().into_owned(),
                build_id: format!("{fingerprint:016x}{build_id}"),
                ..Module::default()
            },
            files: HashMap::new(),
            units: Vec::new(),
            texts: Vec::new(),
            start,
            counters,
            data: data_of(file),
            memory: Vec::new(),
            in_memory: 0,
            named: Vec::new(),
        };
        let (mut texts, mut compiled) = (Vec::new(), BTreeSet::new());
        for record in map::decode(&map)? {
            match record {
                Record::Object(object) => builder.object(object),
                Record::Unit(unit) => builder.unit(unit)?,
                Record::Text(text) => texts.push(text),
                Record::Code(counter) => _ = compiled.insert(counter),
            }
        }
        // What was compiled, and increments no counter now, the linker removed.
        let incremented = match texts.is_empty() {
            true => BTreeSet::new(),
            false => builder.code.incremented(),
        };
        for text in texts {
            builder.text(&text, |counters| {
                compiled.range(counters.clone()).next().is_some()
                    && incremented.range(counters).next().is_none()
            })?;
        }
        if kept.is_none() && builder.memory.is_empty() {
            bail!("has no section {COUNTERS_SECTION}");
        }
        builder.refuse_removed(file);
        Ok(builder.finish(fingerprint))
    }

    /// What the counters say: those that the runtime kept, and those in ordinary memory, if anybody
    /// read them.
    pub fn recover(&self, sums: &[u64], memory: &[u64]) -> Result<Recovered> {
        let mut functions: Vec<_> = self
            .module
            .functions
            .iter()
            .map(|function| {
                let (blocks, edges) = (function.blocks.len(), function.edges.len());
                FunctionCounts::whole(vec![0; blocks], vec![0; edges])
            })
            .collect();
        let (mut uncertain, mut unread) = (Vec::new(), 0);
        for unit in &self.units {
            let (all, first) = match unit.counters {
                Home::Kept(first) => (sums, first),
                Home::Memory(_) if memory.is_empty() => {
                    unread += unit.leave_out(&mut functions);
                    continue;
                }
                Home::Memory(first) => (memory, first),
            };
            let readings = all
                .get(first..first + unit.map.plan.counters.len())
                .context("has fewer counters than its map says")?;
            let (counts, cut_short) = unit.counts(&Readings(readings.to_vec()))?;
            if cut_short {
                uncertain.push(unit.map.parts[0].name.clone());
            }
            for (count, (function, block)) in counts.blocks.iter().zip(&unit.blocks) {
                functions[*function].blocks[*block] = Some(*count);
            }
            for (count, (function, edge)) in counts.edges.iter().zip(&unit.edges) {
                functions[*function].edges[*edge] = Some(*count);
            }
        }
        for text in &self.texts {
            text.recover(sums, &mut functions, &mut uncertain)?;
        }
        Ok(Recovered {
            functions,
            uncertain,
            unread,
        })
    }
}

impl PlacedUnit {
    /// Says of its functions that they were not counted; how many are they?
    fn leave_out(&self, functions: &mut [FunctionCounts]) -> usize {
        let mut own = BTreeSet::new();
        for (function, block) in &self.blocks {
            own.insert(*function);
            functions[*function].blocks[*block] = None;
        }
        for (function, edge) in &self.edges {
            functions[*function].edges[*edge] = None;
        }
        own.len()
    }

    fn counts(&self, readings: &Readings) -> Result<(GraphCounts, bool)> {
        let (graph, plan) = (&self.map.graph, &self.map.plan);
        match headcount_flow::recover(graph, plan, readings) {
            Ok(counts) => Ok((counts, false)),
            // A thread that was stopped inside the function: its last visit is not whole.
            Err(Contradiction::Negative { .. }) => {
                let (counts, _) = headcount_flow::recover_lenient(graph, plan, readings)?;
                Ok((counts, true))
            }
            Err(other) => {
                Err(other).with_context(|| format!("function {}", self.map.parts[0].name))
            }
        }
    }
}

/// The bytes of a module, by link address.
struct Code<'a> {
    sections: Vec<(Range<u64>, &'a [u8])>,
    /// Where the first code is.
    lowest: u64,
    /// How many bytes may still be taken for code.
    room: usize,
}

/// How a probe of source text begins, `incq %gs:n(%rip)`; a distance follows.
const INCREMENT: [u8; 4] = [0x65, 0x48, 0xff, 0x05];

/// A linker may fold functions that are the same, so code can belong to several; but not to more
/// than this, on average. What a broken map says must not fill the memory.
const MOST_OWNERS: usize = 64;

impl<'a> Code<'a> {
    fn of(file: &object::File<'a>) -> Self {
        let sections: Vec<(Range<u64>, &[u8])> = file
            .sections()
            .filter_map(|section| {
                let bytes = section.data().ok()?;
                let start = section.address();
                let end = start.checked_add(bytes.len() as u64)?;
                (start != 0).then_some((start..end, bytes))
            })
            .collect();
        let most = sections.iter().map(|(_, bytes)| bytes.len()).max();
        let room = most.unwrap_or(0).saturating_mul(MOST_OWNERS);
        let lowest = file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text && section.address() != 0)
            .map(|section| section.address())
            .min();
        Self {
            sections,
            lowest: lowest.unwrap_or(1),
            room,
        }
    }

    /// The counters that probes of source text increment. What only looks like a probe may be
    /// among them.
    fn incremented(&self) -> BTreeSet<LinkAddr> {
        let mut found = BTreeSet::new();
        for (range, bytes) in &self.sections {
            for (at, code) in (range.start..).zip(bytes.windows(INCREMENT.len() + 4)) {
                let (operation, distance) = code.split_at(INCREMENT.len());
                if operation == INCREMENT
                    && let Ok(distance) = distance.try_into().map(i32::from_le_bytes)
                {
                    let next = at.wrapping_add(code.len() as u64);
                    found.insert(LinkAddr(next.wrapping_add_signed(distance.into())));
                }
            }
        }
        found
    }

    fn get(&mut self, at: LinkAddr, length: u32) -> Option<&'a [u8]> {
        self.room = self.room.checked_sub(length as usize)?;
        let (range, bytes) = self
            .sections
            .iter()
            .find(|(range, _)| range.contains(&at.0))?;
        let offset = (at.0 - range.start) as usize;
        bytes.get(offset..offset.checked_add(length as usize)?)
    }
}

struct Builder<'a> {
    code: Code<'a>,
    copies: InlinedCopies,
    module: Module,
    files: HashMap<String, u32>,
    units: Vec<PlacedUnit>,
    texts: Vec<PlacedText>,
    start: u64,
    counters: u64,
    /// Where ordinary memory is.
    data: Vec<Range<u64>>,
    memory: Vec<(LinkAddr, usize)>,
    /// How many counters there are in it so far.
    in_memory: usize,
    /// The functions that the objects say they had.
    named: Vec<Named>,
}

/// Why a function is not counted that is in an object, but not in the module.
const REMOVED: &str = "removed by the linker; where it was inlined, it is counted";
/// The same for a function that is in the module all the same.
const REPLACED: &str =
    "the linker took it from another object, which was not built with `headcount cc`";

/// The names that code has.
fn names_of_code<'a>(file: &object::File<'a>) -> HashSet<&'a str> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    symbols
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        .filter_map(|symbol| symbol.name().ok())
        .collect()
}

/// A function that an object had before it was linked.
struct Named {
    name: String,
    /// The file that says where it is: of its source, or else what the object was made from.
    file: String,
    /// The line there, or 0.
    line: u32,
    /// Whether its name alone does not say which function it is.
    is_local: bool,
}

/// Where a module has data that can be written.
fn data_of(file: &object::File) -> Vec<Range<u64>> {
    let is_data = |kind| matches!(kind, SectionKind::Data | SectionKind::UninitializedData);
    file.sections()
        .filter(|section| is_data(section.kind()) && section.address() != 0)
        .map(|section| section.address()..section.address().saturating_add(section.size()))
        .collect()
}

impl Builder<'_> {
    /// Where a unit's counters are.
    fn home(&mut self, unit: &UnitMap) -> Result<Home> {
        let (address, count) = (unit.counters, unit.plan.counters.len());
        if !unit.in_memory {
            let first = self.first_counter(address, count as u64);
            return first.map(Home::Kept).map_err(|error| match self.counters {
                0 => error.context(format!("has no section {COUNTERS_SECTION}")),
                _ => error,
            });
        }
        let end = address.0.saturating_add(count as u64 * 8);
        let is_there = |it: &Range<u64>| it.start <= address.0 && end <= it.end;
        if !self.data.iter().any(is_there) {
            bail!("its map names memory that is not there: the .headcount section is garbage");
        }
        let first = self.in_memory;
        self.memory.push((address, count));
        self.in_memory += count;
        Ok(Home::Memory(first))
    }

    fn file(&mut self, path: &str) -> FileId {
        let next = self.module.files.len() as u32;
        let id = *self.files.entry(path.to_owned()).or_insert(next);
        if id == next {
            self.module.files.push(path.to_owned());
        }
        FileId(id)
    }

    /// The number of a record's first counter, of so many.
    fn first_counter(&self, address: LinkAddr, count: u64) -> Result<usize> {
        let offset = address.0.checked_sub(self.start);
        let first = offset
            .filter(|offset| offset % 8 == 0)
            .map(|offset| offset / 8);
        let end = first.and_then(|first| first.checked_add(count));
        match (first, end.is_some_and(|end| end <= self.counters)) {
            (Some(first), true) => Ok(first as usize),
            _ => {
                bail!(
                    "its map names counters that are not there: the .headcount section is garbage"
                )
            }
        }
    }

    fn object(&mut self, object: ObjectMap) {
        self.module.refusals.extend(object.refusals);
        let place = |source: Option<(u32, u32)>| match source {
            Some((file, line)) => (object.files[file as usize].clone(), line),
            None => (object.name.clone(), 0),
        };
        self.named.extend(object.functions.into_iter().map(|it| {
            let (file, line) = place(it.source);
            Named {
                name: it.name,
                file,
                line,
                is_local: it.is_local,
            }
        }));
    }

    /// Says of the functions that an object had and of which no copy is counted in the module what
    /// the linker did with them. (Of two local functions of one name, only lines tell which is
    /// there.)
    fn refuse_removed(&mut self, file: &object::File) {
        let module = &mut self.module;
        let mut there: HashMap<&str, Vec<&Function>> = HashMap::new();
        for function in &module.functions {
            there.entry(&function.name).or_default().push(function);
        }
        let is_at = |function: &Function, it: &Named| match function.source {
            Some((file, line)) => it.line == line && module.files[file.0 as usize] == it.file,
            None => it.line == 0,
        };
        let is_there = |it: &Named| {
            let called_so = there.get(it.name.as_str());
            called_so.is_some_and(|all| !it.is_local || all.iter().any(|that| is_at(that, it)))
        };
        self.named.retain(|it| !is_there(it));
        if self.named.is_empty() {
            return;
        }
        let others = names_of_code(file);
        let gone = self.named.drain(..).map(|it| Refusal {
            reason: match !it.is_local && others.contains(it.name.as_str()) {
                true => REPLACED.into(),
                false => REMOVED.into(),
            },
            subject: it.name,
            file: it.file,
            line: it.line,
        });
        module.refusals.extend(gone);
    }

    /// Adds a text, but for functions that were removed, which their counters tell.
    fn text(
        &mut self,
        record: &TextRecord,
        is_removed: impl Fn(Range<LinkAddr>) -> bool,
    ) -> Result<()> {
        let first = self.first_counter(record.counters, record.count.into())?;
        let map = headcount_csource::map::decode(&record.map)
            .filter(|map| map.counters() == record.count as usize)
            .context("its map has a text that makes no sense: the .headcount section is garbage")?;
        let files: Vec<FileId> = map.files.iter().map(|path| self.file(path)).collect();
        let address = |number: u64| LinkAddr(record.counters.0 + number * 8);
        let is_removed =
            |counters: Range<u64>| is_removed(address(counters.start)..address(counters.end));
        let text = PlacedText::new(map, first, &files, &mut self.module, is_removed)?;
        self.named
            .extend(text.removed().map(|(name, file, line)| Named {
                name: name.to_owned(),
                file: file.to_owned(),
                line,
                is_local: true,
            }));
        self.texts.push(text);
        Ok(())
    }

    fn unit(&mut self, unit: UnitMap) -> Result<()> {
        // Where the linker dropped the code that a record speaks of, it leaves 0, or (lld) its
        // place in what was dropped.
        let lowest = self.code.lowest;
        if unit.parts.iter().all(|part| part.address.0 < lowest) {
            return Ok(());
        }
        let counters = self.home(&unit)?;
        let files: Vec<FileId> = unit.files.iter().map(|path| self.file(path)).collect();
        let base = self.module.functions.len();
        let owners = self.functions(&unit, &files)?;
        let mut blocks = Vec::with_capacity(unit.blocks.len());
        let mut begun = vec![false; unit.parts.len()];
        for block in &unit.blocks {
            let owner = *owners
                .get(block.part as usize)
                .context("a block of no function")?;
            let mut built = self.block(block, &files, base + owner)?;
            if !std::mem::replace(&mut begun[block.part as usize], true) {
                // A function begins with its label, even where a probe stands behind it.
                built.address = unit.parts[block.part as usize].address;
            }
            let function = &mut self.module.functions[base + owner];
            function.blocks.push(built);
            blocks.push((base + owner, function.blocks.len() - 1));
        }
        let mut edges = Vec::with_capacity(unit.graph.edges.len());
        for edge in &unit.graph.edges {
            let place = |node: Node| match node {
                Node::Block(block) => blocks.get(block.index()).copied(),
                Node::Outside => None,
            };
            let (from, to) = (place(edge.from), place(edge.to));
            let owner = from.or(to).map_or(base, |(function, _)| function);
            let inside = |end: Option<(usize, usize)>| {
                end.filter(|(function, _)| *function == owner)
                    .map(|(_, block)| block as u32)
            };
            let function = &mut self.module.functions[owner];
            function.edges.push(FunctionEdge {
                from: inside(from),
                to: inside(to),
                kind: edge.kind,
            });
            edges.push((owner, function.edges.len() - 1));
        }
        self.module.functions[base].counters = unit.plan.counters.len() as u32;
        self.units.push(PlacedUnit {
            map: unit,
            counters,
            blocks,
            edges,
        });
        Ok(())
    }

    /// Adds the functions of a unit; answers with the one that each part belongs to.
    fn functions(&mut self, unit: &UnitMap, files: &[FileId]) -> Result<Vec<usize>> {
        let mut owners = Vec::new();
        let mut count = 0;
        for part in &unit.parts {
            if part.cold && count > 0 {
                owners.push(0);
                continue;
            }
            let source = part
                .source
                .and_then(|(file, line)| Some((*files.get(file as usize)?, line)));
            let copies = std::mem::take(&mut self.copies);
            let compiled = copies.compiled(part.address, |path| self.file(path));
            self.copies = copies;
            self.module.functions.push(Function {
                name: part.name.clone(),
                address: part.address,
                source,
                blocks: Vec::new(),
                edges: Vec::new(),
                counters: 0,
                compiled,
            });
            owners.push(count);
            count += 1;
        }
        if count == 0 {
            bail!("a record without a function");
        }
        Ok(owners)
    }

    fn block(&mut self, block: &map::BlockMap, files: &[FileId], function: usize) -> Result<Block> {
        let mut built = Block {
            address: block
                .spans
                .first()
                .map(|span| span.address)
                .unwrap_or_default(),
            ..Block::default()
        };
        for span in &block.spans {
            let bytes = self.code.get(span.address, span.length).with_context(|| {
                format!(
                    "its map speaks of code at {} that is not there",
                    span.address
                )
            })?;
            let code = Span {
                address: span.address,
                bytes: bytes.to_vec(),
            };
            let instructions = match headcount_x86::count(&code) {
                Ok(lengths) => lengths.len() as u32,
                Err(trouble) => {
                    self.module.refusals.push(Refusal {
                        subject: self.module.functions[function].name.clone(),
                        file: String::new(),
                        line: 0,
                        reason: format!("it has bytes that are no instructions at {}", trouble.at),
                    });
                    continue;
                }
            };
            built.instructions += instructions;
            let last = span.rows.len().saturating_sub(1);
            for (index, row) in span.rows.iter().enumerate() {
                let instructions = if index == last { instructions } else { 0 };
                if instructions == 0 && !row.is_stmt {
                    continue;
                }
                built.lines.push(LineRun {
                    file: files[row.file as usize],
                    line: row.line,
                    column: self.copies.column(span.address, row.line),
                    is_stmt: row.is_stmt,
                    instructions,
                    inline_copy: match instructions {
                        0 => self.copies.before(span.address),
                        _ => self.copies.at(span.address),
                    },
                });
            }
            join_span(&mut built.code, code);
        }
        Ok(built)
    }

    /// Puts functions and blocks in the order of their addresses, and remembers where each went.
    fn finish(mut self, fingerprint: u64) -> CountedModule {
        let order = sorted_by_address(&self.module.functions, |function| function.address);
        let new_place = inverse(&order);
        let mut block_places = Vec::new();
        for function in &mut self.module.functions {
            InlinedCopies::settle(&mut function.blocks, function.source);
            let order = sorted_by_address(&function.blocks, |block| block.address);
            let places = inverse(&order);
            function.blocks = order
                .iter()
                .map(|index| function.blocks[*index].clone())
                .collect();
            for edge in &mut function.edges {
                for end in [&mut edge.from, &mut edge.to].into_iter().flatten() {
                    *end = places[*end as usize] as u32;
                }
            }
            block_places.push(places);
        }
        for unit in &mut self.units {
            for (function, block) in &mut unit.blocks {
                *block = block_places[*function][*block];
                *function = new_place[*function];
            }
            for (function, _) in &mut unit.edges {
                *function = new_place[*function];
            }
        }
        for text in &mut self.texts {
            text.move_functions(&new_place);
        }
        let mut functions: Vec<_> = self.module.functions.into_iter().map(Some).collect();
        self.module.functions = order
            .iter()
            .filter_map(|index| functions[*index].take())
            .collect();
        self.module.refusals.sort();
        self.module.refusals.dedup();
        CountedModule {
            module: self.module,
            fingerprint,
            counters: self.counters,
            memory: self.memory,
            units: self.units,
            texts: self.texts,
        }
    }
}

/// Spans that touch are one.
fn join_span(code: &mut Vec<Span>, next: Span) {
    if next.bytes.is_empty() {
        return;
    }
    match code.last_mut() {
        Some(last) if last.address.checked_add(last.bytes.len() as u64) == Some(next.address) => {
            last.bytes.extend_from_slice(&next.bytes);
        }
        _ => code.push(next),
    }
}

fn sorted_by_address<T>(items: &[T], address: impl Fn(&T) -> LinkAddr) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|index| address(&items[*index]));
    order
}

fn inverse(order: &[usize]) -> Vec<usize> {
    let mut places = vec![0; order.len()];
    for (new, old) in order.iter().enumerate() {
        places[*old] = new;
    }
    places
}
