//! `--tally` and `--targets`: from the user's words to probes in modules.

use std::collections::HashSet;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use headcount_binary::{Variable, Variables, is_chosen_late};
use headcount_language::{Found as Interpreter, Language, Runtime};
use headcount_model::{
    Block, Expression, Function, KeyKind, KeyOf, KeyedProbe, LineRun, LinkAddr, MOST_ASKED, Module,
    Width,
};
use headcount_monitor::{FileBytes, Interpreted, KeyedIn, TallyAsked, Tallying, find_debug_file};
use headcount_patch::MOST_TEMPORARIES;
use headcount_report::{no_function_in, split_module};
use headcount_tally::{
    Asked, At, Misread, Names, STACK, Scale, Term, Typed, Unresolved, is_by_convention, parse,
};
use iced_x86::{FlowControl, Instruction};

use crate::args::Tallies as Arguments;
use crate::cache;
use crate::selection::{Selection, entries_of, names_file, names_module};
use crate::started_with;

/// What is to be counted by value.
pub struct Tallies {
    asked: Vec<One>,
    targets: bool,
    /// Of which languages the instructions are counted that interpreters run.
    languages: Vec<Language>,
}

/// One thing that is asked for.
struct One {
    text: String,
    asked: Asked,
    /// The module that the user names.
    module: Option<String>,
    place: Place,
    /// Are values looked at when the instruction there has run?
    is_after: bool,
}

/// Where values are looked at.
enum Place {
    Function(String),
    /// So many bytes behind the beginning of a function.
    Behind(String, u64),
    Line(String, u32),
    Address(LinkAddr),
}

/// A place in a module.
#[derive(Clone, Copy)]
struct Spot {
    at: LinkAddr,
    what: At,
    /// Control goes away to another function, which returns in its place.
    is_jump: bool,
}

impl Tallies {
    /// As the user typed it.
    pub fn new(args: &Arguments, languages: &[Language]) -> Result<Option<Self>> {
        if args.tally.is_empty() && !args.targets && languages.is_empty() {
            return Ok(None);
        }
        let mut asked: Vec<One> = Vec::new();
        for text in &args.tally {
            let one = One::new(text)?;
            // Once is enough.
            if !asked.iter().any(|it| it.asked == one.asked) {
                asked.push(one);
            }
        }
        if asked.len() > MOST_ASKED {
            bail!("at most {MOST_ASKED} values can be counted at once");
        }
        Ok(Some(Self {
            asked,
            targets: args.targets,
            languages: languages.to_vec(),
        }))
    }

