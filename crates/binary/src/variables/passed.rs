//! What arguments are where a function begins.
//!
//! Code that is not optimised puts its arguments into its frame, and the debug information knows them
//! only there, whatever the place. Before that has happened they are where callers put them, as the
//! System V ABI has it.

use gimli::{
    AttributeValue, DebuggingInformationEntry as Die, Operation, Unit, UnitOffset, constants as dw,
};
use headcount_model::{Binary, Expression};

use super::{Frame, LONGEST_CHAIN, Place, Variables, broken, size_of};
use crate::debug_files::Slice;

/// The registers of the first integers and pointers.
const REGISTERS: [u8; 6] = [7, 6, 2, 1, 8, 9];

/// No more lines are read to find where a function has set its frame up.
const MOST_ROWS: usize = 64;

/// How something is passed, or returned.
enum Class {
    /// In a register for integers.
    Integer,
    /// In other registers.
    Other,
    /// Its address is passed.
    Reference,
    /// On the stack; returned where the caller says in the first register.
    Memory,
}

impl<'a> Variables<'_, 'a> {
    /// Is a variable in its function's frame, which is not filled yet at this place?
    pub(super) fn is_filled_later(
        &self,
        unit: &Unit<Slice<'a>>,
        location: AttributeValue<Slice<'a>>,
        place: &Place,
        frame: &Frame,
    ) -> bool {
        is_in_frame(unit, Some(location))
            && !self.is_of_caller(place)
            && self.is_in_prologue(frame.function)
    }

    /// Is something above the return address, where the caller put it?
    fn is_of_caller(&self, place: &Place) -> bool {
        let (Ok(cfa), Some(address)) = (&self.cfa, &place.address) else {
            return false;
        };
        distance(address).zip(distance(cfa)).is_some_and(
            |((register, address), (of_frame, cfa))| register == of_frame && address >= cfa,
        )
    }

    fn begin(&self, function: UnitOffset) -> Option<u64> {
        let die = self.unit.entry(function).ok()?;
        let begin = die.attr_value(dw::DW_AT_low_pc)?;
        self.dwarf().attr_address(self.unit, begin).ok()?
    }

    fn end(&self, function: UnitOffset) -> Option<u64> {
        let die = self.unit.entry(function).ok()?;
        let begin = self.begin(function)?;
        let mut ranges = self.dwarf().die_ranges(self.unit, &die).ok()?;
        while let Ok(Some(range)) = ranges.next() {
            if range.begin == begin {
                return Some(range.end);
            }
        }
        None
    }

    /// Has the function only begun? What sets the frame up ends where its second line begins, unless
    /// the compiler says where.
    pub(super) fn is_in_prologue(&self, function: UnitOffset) -> bool {
        let (Some(begin), Some(program)) = (self.begin(function), self.unit.line_program.clone())
        else {
            return false;
        };
        let end = self.end(function).unwrap_or(u64::MAX);
        let mut rows = program.rows();
        let mut behind: Vec<(u64, bool)> = Vec::new();
        while let Ok(Some((_, row))) = rows.next_row() {
            let is_near = row.address() > begin && !row.end_sequence();
            if is_near && row.address() < end && row.address() - begin < 4096 {
                behind.push((row.address(), row.prologue_end()));
            }
        }
        behind.sort_unstable();
        behind.truncate(MOST_ROWS);
        let told = behind.iter().find(|it| it.1);
        let end = told.or(behind.first());
        self.at == begin || end.is_some_and(|it| (begin..it.0).contains(&self.at))
    }

    /// What an argument is where its function begins.
    pub(super) fn passed(
        &self,
        wanted: &Die<Slice<'a>>,
        function: UnitOffset,
    ) -> Result<Place, String> {
        let none = || {
            "it has no value yet at this place, where its function has only begun; name a line \
             inside: FILE:LINE(…)"
                .to_owned()
        };
        let is_parameter = wanted.tag() == dw::DW_TAG_formal_parameter;
        if !is_parameter || self.begin(function) != Some(self.at) {
            return Err(none());
        }
        let strange = || {
            "how it is passed to its function is not known; use a register or arg1, arg2, …"
                .to_owned()
        };
        // Go has an ABI of its own.
        if matches!(self.language(), None | Some(dw::DW_LANG_Go)) {
            return Err(strange());
        }
        let die = self.unit.entry(function).map_err(broken)?;
        let mut used = match self.attribute(self.unit, &die, dw::DW_AT_type, LONGEST_CHAIN) {
            None => 0,
            Some(_) => match self.class(&die).ok_or_else(strange)? {
                Class::Reference | Class::Memory => 1,
                Class::Integer | Class::Other => 0,
            },
        };
        let mut tree = self.unit.entries_tree(Some(function)).map_err(broken)?;
        let mut children = tree.root().map_err(broken)?.children();
        while let Some(child) = children.next().map_err(broken)? {
            let die = child.entry();
            if die.tag() != dw::DW_TAG_formal_parameter {
                continue;
            }
            let class = self.class(die).ok_or_else(strange)?;
            let register = REGISTERS.get(used).copied();
            if die.offset() == wanted.offset() {
                let register = || register.map(Expression::Register).ok_or_else(strange);
                return match class {
                    Class::Integer => Ok(Place::of_value(register()?)),
                    Class::Reference => Ok(Place::at(register()?)),
                    _ => Err(strange()),
                };
            }
            // Of optimised functions, parameters may have been left out.
            if !is_in_frame(self.unit, die.attr_value(dw::DW_AT_location)) {
                return Err(strange());
            }
            used += usize::from(matches!(class, Class::Integer | Class::Reference));
        }
        Err(strange())
    }

    pub(super) fn language(&self) -> Option<gimli::DwLang> {
        self.language_of(self.unit)
    }

    pub(super) fn language_of(&self, unit: &Unit<Slice<'a>>) -> Option<gimli::DwLang> {
        let root = unit.entry(unit.header.root_offset()).ok()?;
        match root.attr_value(dw::DW_AT_language)? {
            AttributeValue::Language(language) => Some(language),
            _ => None,
        }
    }

    /// How a value of the type of an entry is passed. `None`: that takes more than its size to know.
    fn class(&self, of: &Die<Slice<'a>>) -> Option<Class> {
        if is_reference_in_frame(self.unit, of.attr_value(dw::DW_AT_location)) {
            return Some(Class::Reference);
        }
        let kind = self.type_of(self.unit, of).ok()?;
        let (_, die) = self.type_at(kind).ok()?;
        if self.number(kind).ok()?.is_some() {
            return Some(Class::Integer);
        }
        let is_referred = matches!(
            die.attr_value(dw::DW_AT_calling_convention),
            Some(AttributeValue::CallingConvention(
                dw::DW_CC_pass_by_reference
            ))
        );
        match die.tag() {
            dw::DW_TAG_base_type => match die.attr_value(dw::DW_AT_encoding)? {
                AttributeValue::Encoding(dw::DW_ATE_float) => Some(Class::Other),
                _ => None,
            },
            // Rust does with what is not a single number as it likes.
            _ if self.language() == Some(dw::DW_LANG_Rust) => None,
            _ if is_referred => Some(Class::Reference),
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                (size_of(&die)? > 16).then_some(Class::Memory)
            }
            _ => None,
        }
    }
}

