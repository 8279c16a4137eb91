//! Where do calls and jumps lead, in this module or in another?

use crate::count::{self, Count, CountedBlock};
use crate::names::Named;
use crate::targets::{self, Targets};
use headcount_model::{
    Block, Counted, EdgeKind, Function, LinkAddr, Module, Pointer, Span, Target, TransferKind,
    Transfers, ValueCounts,
};
use std::cell::OnceCell;
use std::collections::HashMap;

/// Finds the calls and jumps in a piece of code.
pub type FindTransfers<'a> = &'a dyn Fn(&Span) -> Transfers;

/// Says what is written where in a module while it runs, as far as its file tells.
pub type FindPointers<'a> = &'a dyn Fn(&Module) -> HashMap<LinkAddr, Pointer>;

/// A function: the number of its module, and its place in that module's own order.
pub type FunctionId = (usize, usize);

/// Whom a call or a jump leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function that is known.
    Function(FunctionId),
    /// Something of another module, which is not.
    Named(String),
    /// What is at this address of the same module.
    Address(LinkAddr),
    /// Only a run knows.
    Unknown,
}

/// An instruction that leads from one function to another, and how often it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Where it is.
    pub address: LinkAddr,
    /// Where it returns to, if it does.
    pub next: LinkAddr,
    /// The block that it is in.
    pub block: usize,
    /// Its number there.
    pub index: u32,
    /// Whether control is to come back; if not, it is a jump, and the end of its function.
    pub is_call: bool,
    pub callee: Callee,
    pub count: Count,
    /// What that cost with all that was called from there, if it is known exactly.
    pub inclusive: Option<u64>,
}

/// Knows the functions of all modules.
pub struct Callees<'a> {
    counted: &'a [Counted],
    transfers: FindTransfers<'a>,
    pointers: FindPointers<'a>,
    modules: Vec<Known>,
    /// Functions by the linker's name.
    named: OnceCell<HashMap<&'a str, Vec<FunctionId>>>,
    /// Where indirect calls and jumps went, as far as somebody looked.
    targets: Targets,
}

/// What is known of a module, found when somebody asks: few calls of a program lead into libraries.
#[derive(Default)]
struct Known {
    /// The function that begins at an address, or has a block there.
    places: OnceCell<HashMap<LinkAddr, usize>>,
    /// It takes reading the module's file.
    pointers: OnceCell<HashMap<LinkAddr, Pointer>>,
}

impl<'a> Callees<'a> {
    pub fn new(
        counted: &'a [Counted],
        transfers: FindTransfers<'a>,
        pointers: FindPointers<'a>,
    ) -> Self {
        Self {
            counted,
            transfers,
            pointers,
            modules: counted.iter().map(|_| Known::default()).collect(),
            named: OnceCell::new(),
            targets: Targets::new(),
        }
    }

    /// The same, with what runs found of indirect calls and jumps. Where it is known what calls cost,
    /// it is known whom they led to, and nothing is to be added to that.
    pub fn with_targets(self, values: &[ValueCounts]) -> Self {
        let targets = targets::targets(self.counted, values);
        Self { targets, ..self }
    }

