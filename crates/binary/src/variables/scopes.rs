//! Which variable does a name mean, at this instruction?
//!
//! First those of the innermost block around it are looked at, then those of its function, then those of the
//! functions that this one is written in (Ada, Fortran and Pascal have such). Last come those outside of
//! functions: what is in the function's own module or namespace hides what is further out, and where
//! several may be meant, none is.

use std::collections::HashMap;

use gimli::{
    AttributeValue, DebuggingInformationEntry as Die, DwLang, EntriesTreeNode, Operation, Unit,
    UnitOffset, constants as dw,
};
use headcount_model::Expression;

use super::{Frame, LONGEST_CHAIN, Variable, Variables, broken, is_ada, is_fortran};
use crate::debug_files::Slice;

/// The function that a scope belongs to.
#[derive(Clone, Copy)]
enum Within<'f> {
    /// None.
    Nothing,
    /// The one that the instruction is in.
    Here(&'f Frame),
    /// Another one. The instruction may be in a function inside of it.
    Other,
}

/// What came of looking for a variable in a scope.
enum Search {
    /// The instruction is elsewhere.
    Elsewhere,
    /// The instruction is in here, and no variable has the name. Where the function around this one has its
    /// frame, if this is a function.
    Missed(Option<Result<Expression, String>>),
    Found(Variable),
}

/// A variable outside of all functions.
struct Outside {
    variable: Result<Variable, String>,
    /// What it is in: modules, namespaces and classes, from the outermost one.
    path: Vec<String>,
    /// Can other units see it?
    is_shared: bool,
}