    /// The same for the monitor, which asks where probes are.
    pub fn for_monitor<'a>(
        &self,
        probes: &'a dyn Fn(&str, &str, &FileBytes) -> KeyedIn,
    ) -> Tallying<'a> {
        let mut tallies: Vec<TallyAsked> = self.asked.iter().map(One::told).collect();
        let targets = self.targets.then_some(tallies.len() as u8);
        if self.targets {
            tallies.push(TallyAsked {
                place: "indirect calls and jumps".to_owned(),
                expression: "target".to_owned(),
                is_targets: true,
                ..TallyAsked::default()
            });
        }
        if !self.languages.is_empty() {
            tallies.push(TallyAsked {
                place: "interpreted programs".to_owned(),
                is_program: true,
                ..TallyAsked::default()
            });
        }
        Tallying {
            tallies,
            probes,
            targets,
        }
    }

    /// Adds the probes of an interpreter, if this is one.
    fn add_program(&self, path: &str, bytes: &[u8], found: &mut KeyedIn) {
        if self.languages.is_empty() {
            return;
        }
        let interpreter = match interpreter(bytes) {
            None => return,
            Some(Ok(interpreter)) => interpreter,
            Some(Err(why)) => {
                let note = format!("The programs that {path} interprets are not counted: {why}.");
                found.notes.push(note);
                return;
            }
        };
        if !self.languages.contains(&interpreter.language) {
            return;
        }
        // Behind all others.
        let tally = (self.asked.len() + usize::from(self.targets)) as u8;
        let probes = interpreter.fetches.into_iter().map(|it| KeyedProbe {
            free: it.free,
            ..of_program(it.at, tally, it.address.expression())
        });
        found.probes.extend(probes);
        let runtime = match interpreter.runtime.transpose() {
            Ok(runtime) => runtime.map(Rc::new),
            Err(why) => {
                let what = match interpreter.language.has_measured_runtime() {
                    true => "Resumptions, bytes, storage and samples by token",
                    false => "Samples by token",
                };
                let note = format!("{what} are not measured with {path}: {why}.");
                found.notes.push(note);
                None
            }
        };
        let of_runtime = runtime.iter().flat_map(|it| of_runtime(it, tally));
        found.probes.extend(of_runtime);
        found.interpreted = Some(Interpreted {
            interpreter: interpreter.interpreter,
            tally,
            place: 0,
            runtime,
            storage_place: 0,
            samples_place: 0,
            watch: interpreter.watch,
            language: interpreter.language,
        });
    }

    /// The probes of a module.
    pub fn probes(&self, path: &str, key: &str, bytes: &FileBytes) -> KeyedIn {
        let mut found = KeyedIn::default();
        self.add_program(path, (**bytes).as_ref(), &mut found);
        let may_be_there = |it: &&One| it.may_be_in(path, (**bytes).as_ref());
        if !self.asked.iter().any(|it| may_be_there(&it)) {
            return found;
        }
        let module = match File::new(path, key, bytes) {
            Ok(module) => module,
            Err(why) => {
                found
                    .notes
                    .push(format!("No values are counted in {path}: {why}."));
                return found;
            }
        };
        for (number, one) in (0_u8..).zip(&self.asked) {
            if !may_be_there(&one) {
                continue;
            }
            match one.probes(number, &module) {
                Ok(probes) => found.probes.extend(probes),
                Err(why) => found.notes.push(format!(
                    "The values of {} are not counted in {path}: {why:#}.",
                    one.text
                )),
            }
        }
        found
    }

    /// Fails if something that is asked for is nowhere in the program and the libraries that it is
    /// started with, or is in code that is not counted. Who names a module that is none of these knows
    /// what will be loaded.
    pub fn check(&self, modules: &[(String, FileBytes)], selection: &Selection) -> Result<()> {
        if modules.is_empty() {
            // Why it cannot be started is said when that is tried.
            return Ok(());
        }
        for one in &self.asked {
            let is_meant = |it: &&(String, FileBytes)| match &one.module {
                Some(module) => names_module(module, &it.0),
                None => true,
            };
            if modules.iter().find(is_meant).is_some() {
                one.check(modules, selection)?;
            }
        }
        Ok(())
    }
}

/// A probe that counts by the address of an instruction of an interpreted program.
fn of_program(at: LinkAddr, tally: u8, address: Expression) -> KeyedProbe {
    KeyedProbe {
        at,
        tally,
        place: 0,
        is_fetch: true,
        key: KeyOf::Number(address),
        within: None,
        amount: None,
        caller: None,
        free: 0,
        direct: None,
    }
}

/// The probes of an interpreter's runtime.
fn of_runtime(runtime: &Runtime, tally: u8) -> impl Iterator<Item = KeyedProbe> {
    let resumptions = runtime.resumptions.iter();
    let resumptions = resumptions.map(move |it| of_program(it.at, tally, it.address()));
    let allocations = runtime.allocations.iter().map(move |it| KeyedProbe {
        amount: Some(it.amount()),
        ..of_program(it.at, tally, runtime.address())
    });
    resumptions.chain(allocations)
}

/// What a file interprets; or why that is not known.
fn interpreter(bytes: &[u8]) -> Option<Result<Interpreter, String>> {
    if !headcount_language::is_likely(bytes) {
        return None;
    }
    let what = format!("interpreter {}", blake3::hash(bytes).to_hex());
    let kept = cache::prepared(&what).and_then(|it| Interpreter::unpack(&it));
    if let Some(kept) = kept {
        return Some(Ok(kept));
    }
    let found = headcount_language::find(bytes)?;
    if let Ok(found) = &found {
        cache::keep_prepared(&what, &found.pack());
    }
    Some(found)
}