/// Is a variable always at the same distance from its function's frame?
fn is_in_frame<'a>(unit: &Unit<Slice<'a>>, location: Option<AttributeValue<Slice<'a>>>) -> bool {
    let Some(AttributeValue::Exprloc(program)) = location else {
        return false;
    };
    let first = program.operations(unit.encoding()).next();
    matches!(first, Ok(Some(Operation::FrameOffset { .. })))
}

/// Does the frame have the address of a variable, and not the variable?
fn is_reference_in_frame<'a>(
    unit: &Unit<Slice<'a>>,
    location: Option<AttributeValue<Slice<'a>>>,
) -> bool {
    let Some(AttributeValue::Exprloc(program)) = location else {
        return false;
    };
    let mut operations = program.operations(unit.encoding());
    let (first, second) = (operations.next(), operations.next());
    matches!(first, Ok(Some(Operation::FrameOffset { .. })))
        && matches!(second, Ok(Some(Operation::Deref { size: 8, .. })))
}

/// A register and a distance, if an address is that.
fn distance(address: &Expression) -> Option<(u8, i64)> {
    match address {
        Expression::Register(number) => Some((*number, 0)),
        Expression::Binary(Binary::Add, left, right) => match (distance(left)?, &**right) {
            ((number, before), Expression::Constant(more)) => Some((number, before + more)),
            _ => None,
        },
        _ => None,
    }
}