impl<'a> Variables<'_, 'a> {
    /// The variable that a name means: `n`, or `space::n`.
    pub fn variable(&self, name: &str) -> Result<Variable, String> {
        if !name.contains("::") {
            let mut tree = self.unit.entries_tree(None).map_err(broken)?;
            let root = tree.root().map_err(broken)?;
            if let Search::Found(found) = self.local(root, name, Within::Nothing)? {
                return Ok(found);
            }
        }
        self.global(name)
    }

    /// Looks in the scopes around the instruction, from the innermost one out.
    fn local(
        &self,
        node: EntriesTreeNode<'_, '_, Slice<'a>>,
        name: &str,
        within: Within<'_>,
    ) -> Result<Search, String> {
        let own = node.entry().clone();
        let is_function = own.tag() == dw::DW_TAG_subprogram;
        let frame = match within {
            Within::Here(_) if is_function => Some(self.frame(&own)),
            _ => None,
        };
        let within = frame.as_ref().map_or(within, Within::Here);
        let mut variable = None;
        let mut reached = match within {
            Within::Here(_) => Search::Missed(None),
            Within::Nothing | Within::Other => Search::Elsewhere,
        };
        let mut children = node.children();
        while let Some(child) = children.next().map_err(broken)? {
            let die = child.entry();
            let of_child = match die.tag() {
                dw::DW_TAG_variable | dw::DW_TAG_formal_parameter => {
                    let is_it =
                        !matches!(within, Within::Nothing) && self.is_called(self.unit, die, name);
                    // Of two in one block, the later one is in sight.
                    variable = is_it.then(|| die.clone()).or(variable);
                    continue;
                }
                dw::DW_TAG_subprogram if self.is_around(die) => {
                    // Its frame is made there.
                    let none = Frame::none(die.offset());
                    self.local(child, name, Within::Here(&none))?
                }
                dw::DW_TAG_lexical_block
                | dw::DW_TAG_inlined_subroutine
                | dw::DW_TAG_try_block
                | dw::DW_TAG_catch_block => match (within, self.is_around(die)) {
                    (Within::Here(_), true) => self.local(child, name, within)?,
                    _ => self.local(child, name, Within::Other)?,
                },
                dw::DW_TAG_subprogram => self.local(child, name, Within::Other)?,
                // Functions of classes, modules and namespaces, wherever these are.
                _ if die.has_children() => match within {
                    Within::Nothing => self.local(child, name, Within::Nothing)?,
                    _ => self.local(child, name, Within::Other)?,
                },
                _ => continue,
            };
            match of_child {
                Search::Found(_) => return Ok(of_child),
                Search::Missed(_) => reached = of_child,
                Search::Elsewhere => {}
            }
        }
        let Search::Missed(around) = reached else {
            return Ok(reached);
        };
        let of_outer = || Frame {
            base: around
                .clone()
                .unwrap_or_else(|| Err(of_function_around("nothing tells where that has it"))),
            function: own.offset(),
        };
        let outer = match within {
            Within::Other => Some(of_outer()),
            _ => None,
        };
        match (within, &outer, variable) {
            (Within::Here(frame), _, Some(die)) => {
                let found = self.located(self.unit, &die, Some(frame))?;
                return Ok(Search::Found(found));
            }
            (_, Some(outer), Some(die)) => {
                return Ok(Search::Found(self.of_function_around(&die, outer)?));
            }
            _ => {}
        }
        let frame = outer.as_ref().or(frame.as_ref());
        Ok(Search::Missed(match frame.filter(|_| is_function) {
            Some(frame) => Some(self.static_link(&own, frame)),
            None => around,
        }))
    }

    /// Where the function around this one has its frame.
    fn static_link(&self, function: &Die<Slice<'a>>, frame: &Frame) -> Result<Expression, String> {
        let why = |why: &str| Err(of_function_around(why));
        let Some(link) = function.attr_value(dw::DW_AT_static_link) else {
            return why("nothing tells where that has it");
        };
        if is_fortran(self.language()) {
            // gfortran has a place for it, and writes a zero there.
            return why("its compiler does not keep where that has it");
        }
        if self.is_in_prologue(function.offset()) {
            return why(
                "where this one begins, that is not known; name a line inside: FILE:LINE(…)",
            );
        }
        let place = self.place(self.unit, link, Some(frame))?;
        match place.address.or(place.value) {
            Some(base) => Ok(base),
            None => why("nothing tells where that has it"),
        }
    }

    /// A variable of a function that the instruction's own function is written in.
    fn of_function_around(&self, die: &Die<Slice<'a>>, frame: &Frame) -> Result<Variable, String> {
        if let Some(AttributeValue::Exprloc(program)) = die.attr_value(dw::DW_AT_location) {
            let mut operations = program.operations(self.unit.encoding());
            while let Some(operation) = operations.next().map_err(broken)? {
                if matches!(
                    operation,
                    Operation::Register { .. }
                        | Operation::RegisterOffset { .. }
                        | Operation::CallFrameCFA
                        | Operation::EntryValue { .. }
                ) {
                    // Registers are this function's now.
                    return Err(of_function_around("it is in a register of that"));
                }
            }
        }
        self.located(self.unit, die, Some(frame))
    }

    fn is_around(&self, die: &Die<Slice<'a>>) -> bool {
        let Ok(mut ranges) = self.dwarf().die_ranges(self.unit, die) else {
            return false;
        };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&self.at) {
                return true;
            }
        }
        false
    }

    /// A variable outside of all functions.
    fn global(&self, name: &str) -> Result<Variable, String> {
        let (spaces, bare) = match name.rsplit_once("::") {
            Some((spaces, bare)) => (spaces.split("::").collect(), bare),
            None => (Vec::new(), name),
        };
        let (own, around) = self.outside(self.unit, bare);
        let is_asked = |it: &Outside| {
            let mut inner = it.path.iter().rev();
            let mut asked = spaces.iter().rev();
            asked.all(|space| inner.next().is_some_and(|it| it == space))
        };
        let own: Vec<Outside> = own.into_iter().filter(is_asked).collect();
        // What is in the function's own modules hides what is in those around them.
        let around = around.unwrap_or_default();
        let in_sight = own.iter().filter(|it| around.starts_with(&it.path));
        if let Some(depth) = in_sight.clone().map(|it| it.path.len()).max() {
            return one_of(name, in_sight.filter(|it| it.path.len() == depth));
        }
        if !own.is_empty() {
            return one_of(name, own.iter());
        }
        let others = self.units.units.iter();
        let others = others.filter(|it| it.header.offset() != self.unit.header.offset());
        let others = others.flat_map(|unit| self.outside(unit, bare).0);
        let others: Vec<Outside> = others.filter(is_asked).collect();
        let shared = others.iter().filter(|it| it.is_shared);
        let in_sight = shared.clone().filter(|it| around.starts_with(&it.path));
        if let Some(depth) = in_sight.clone().map(|it| it.path.len()).max() {
            return one_of(name, in_sight.filter(|it| it.path.len() == depth));
        }
        match shared.clone().next() {
            Some(_) => one_of(name, shared),
            None => one_of(name, others.iter()),
        }
    }

    /// The variables with a name outside of all functions of a unit; and in what the function around the
    /// instruction is, if it is in this unit.
    fn outside(&self, unit: &Unit<Slice<'a>>, name: &str) -> (Vec<Outside>, Option<Vec<String>>) {
        let mut entries = unit.entries();
        let mut scopes: Vec<(isize, Option<String>)> = Vec::new();
        let mut function = None;
        let mut paths: HashMap<UnitOffset, Vec<String>> = HashMap::new();
        let mut found = Vec::new();
        let mut around = None;
        while let Ok(Some(die)) = entries.next_dfs() {
            let depth = die.depth();
            scopes.retain(|it| it.0 < depth);
            function = function.filter(|it| *it < depth);
            let path = || scopes.iter().filter_map(|it| it.1.clone()).collect();
            match die.tag() {
                dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine => {
                    if function.is_none() {
                        paths.insert(die.offset(), path());
                        function = Some(depth);
                    }
                    if std::ptr::eq(unit, self.unit) && self.is_around(die) {
                        around = Some(die.clone());
                    }
                }
                dw::DW_TAG_namespace
                | dw::DW_TAG_module
                | dw::DW_TAG_class_type
                | dw::DW_TAG_structure_type
                | dw::DW_TAG_union_type
                | dw::DW_TAG_enumeration_type => {
                    // What is in a namespace without a name is seen around it.
                    let is_seen = die.attr_value(dw::DW_AT_export_symbols).is_some();
                    let own = self.name(unit, die).filter(|_| !is_seen);
                    scopes.push((depth, own));
                }
                dw::DW_TAG_variable | dw::DW_TAG_member
                    if function.is_none() && self.is_called(unit, die, name) =>
                {
                    paths.insert(die.offset(), path());
                    if die.attr_value(dw::DW_AT_location).is_some()
                        || die.attr_value(dw::DW_AT_const_value).is_some()
                    {
                        found.push(die.clone());
                    }
                }
                _ => {}
            }
        }
        let of_ada = |die: &Die<Slice<'a>>| self.path_in_name(unit, die);
        let path = |die: &Die<Slice<'a>>| {
            let declared = self.declared_at(unit, die, LONGEST_CHAIN);
            let path = paths.get(&declared).cloned().unwrap_or_default();
            of_ada(die).unwrap_or(path)
        };
        let outside = found.iter().map(|die| Outside {
            variable: self.located(unit, die, None),
            path: path(die),
            is_shared: self
                .attribute(unit, die, dw::DW_AT_external, LONGEST_CHAIN)
                .is_some(),
        });
        (outside.collect(), around.map(|it| path(&it)))
    }

    /// Where in its unit an entry is declared: this one, or what it is a copy of.
    fn declared_at(&self, unit: &Unit<Slice<'a>>, die: &Die<Slice<'a>>, most: usize) -> UnitOffset {
        let origin = [dw::DW_AT_abstract_origin, dw::DW_AT_specification];
        let mut origins = origin.iter().filter_map(|it| die.attr_value(*it));
        let origin = origins.next().and_then(|it| self.referred(unit, it));
        match origin.filter(|it| it.0.header.offset() == unit.header.offset()) {
            Some((unit, offset)) if most > 0 => match unit.entry(offset) {
                Ok(origin) => self.declared_at(unit, &origin, most - 1),
                Err(_) => offset,
            },
            _ => die.offset(),
        }
    }

    /// Is this the name of an entry, as its language compares names?
    fn is_called(&self, unit: &Unit<Slice<'a>>, die: &Die<Slice<'a>>, name: &str) -> bool {
        let Some(own) = self.name(unit, die) else {
            return false;
        };
        if own == name {
            return true;
        }
        let language = self.language_of(unit);
        let is_pascal = language == Some(dw::DW_LANG_Pascal83);
        let bare = in_packages(language, &own).map(|it| it.1);
        match is_ada(language) || is_fortran(language) || is_pascal {
            true => bare.unwrap_or(&own).eq_ignore_ascii_case(name),
            false => bare == Some(name),
        }
    }

    /// The packages in the name of an entry, where its language puts them there.
    fn path_in_name(&self, unit: &Unit<Slice<'a>>, die: &Die<Slice<'a>>) -> Option<Vec<String>> {
        let own = self.name(unit, die)?;
        Some(in_packages(self.language_of(unit), &own)?.0)
    }
}