impl One {
    fn new(text: &str) -> Result<Self> {
        let asked = parse(text).context("--tally")?;
        let after = asked.place.strip_prefix("after ").map(str::trim_start);
        let place = after.unwrap_or(&asked.place);
        let (module, rest) = match split_module(place) {
            Some((module, rest)) => (Some(module.to_owned()), rest),
            None => (None, place),
        };
        let is_after = after.is_some();
        let place = Place::of(rest);
        if is_after && !matches!(place, Place::Address(_) | Place::Behind(..)) {
            bail!(
                "--tally '{}': `after` wants one instruction: FUNCTION+0xOFFSET or 0xADDRESS",
                text.trim()
            );
        }
        Ok(Self {
            is_after,
            text: text.trim().to_owned(),
            module,
            place,
            asked,
        })
    }

    fn told(&self) -> TallyAsked {
        TallyAsked {
            place: self.asked.place.clone(),
            expression: self.asked.expression.clone(),
            scale: match self.asked.scale {
                Scale::Log2 => "log2".to_owned(),
                Scale::Linear(width) => width.to_string(),
                Scale::Exact | Scale::Range(..) | Scale::Text(_) => String::new(),
            },
            by_caller: self.asked.by_caller,
            has_amount: self.asked.amount.is_some(),
            is_targets: false,
            is_program: false,
            is_text: matches!(self.asked.scale, Scale::Text(_)),
        }
    }

    /// May it be in this file? Most libraries have no such name, and need not be read.
    fn may_be_in(&self, path: &str, bytes: &[u8]) -> bool {
        if let Some(module) = &self.module {
            return names_module(module, path);
        }
        let word = match &self.place {
            Place::Function(name) | Place::Behind(name, _) => rarest_word(name),
            Place::Line(..) => ".debug_line",
            Place::Address(_) => "",
        };
        memchr::memmem::find(bytes, word.as_bytes()).is_some()
    }

    fn check(&self, modules: &[(String, FileBytes)], selection: &Selection) -> Result<()> {
        let mut whys = Vec::new();
        for (number, (path, bytes)) in modules.iter().enumerate() {
            if !self.may_be_in(path, (**bytes).as_ref()) {
                continue;
            }
            let Ok(module) = File::of_program(path, bytes) else {
                continue;
            };
            match self.probes(0, &module) {
                Ok(probes) if probes.is_empty() => {}
                Ok(probes) if is_selected(&probes, selection, &module, number == 0) => {
                    return Ok(());
                }
                Ok(_) => whys.push(not_selected(&self.asked.place)),
                Err(why) => whys.push(why),
            }
        }
        if let Some(why) = whys.into_iter().next() {
            return Err(why.context(format!("--tally '{}'", self.text)));
        }
        let there = "in the program or the libraries that it is started with";
        let cure = || {
            format!(
                "name the module of one that it loads later: MODULE!{}",
                self.asked.place
            )
        };
        let why = match &self.place {
            Place::Line(file, line) => {
                format!(
                    "no code begins on line {line} of {file} {there}; {}",
                    cure()
                )
            }
            Place::Address(at) => format!("no counted instruction is at {at} {there}; {}", cure()),
            Place::Function(name) | Place::Behind(name, _)
                if modules
                    .iter()
                    .any(|it| is_chosen_late((*it.1).as_ref(), name)) =>
            {
                format!(
                    "{name} is one of several functions, chosen when the program starts (IFUNC); \
                     name these, such as '__{name}_*'"
                )
            }
            Place::Function(name) | Place::Behind(name, _) => {
                let mut modules = modules.iter();
                let program = modules.find(|it| match &self.module {
                    Some(module) => names_module(module, &it.0),
                    None => true,
                });
                let program = program.and_then(|(path, bytes)| File::of_program(path, bytes).ok());
                let modules: Vec<&Module> = program.iter().map(|it| &it.module).collect();
                no_function_in(&modules, name)
            }
        };
        bail!("--tally '{}': {why}", self.text)
    }