    /// The linker's name of a function.
    pub fn name(&self, (module, index): FunctionId) -> &'a str {
        &self.counted[module].module.functions[index].name
    }

    /// The calls of a function and its jumps to others, by address. What is indirect is there for every
    /// function that it led to, if that is known.
    pub fn sites(&self, module: usize, named: &Named<'_>) -> Vec<Site> {
        let leaves = leaves(named);
        let mut sites = Vec::new();
        for (number, block) in named.blocks().enumerate() {
            self.sites_of(module, number, &block, leaves.get(&number), &mut sites);
        }
        sites.sort_by_key(|it| it.address);
        let sites = sites.into_iter();
        sites
            .flat_map(|it| targets::refined(&self.targets, (module, named.index), it))
            .collect()
    }

    /// Those of one block. `leaves` says how often its last instruction ended the function.
    fn sites_of(
        &self,
        module: usize,
        number: usize,
        block: &CountedBlock<'_>,
        leaves: Option<&Count>,
        sites: &mut Vec<Site>,
    ) {
        let last = block.block.instructions.saturating_sub(1);
        let mut ends_otherwise = false;
        let mut before = 0;
        for span in &block.block.code {
            let transfers = (self.transfers)(span);
            for it in &transfers.all {
                let index = before + it.index;
                let is_call = it.kind == TransferKind::Call;
                ends_otherwise |= index == last && !is_call;
                let count = match (it.kind, leaves) {
                    (TransferKind::Call, _) => Some(block.at(index)),
                    (TransferKind::Return, _) => None,
                    _ if index != last => None,
                    // Nobody counted its edges.
                    (TransferKind::Jump, Some(Count::Unknown)) => Some(block.at(index)),
                    (_, leaves) => leaves.copied(),
                };
                sites.extend(count.map(|count| Site {
                    address: it.address,
                    next: it.next,
                    block: number,
                    index,
                    is_call,
                    callee: self.callee(module, it.to),
                    count,
                    inclusive: None,
                }));
            }
            before += transfers.instructions;
        }
        // What neither jumps nor returns goes on with what comes next.
        if let (Some(count), Some(span), false) = (leaves, block.block.code.last(), ends_otherwise)
        {
            let end = LinkAddr(span.address.0.saturating_add(span.bytes.len() as u64));
            let callee = self.callee(module, Target::Code(end));
            if matches!(callee, Callee::Function(_)) {
                sites.push(Site {
                    address: end,
                    next: end,
                    block: number,
                    index: last,
                    is_call: false,
                    callee,
                    count: *count,
                    inclusive: None,
                });
            }
        }
    }

    /// Whom a block calls, in order.
    pub fn called_by(&self, module: usize, block: &Block) -> Vec<Callee> {
        let transfers = block.code.iter().flat_map(|it| (self.transfers)(it).all);
        let calls = transfers.filter(|it| it.kind == TransferKind::Call);
        calls.map(|it| self.callee(module, it.to)).collect()
    }

    /// Whom a transfer of a module leads to.
    pub fn callee(&self, module: usize, to: Target) -> Callee {
        match to {
            Target::Unknown => Callee::Unknown,
            Target::Code(address) => self.at(module, address),
            Target::Pointer(place) => match self.pointer(module, place) {
                Some(Pointer::Code(address)) => self.at(module, *address),
                Some(Pointer::Named(name)) => self.called(name),
                None => Callee::Unknown,
            },
        }
    }

    fn at(&self, module: usize, address: LinkAddr) -> Callee {
        let functions = &self.counted[module].module.functions;
        let places = self.modules[module]
            .places
            .get_or_init(|| places(functions));
        match places.get(&address) {
            Some(index) => Callee::Function((module, *index)),
            None => Callee::Address(address),
        }
    }

    fn pointer(&self, module: usize, place: LinkAddr) -> Option<&Pointer> {
        let find = || (self.pointers)(&self.counted[module].module);
        self.modules[module].pointers.get_or_init(find).get(&place)
    }

    /// The function with this name; of several, one that ran.
    fn called(&self, name: &str) -> Callee {
        let named = self.named.get_or_init(|| by_name(self.counted));
        let all = named.get(name).map_or(&[][..], Vec::as_slice);
        let has_run = |(module, index): &&FunctionId| {
            let counts = &self.counted[*module].functions[*index];
            counts.blocks.iter().flatten().any(|it| *it > 0)
        };
        match all.iter().find(has_run).or(all.first()) {
            Some(id) => Callee::Function(*id),
            None => Callee::Named(name.to_owned()),
        }
    }
}

fn by_name(counted: &[Counted]) -> HashMap<&str, Vec<FunctionId>> {
    let mut named: HashMap<&str, Vec<FunctionId>> = HashMap::new();
    for (number, it) in counted.iter().enumerate() {
        for (index, function) in it.module.functions.iter().enumerate() {
            named
                .entry(&function.name)
                .or_default()
                .push((number, index));
        }
    }
    named
}

/// Which function has which block. Where several begin, that is the one which is called.
pub fn places(functions: &[Function]) -> HashMap<LinkAddr, usize> {
    let all = || functions.iter().enumerate();
    let blocks = all().flat_map(|(index, it)| it.blocks.iter().map(move |b| (b.address, index)));
    let entries = all().map(|(index, it)| (it.address, index));
    blocks.chain(entries).collect()
}

/// How often control left a function for good behind each block.
fn leaves(named: &Named<'_>) -> HashMap<usize, Count> {
    let mut all: HashMap<usize, Count> = HashMap::new();
    let edges = named.function.edges.iter();
    for (edge, count) in edges.zip(count::edges(named.counts)) {
        if let (EdgeKind::Leave, Some(from)) = (edge.kind, edge.from) {
            let sum = all.entry(from as usize).or_default();
            *sum = sum.plus(count).unwrap_or(Count::Unknown);
        }
    }
    all
}