/// The packages in a name, and the rest of it: `pack__age__name` of GNAT, and `path/pack.Name` of Go.
fn in_packages(language: Option<DwLang>, name: &str) -> Option<(Vec<String>, &str)> {
    if is_ada(language) {
        let (packages, bare) = name.rsplit_once("__").unwrap_or(("", name));
        let packages = packages.split("__").filter(|it| !it.is_empty());
        return Some((packages.map(str::to_owned).collect(), bare));
    }
    if language != Some(dw::DW_LANG_Go) {
        return None;
    }
    let folder = name.rfind('/').map_or(0, |it| it + 1);
    let (package, bare) = name[folder..].split_once('.')?;
    let end = folder + package.len();
    Some((vec![name[..end].to_owned()], bare))
}

impl Frame {
    /// One that is not known.
    fn none(function: UnitOffset) -> Self {
        Self {
            base: Err("its function does not say where its variables are".to_owned()),
            function,
        }
    }
}

fn of_function_around(why: &str) -> String {
    format!("it is in the frame of the function around this one: {why}")
}

/// The one that a name means, if only one can be meant.
fn one_of<'v>(
    name: &str,
    mut found: impl Iterator<Item = &'v Outside>,
) -> Result<Variable, String> {
    let Some(first) = found.next() else {
        return Err(format!("no variable is called {name} here"));
    };
    for other in found {
        if other.variable != first.variable {
            let path = |it: &Outside| {
                let mut path = it.path.clone();
                path.push(name.rsplit("::").next().unwrap_or(name).to_owned());
                path.join("::")
            };
            let (one, other) = (path(first), path(other));
            return Err(match one == other {
                true => format!("several variables are called {one}"),
                false => format!("several variables are called {name}: {one}, {other}"),
            });
        }
    }
    first.variable.clone()
}