    /// Its probes in a module, if it has such a place.
    fn probes(&self, tally: u8, module: &File) -> Result<Vec<KeyedProbe>> {
        let is_of_return = self.has_name(&|it| it == "ret");
        if let Some(refused) = self.refused(module) {
            bail!("{} is not counted: {refused}", self.asked.place);
        }
        let spots = self.spots(module, is_of_return)?;
        if !spots.is_empty()
            && self.has_name(&is_by_convention)
            && headcount_binary::is_of_go((*module.bytes).as_ref())
        {
            bail!(
                "Go passes arguments and results in its own way; name registers (rax, rbx, rcx, rdi, \
                 rsi, r8, …) or variables"
            );
        }
        let mut probes = Vec::new();
        for spot in spots {
            probes.push(self.probe(tally, module, spot)?);
        }
        Ok(probes)
    }

    fn has_name(&self, is_it: &dyn Fn(&str) -> bool) -> bool {
        let Asked { key, amount, .. } = &self.asked;
        key.iter().chain(amount).any(|it| it.has_name(is_it))
    }

    fn refused(&self, file: &File) -> Option<String> {
        let (Place::Function(name) | Place::Behind(name, _)) = &self.place else {
            return None;
        };
        if file.functions(name).next().is_some() {
            return None;
        }
        let mut refusals = file.module.refusals.iter();
        let refused = refusals.find(|it| it.subject == *name)?;
        Some(refused.reason.clone())
    }

    fn probe(&self, tally: u8, file: &File, spot: Spot) -> Result<KeyedProbe> {
        let resolve = |term: &Term| self.resolve(term, file, spot);
        let key = match (&self.asked.key, spot.is_jump) {
            (_, true) => KeyOf::Only(KeyKind::Jumped),
            (Some(key), false) => match self.asked.scale {
                Scale::Text(bytes) => KeyOf::Text(resolve(key)?, bytes),
                _ => KeyOf::Number(resolve(key)?),
            },
            (None, false) => KeyOf::Only(KeyKind::Number),
        };
        let within = match self.asked.scale {
            Scale::Range(least, end) if !spot.is_jump => Some((least, end)),
            _ => None,
        };
        let amount = match (&self.asked.amount, spot.is_jump) {
            (Some(_), true) => Some(Expression::Constant(0)),
            (Some(amount), false) => Some(resolve(amount)?),
            (None, _) => None,
        };
        Ok(KeyedProbe {
            at: spot.at,
            tally,
            place: 0,
            key,
            within,
            amount,
            caller: match self.asked.by_caller {
                true => Some(file.caller(spot)?),
                false => None,
            },
            is_fetch: false,
            free: 0,
            direct: None,
        })
    }

    fn resolve(&self, term: &Term, file: &File, spot: Spot) -> Result<Expression> {
        let found = headcount_binary::with_variables(
            (*file.bytes).as_ref(),
            &mut |wanted| find_debug_file(Path::new(&file.module.path), &wanted),
            spot.at,
            |it| term.resolve(spot.what, &Scope(it)),
        );
        let found = found?.map_err(|Unresolved { at, why }| Misread {
            text: self.text.clone(),
            at,
            why,
        })?;
        if found.temporaries() > MOST_TEMPORARIES {
            bail!("the expression is too deep");
        }
        Ok(found)
    }

    fn spots(&self, file: &File, is_of_return: bool) -> Result<Vec<Spot>> {
        let inside = |at| Spot {
            at,
            what: At::Inside,
            is_jump: false,
        };
        Ok(match &self.place {
            Place::Function(name) if is_of_return => {
                let mut spots = Vec::new();
                for function in file.functions(name) {
                    spots.extend(returns(function)?);
                }
                spots
            }
            Place::Function(name) => {
                let entries = file.functions(name).map(|function| Spot {
                    at: function.address,
                    what: At::Entry,
                    is_jump: false,
                });
                entries.collect()
            }
            Place::Behind(name, distance) => {
                let mut spots = Vec::new();
                for function in file.functions(name) {
                    let at = LinkAddr(function.address.0.wrapping_add(*distance));
                    if !has_instruction(function, at) {
                        bail!("no instruction begins {distance:#x} bytes behind {name}");
                    }
                    spots.push(inside(self.before_or_after(function, at)?));
                }
                spots
            }
            Place::Address(at) => {
                let mut all = file.module.functions.iter();
                match all.find(|it| has_instruction(it, *at)) {
                    Some(function) => vec![inside(self.before_or_after(function, *at)?)],
                    None => Vec::new(),
                }
            }
            Place::Line(source, line) => {
                let mut spots = Vec::new();
                for function in &file.module.functions {
                    let found = beginnings(&file.module, function, source, *line);
                    spots.extend(found.into_iter().map(inside));
                }
                spots
            }
        })
    }
}

impl One {
    /// Where values are looked at: at an instruction, or at the one that it always leads to.
    fn before_or_after(&self, function: &Function, at: LinkAddr) -> Result<LinkAddr> {
        if !self.is_after {
            return Ok(at);
        }
        let next = function.blocks.iter().find_map(|block| {
            let code = instructions(block);
            let own = code.iter().position(|it| it.ip() == at.0)?;
            let next = code.get(own + 1).filter(|_| !is_call(&code[own]));
            Some(next.map(|it| LinkAddr(it.ip())))
        });
        next.flatten().with_context(|| {
            format!(
                "the instruction at {at} does not always lead to the next one; name the one that it leads to"
            )
        })
    }
}

fn is_call(it: &Instruction) -> bool {
    matches!(
        it.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}

impl Place {
    fn of(text: &str) -> Self {
        let number = |it: &str| u64::from_str_radix(it.strip_prefix("0x")?, 16).ok();
        if let Some(at) = number(text) {
            return Self::Address(LinkAddr(at));
        }
        if let Some((file, line)) = text.rsplit_once(':')
            && !file.ends_with(':')
            && let Ok(line) = line.parse()
        {
            return Self::Line(file.to_owned(), line);
        }
        if let Some((name, distance)) = text.rsplit_once('+')
            && let Some(distance) = number(distance)
        {
            return Self::Behind(name.to_owned(), distance);
        }
        Self::Function(text.to_owned())
    }
}

/// Is any of these places in code that the user wants counted?
fn is_selected(
    probes: &[KeyedProbe],
    selection: &Selection,
    file: &File,
    is_program: bool,
) -> bool {
    let module = &file.module;
    if !selection.wants(&module.path, is_program) {
        return false;
    }
    if selection.is_everything() {
        return true;
    }
    let blocks = module.functions.iter().flat_map(|it| &it.blocks);
    let chosen = blocks.zip(selection.choose(module)).filter(|it| it.1);
    let mut pieces = chosen.flat_map(|(block, _)| &block.code);
    pieces.any(|piece| {
        let end = piece.address.0 + piece.bytes.len() as u64;
        let mut places = probes.iter().map(|it| it.at.0);
        places.any(|at| (piece.address.0..end).contains(&at))
    })
}

fn not_selected(place: &str) -> anyhow::Error {
    anyhow::anyhow!(
        "{place} is in code that is not to be counted; select it, too (--only, --skip, --modules, --unit)"
    )
}

/// The variables at a place, if the debug information knows any.
struct Scope<'v, 's, 'a>(Option<&'v Variables<'s, 'a>>);

impl<'s, 'a> Scope<'_, 's, 'a> {
    fn known(&self) -> Result<&Variables<'s, 'a>, String> {
        let why = "it is no register and no argument (rax, edi, arg1, ret), and without debug \
                   information (-g) there are no variables";
        self.0.ok_or_else(|| why.to_owned())
    }
}

fn typed(it: Variable) -> Typed {
    Typed {
        value: it.value,
        address: it.address,
        number: it.number,
        kind: it.kind,
    }
}

fn variable(it: &Typed) -> Variable {
    let Typed {
        value,
        address,
        number,
        kind,
    } = it.clone();
    Variable {
        value,
        address,
        number,
        kind,
    }
}

impl Names for Scope<'_, '_, '_> {
    fn variable(&self, name: &str) -> Result<Typed, String> {
        self.known()?.variable(name).map(typed)
    }

    fn field(&self, of: &Typed, name: &str, is_arrow: bool) -> Result<Typed, String> {
        let found = self.known()?.field(&variable(of), name, is_arrow);
        found.map(typed)
    }

    fn element(&self, of: &Typed, index: Expression) -> Result<Typed, String> {
        self.known()?.element(&variable(of), index).map(typed)
    }
}

/// What is known of a module.
struct File {
    bytes: FileBytes,
    module: Module,
    /// All names of its functions: some have several.
    names: Vec<(String, LinkAddr)>,
}

impl File {
    fn new(path: &str, key: &str, bytes: &FileBytes) -> Result<Self, String> {
        let facts = cache::facts(path, key, bytes)?;
        Ok(Self {
            bytes: bytes.clone(),
            module: facts.module().map_err(|it| it.to_string())?,
            names: headcount_binary::function_names((**bytes).as_ref())
                .map_err(|it| it.to_string())?,
        })
    }

    /// One that is not loaded yet.
    fn of_program(path: &str, bytes: &FileBytes) -> Result<Self, String> {
        Self::new(path, &started_with::key(bytes)?, bytes)
    }

    /// The address that the function around a place returns to.
    fn caller(&self, spot: Spot) -> Result<Expression> {
        if spot.what != At::Inside {
            return Ok(Expression::load(Width::WHOLE, Expression::Register(STACK)));
        }
        let found = headcount_binary::return_address((*self.bytes).as_ref(), spot.at);
        found.map_err(|why| anyhow::anyhow!("callers are not known at {}: {why}", spot.at))
    }

    /// The functions that a name stands for.
    fn functions(&self, name: &str) -> impl Iterator<Item = &Function> {
        let of_others = self.names.iter().filter(|it| it.0 == name).map(|it| it.1);
        let mut entries: HashSet<LinkAddr> = of_others.collect();
        entries.extend(entries_of(name, &self.module));
        if entries.is_empty() {
            // Compilers number functions that are written in others.
            let numbered = self.names.iter().filter(|it| without_number(&it.0) == name);
            entries.extend(numbered.map(|it| it.1));
        }
        let all = self.module.functions.iter();
        all.filter(move |it| entries.contains(&it.address))
    }
}

/// The name of a function without the number behind a dot.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((bare, number)) if number.bytes().all(|it| it.is_ascii_digit()) => bare,
        _ => name,
    }
}

fn instructions(block: &Block) -> Vec<Instruction> {
    let code = block.code.iter().flat_map(headcount_x86::walk);
    code.flatten().collect()
}

fn has_instruction(function: &Function, at: LinkAddr) -> bool {
    let is_there = |block: &Block| {
        let mut code = block.code.iter();
        code.any(|it| {
            let end = it.address.0 + it.bytes.len() as u64;
            (it.address.0..end).contains(&at.0)
        })
    };
    let mut blocks = function.blocks.iter().filter(|it| is_there(it));
    blocks.any(|block| instructions(block).iter().any(|it| it.ip() == at.0))
}

/// Where statements of a line begin: where control comes to it from another line. Behind a call, say, a
/// statement only goes on.
fn beginnings(module: &Module, function: &Function, file: &str, line: u32) -> Vec<LinkAddr> {
    let is_on_it = |it: &LineRun| {
        let path = module.files.get(it.file.index());
        it.line == line && path.is_some_and(|path| names_file(file, path))
    };
    let mut found = Vec::new();
    for (number, block) in (0_u32..).zip(&function.blocks) {
        if !block.lines.iter().any(|it| it.is_stmt && is_on_it(it)) {
            continue;
        }
        let code = instructions(block);
        let of_lines: u32 = block.lines.iter().map(|it| it.instructions).sum();
        let mut next = block.instructions.saturating_sub(of_lines);
        // The inlined copy whose statement goes on.
        let first = block.lines.first().map(|it| it.inline_copy);
        let mut goes_on = first.filter(|copy| {
            let is_same = |it: &LineRun| is_on_it(it) && it.inline_copy == *copy;
            comes_only_from(function, number, &is_same)
        });
        for run in &block.lines {
            if !is_on_it(run) {
                goes_on = None;
            } else if run.is_stmt && goes_on != Some(run.inline_copy) {
                // A statement without instructions of its own begins where the next one does.
                found.extend(code.get(next as usize).map(|it| LinkAddr(it.ip())));
                goes_on = Some(run.inline_copy);
            }
            next += run.instructions;
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Does control come to a block only from blocks that end in a statement of the line?
fn comes_only_from(function: &Function, block: u32, is_on_it: &dyn Fn(&LineRun) -> bool) -> bool {
    only_from(function, block, is_on_it, &mut HashSet::new())
}

fn only_from(
    function: &Function,
    block: u32,
    is_on_it: &dyn Fn(&LineRun) -> bool,
    seen: &mut HashSet<u32>,
) -> bool {
    let mut ends_in_it = |number: u32| {
        let Some(block) = function.blocks.get(number as usize) else {
            return false;
        };
        let on_it = block.lines.iter().rev().take_while(|it| is_on_it(it));
        if on_it.clone().any(|it| it.is_stmt) {
            return true;
        }
        // In the midst of a statement that began in the blocks before it.
        let of_line: u32 = on_it.map(|it| it.instructions).sum();
        let is_inside = of_line != 0 && of_line == block.instructions;
        is_inside && (!seen.insert(number) || only_from(function, number, is_on_it, seen))
    };
    let mut from = function.edges.iter().filter(|it| it.to == Some(block));
    let has_any = from.clone().next().is_some();
    has_any && from.all(|it| it.from.is_some_and(&mut ends_in_it))
}

/// Where a function returns, and where it jumps to another one that returns in its place.
fn returns(function: &Function) -> Result<Vec<Spot>> {
    let own: HashSet<u64> = function.blocks.iter().map(|it| it.address.0).collect();
    let mut spots = Vec::new();
    for block in &function.blocks {
        let code = instructions(block);
        let Some(last) = code.last() else {
            continue;
        };
        let leaves = !own.contains(&last.near_branch_target());
        let is_jump = match last.flow_control() {
            FlowControl::Return => false,
            FlowControl::UnconditionalBranch if leaves => true,
            FlowControl::IndirectBranch if has_no_target(function, block) => true,
            FlowControl::ConditionalBranch if leaves => bail!(
                "{} may end by a conditional jump to another function (at {:#x}), which returns in \
                 its place",
                function.name,
                last.ip()
            ),
            _ => continue,
        };
        spots.push(Spot {
            at: LinkAddr(last.ip()),
            what: At::Return,
            is_jump,
        });
    }
    Ok(spots)
}

/// Does nothing in the function follow this block?
fn has_no_target(function: &Function, block: &Block) -> bool {
    let number = function
        .blocks
        .iter()
        .position(|it| it.address == block.address);
    let number = number.and_then(|it| u32::try_from(it).ok());
    let mut edges = function.edges.iter();
    !edges.any(|it| it.from == number && it.to.is_some())
}

/// The longest word of a name: files that do not have it need not be read.
fn rarest_word(name: &str) -> &str {
    let words = name.split(|it: char| !it.is_alphanumeric() && it != '_');
    words.max_by_key(|it| it.len()).unwrap_or_default()
}
