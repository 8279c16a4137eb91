//! Where are the variables of the source, at this instruction?
//!
//! The debug information says it by small programs, and by the place where the unwinder finds the
//! caller's frame. Both become expressions of registers and memory. What they cannot say (a value that
//! the compiler did not keep, one in several pieces) is an error with the reason.

use std::collections::HashSet;

use gimli::{
    AttributeValue, BaseAddresses, CfaRule, DebugFrame, DebugInfoOffset,
    DebuggingInformationEntry as Die, DwAt, DwLang, EhFrame, EndianSlice, LittleEndian, Operation,
    Register, Unit, UnitOffset, UnwindContext, UnwindSection, constants as dw,
};
use headcount_model::{Binary, Expression, LinkAddr, Width};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Object, ObjectSection, elf};

mod passed;
mod scopes;

use crate::Error;
use crate::debug_files::{self, Find, Slice};
use crate::debug_info::{Dwarf, Units};
use crate::layout::{Elf, parse};

/// No chain of types is longer, unless it is a circle.
const LONGEST_CHAIN: usize = 64;

/// The numbers of registers in instructions, by those of the debug information.
const REGISTERS: [u8; 16] = [0, 2, 1, 3, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// A variable, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its value, if it is in no memory.
    pub value: Option<Expression>,
    /// Its address, if it is.
    pub address: Option<Expression>,
    /// How it is read, if it is a number.
    pub number: Option<Width>,
    /// Its type: where the debug information tells of it.
    pub kind: usize,
}

/// Knows the variables at an instruction.
pub struct Variables<'s, 'a> {
    units: &'s Units<'a>,
    /// The unit of the instruction.
    unit: &'s Unit<Slice<'a>>,
    at: u64,
    cfa: Result<Expression, String>,
    /// Where a thread has its own copy of the module's variables.
    of_thread: Result<Expression, String>,
}

/// Lets somebody ask for the variables at an instruction of a module.
pub fn with_variables<T>(
    bytes: &[u8],
    find: &mut Find<'_>,
    at: LinkAddr,
    work: impl FnOnce(Option<&Variables<'_, '_>>) -> T,
) -> Result<T, Error> {
    let elf = parse(bytes)?;
    let separate = debug_files::separate(&elf, find);
    let separate = separate
        .as_deref()
        .and_then(|bytes| Elf::parse(bytes.as_ref()).ok());
    let sections = debug_files::sections(separate.as_ref().unwrap_or(&elf));
    let dwarf = sections.borrow(|section| Slice::new(section, LittleEndian));
    let units = Units::of(&dwarf, &mut Vec::new());
    let unit = units.units.iter().find(|it| has(&dwarf, it, at.0));
    let variables = unit.map(|unit| Variables {
        units: &units,
        unit,
        at: at.0,
        cfa: cfa(&elf, at.0),
        of_thread: of_thread(&elf),
    });
    Ok(work(variables.as_ref()))
}

/// Where the address is at an instruction that its function returns to.
pub fn return_address(bytes: &[u8], at: LinkAddr) -> Result<Expression, String> {
    let elf = parse(bytes).map_err(|it| it.to_string())?;
    let cfa = cfa(&elf, at.0)?;
    let place = Expression::sum(cfa, Expression::Constant(-8));
    Ok(Expression::load(Width::WHOLE, place))
}

fn has(dwarf: &Dwarf<'_>, unit: &Unit<Slice<'_>>, at: u64) -> bool {
    let Ok(mut ranges) = dwarf.unit_ranges(unit) else {
        return false;
    };
    while let Ok(Some(range)) = ranges.next() {
        if (range.begin..range.end).contains(&at) {
            return true;
        }
    }
    false
}

/// Where the caller's frame begins, by the table of the unwinder, or of the debugger: Go has no other.
fn cfa(elf: &Elf<'_>, at: u64) -> Result<Expression, String> {
    let unknown = || "no table tells where its frame is".to_owned();
    match frame_rule(elf, at).ok_or_else(unknown)? {
        CfaRule::RegisterAndOffset { register, offset } => {
            Ok(Expression::offset(number_of(register)?, offset))
        }
        CfaRule::Expression(_) => Err(unknown()),
    }
}

fn frame_rule(elf: &Elf<'_>, at: u64) -> Option<CfaRule<usize>> {
    let mut bases = BaseAddresses::default();
    if let Some(text) = elf.section_by_name(".text") {
        bases = bases.set_text(text.address());
    }
    let of_unwinder = elf.section_by_name(".eh_frame").and_then(|section| {
        let bases = bases.clone().set_eh_frame(section.address());
        let frames = EhFrame::from(EndianSlice::new(section.data().ok()?, LittleEndian));
        let mut context = UnwindContext::new();
        let row =
            frames.unwind_info_for_address(&bases, &mut context, at, EhFrame::cie_from_offset);
        Some(row.ok()?.cfa().clone())
    });
    of_unwinder.or_else(|| {
        let section = elf.section_by_name(".debug_frame")?;
        let data = section.uncompressed_data().ok()?;
        let mut frames = DebugFrame::from(EndianSlice::new(&data, LittleEndian));
        frames.set_address_size(8);
        let mut context = UnwindContext::new();
        let row =
            frames.unwind_info_for_address(&bases, &mut context, at, DebugFrame::cie_from_offset);
        Some(row.ok()?.cfa().clone())
    })
}

/// Where the block of a thread's own variables begins: for a program, that is known when it is linked.
fn of_thread(elf: &Elf<'_>) -> Result<Expression, String> {
    let of_library = || "it is a thread's own variable (thread_local) of a library".to_owned();
    let endian = elf.endian();
    let mut headers = elf.elf_program_headers().iter();
    let block = headers.find(|it| it.p_type(endian) == elf::PT_TLS);
    let block = block.filter(|_| is_program(elf)).ok_or_else(of_library)?;
    let align = block.p_align(endian).max(1);
    let size = block.p_memsz(endian).checked_next_multiple_of(align);
    match (size, block.p_vaddr(endian) % align) {
        (Some(size), 0) => Ok(Expression::sum(
            Expression::ThreadPointer,
            Expression::Constant(size.cast_signed().wrapping_neg()),
        )),
        _ => Err("where threads have their own variables is told in a strange way".to_owned()),
    }
}

/// Is it what a process is started with, and not a library?
fn is_program(elf: &Elf<'_>) -> bool {
    let table = elf.elf_dynamic_table();
    let mut entries = table.iter().flat_map(|it| it.iter());
    elf.elf_header().e_type(elf.endian()) == elf::ET_EXEC
        || entries.any(|it| it.tag == elf::DT_FLAGS_1 && it.val & elf::DF_1_PIE.0 != 0)
}

fn number_of(register: Register) -> Result<u8, String> {
    let number = REGISTERS.get(usize::from(register.0)).copied();
    number.ok_or_else(|| "it is in a register that holds no integers".to_owned())
}

impl<'s, 'a> Variables<'s, 'a> {
    fn dwarf(&self) -> &'s Dwarf<'a> {
        self.units.dwarf
    }

    /// A name, or that of what this is a copy of.
    fn name(&self, unit: &Unit<Slice<'a>>, die: &Die<Slice<'a>>) -> Option<String> {
        let value = self.attribute(unit, die, dw::DW_AT_name, LONGEST_CHAIN)?;
        let (unit, value) = value;
        let text = self.dwarf().attr_string(unit, value).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// An attribute, of this or of what it is a copy of; with the unit that it is in.
    fn attribute<'u>(
        &'u self,
        unit: &'u Unit<Slice<'a>>,
        die: &Die<Slice<'a>>,
        wanted: DwAt,
        most: usize,
    ) -> Option<(&'u Unit<Slice<'a>>, AttributeValue<Slice<'a>>)> {
        if let Some(value) = die.attr_value(wanted) {
            return Some((unit, value));
        }
        let most = most.checked_sub(1)?;
        let origin = [dw::DW_AT_abstract_origin, dw::DW_AT_specification];
        let mut origins = origin.iter().filter_map(|it| die.attr_value(*it));
        let (unit, offset) = self.referred(unit, origins.next()?)?;
        let origin = unit.entry(offset).ok()?;
        self.attribute(unit, &origin, wanted, most)
    }

    /// What an attribute refers to.
    fn referred<'u>(
        &'u self,
        unit: &'u Unit<Slice<'a>>,
        value: AttributeValue<Slice<'a>>,
    ) -> Option<(&'u Unit<Slice<'a>>, UnitOffset)> {
        match value {
            AttributeValue::UnitRef(offset) => Some((unit, offset)),
            AttributeValue::DebugInfoRef(offset) => self.entry_at(offset.0),
            _ => None,
        }
    }

    /// The entry at an offset of the section.
    fn entry_at(&self, offset: usize) -> Option<(&Unit<Slice<'a>>, UnitOffset)> {
        let mut units = self.units.units.iter();
        units.find_map(|unit| {
            let found = DebugInfoOffset(offset).to_unit_offset(&unit.header)?;
            Some((unit, found))
        })
    }

    fn frame(&self, function: &Die<Slice<'a>>) -> Frame {
        Frame {
            base: self.frame_base(function),
            function: function.offset(),
        }
    }

    fn frame_base(&self, die: &Die<Slice<'a>>) -> Result<Expression, String> {
        let unknown = || "its function does not say where its variables are".to_owned();
        let base = die.attr_value(dw::DW_AT_frame_base);
        let place = self.place(self.unit, base.ok_or_else(unknown)?, None)?;
        // A register means what is in it.
        place.address.or(place.value).ok_or_else(unknown)
    }

    /// Where a variable is.
    fn located(
        &self,
        unit: &Unit<Slice<'a>>,
        die: &Die<Slice<'a>>,
        frame: Option<&Frame>,
    ) -> Result<Variable, String> {
        let gone = || "it is nowhere at this place: optimised out".to_owned();
        let kind = self.type_of(unit, die)?;
        let constant = self.attribute(unit, die, dw::DW_AT_const_value, LONGEST_CHAIN);
        let location = die.attr_value(dw::DW_AT_location);
        let place = match (location, constant) {
            (Some(location), _) => {
                let place = self.place(unit, location, frame)?;
                match frame {
                    Some(frame) if self.is_filled_later(unit, location, &place, frame) => {
                        self.passed(die, frame.function)?
                    }
                    _ => place,
                }
            }
            (None, Some((_, value))) => {
                let number = value.sdata_value().ok_or_else(gone)?;
                Place::of_value(Expression::Constant(number))
            }
            (None, None) => return Err(gone()),
        };
        if place.value.is_none() && place.address.is_none() {
            return Err(gone());
        }
        self.made(place, kind)
    }

    fn made(&self, place: Place, kind: usize) -> Result<Variable, String> {
        Ok(Variable {
            value: place.value,
            address: place.address,
            number: self.number(kind)?,
            kind,
        })
    }

    /// Where something is, by an expression or a list of them.
    fn place(
        &self,
        unit: &Unit<Slice<'a>>,
        value: AttributeValue<Slice<'a>>,
        frame: Option<&Frame>,
    ) -> Result<Place, String> {
        if let AttributeValue::Exprloc(expression) = value {
            return self.evaluated(unit, expression, frame);
        }
        let list = self.dwarf().attr_locations(unit, value).map_err(broken)?;
        let Some(mut list) = list else {
            return Err("where it is cannot be read".to_owned());
        };
        while let Some(entry) = list.next().map_err(broken)? {
            if (entry.range.begin..entry.range.end).contains(&self.at) {
                return self.evaluated(unit, entry.data, frame);
            }
        }
        Ok(Place::default())
    }

    /// What a small program says.
    fn evaluated(
        &self,
        unit: &Unit<Slice<'a>>,
        program: gimli::Expression<Slice<'a>>,
        frame: Option<&Frame>,
    ) -> Result<Place, String> {
        let strange = || "where it is, is told in a way that is not understood".to_owned();
        let mut stack: Vec<Expression> = Vec::new();
        let mut place = Place::default();
        let mut operations = program.operations(unit.encoding());
        while let Some(operation) = operations.next().map_err(broken)? {
            if place.value.is_some() {
                // In several pieces.
                return Err(strange());
            }
            match operation {
                Operation::Register { register } => {
                    place.value = Some(Expression::Register(number_of(register)?));
                }
                Operation::RegisterOffset {
                    register, offset, ..
                } => stack.push(Expression::offset(number_of(register)?, offset)),
                Operation::FrameOffset { offset } => {
                    let base = frame.ok_or_else(strange)?.base.clone()?;
                    stack.push(Expression::sum(base, Expression::Constant(offset)));
                }
                Operation::CallFrameCFA => stack.push(self.cfa.clone()?),
                Operation::Address { address } => stack.push(Expression::Address(address)),
                Operation::AddressIndex { index } => {
                    let address = self.dwarf().address(unit, index).map_err(broken)?;
                    stack.push(Expression::Address(address));
                }
                Operation::UnsignedConstant { value } => {
                    stack.push(Expression::Constant(value.cast_signed()));
                }
                Operation::SignedConstant { value } => stack.push(Expression::Constant(value)),
                Operation::PlusConstant { value } => {
                    let top = stack.pop().ok_or_else(strange)?;
                    let value = Expression::Constant(value.cast_signed());
                    stack.push(Expression::sum(top, value));
                }
                Operation::Plus => binary(&mut stack, Binary::Add).ok_or_else(strange)?,
                Operation::Minus => binary(&mut stack, Binary::Subtract).ok_or_else(strange)?,
                Operation::Mul => binary(&mut stack, Binary::Multiply).ok_or_else(strange)?,
                Operation::And => binary(&mut stack, Binary::And).ok_or_else(strange)?,
                Operation::Or => binary(&mut stack, Binary::Or).ok_or_else(strange)?,
                Operation::Shl => binary(&mut stack, Binary::ShiftLeft).ok_or_else(strange)?,
                Operation::Shr => binary(&mut stack, Binary::ShiftRight).ok_or_else(strange)?,
                Operation::Deref {
                    size, space: false, ..
                } => {
                    let top = stack.pop().ok_or_else(strange)?;
                    let width = Width {
                        bytes: size,
                        is_signed: false,
                    };
                    stack.push(Expression::load(width, top));
                }
                Operation::TLS => {
                    let top = stack.pop().ok_or_else(strange)?;
                    stack.push(Expression::sum(self.of_thread.clone()?, top));
                }
                Operation::StackValue => {
                    place.value = Some(stack.pop().ok_or_else(strange)?);
                }
                Operation::EntryValue { .. } => {
                    return Err("it is known only from where its function began".to_owned());
                }
                _ => return Err(strange()),
            }
        }
        if place.value.is_none() {
            place.address = stack.pop();
        }
        Ok(place)
    }

    /// The type of a variable, without what does not change how it is read.
    fn type_of(&self, unit: &Unit<Slice<'a>>, die: &Die<Slice<'a>>) -> Result<usize, String> {
        let none = || "its type is not told".to_owned();
        let (unit, value) = self
            .attribute(unit, die, dw::DW_AT_type, LONGEST_CHAIN)
            .ok_or_else(none)?;
        let (unit, offset) = self.referred(unit, value).ok_or_else(none)?;
        let offset = offset.to_debug_info_offset(&unit.header).ok_or_else(none)?;
        self.plain(offset.0)
    }

    /// A type behind its other names.
    fn plain(&self, mut kind: usize) -> Result<usize, String> {
        for _ in 0..LONGEST_CHAIN {
            let (unit, die) = self.type_at(kind)?;
            match die.tag() {
                dw::DW_TAG_typedef
                | dw::DW_TAG_const_type
                | dw::DW_TAG_volatile_type
                | dw::DW_TAG_restrict_type
                | dw::DW_TAG_atomic_type => {
                    let value = die.attr_value(dw::DW_AT_type);
                    let value = value.ok_or_else(|| "it has no value".to_owned())?;
                    let next = self.referred(unit, value);
                    let next = next.and_then(|(unit, it)| it.to_debug_info_offset(&unit.header));
                    kind = next.ok_or_else(|| "its type is not told".to_owned())?.0;
                }
                _ => return Ok(kind),
            }
        }
        Err("its type is a circle".to_owned())
    }

    fn type_at(&self, kind: usize) -> Result<(&Unit<Slice<'a>>, Die<Slice<'a>>), String> {
        let (unit, offset) = self
            .entry_at(kind)
            .ok_or_else(|| "its type is not told".to_owned())?;
        Ok((unit, unit.entry(offset).map_err(broken)?))
    }

    /// How a value of a type is read, if it is a number.
    fn number(&self, kind: usize) -> Result<Option<Width>, String> {
        let (unit, die) = self.type_at(kind)?;
        let size = size_of(&die);
        let is_signed = match die.tag() {
            dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type => return Ok(Some(Width::WHOLE)),
            dw::DW_TAG_enumeration_type => match die.attr_value(dw::DW_AT_type) {
                Some(_) => {
                    let under = self.type_of(unit, &die)?;
                    return self.number(under);
                }
                None => true,
            },
            dw::DW_TAG_base_type => match die.attr_value(dw::DW_AT_encoding) {
                Some(AttributeValue::Encoding(dw::DW_ATE_signed | dw::DW_ATE_signed_char)) => true,
                Some(AttributeValue::Encoding(
                    dw::DW_ATE_unsigned
                    | dw::DW_ATE_unsigned_char
                    | dw::DW_ATE_boolean
                    | dw::DW_ATE_UTF
                    | dw::DW_ATE_address,
                )) => false,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let bytes = size.and_then(|it| u8::try_from(it).ok());
        Ok(bytes
            .filter(|it| [1, 2, 4, 8].contains(it))
            .map(|bytes| Width { bytes, is_signed }))
    }

    /// The type that a pointer, a reference or an array is of.
    fn behind(&self, kind: usize) -> Result<(usize, bool), String> {
        let (unit, die) = self.type_at(kind)?;
        match die.tag() {
            dw::DW_TAG_pointer_type
            | dw::DW_TAG_reference_type
            | dw::DW_TAG_rvalue_reference_type => Ok((self.type_of(unit, &die)?, true)),
            dw::DW_TAG_array_type if self.dimensions(kind)? > 1 => Err(
                "it is an array of several dimensions; read its memory: u32[ADDRESS]".to_owned(),
            ),
            dw::DW_TAG_array_type if has_descriptor(&die) => Err(
                "where its elements are is known only when it runs; read its memory: u32[ADDRESS]"
                    .to_owned(),
            ),
            dw::DW_TAG_array_type => Ok((self.type_of(unit, &die)?, false)),
            _ => Err("it is neither a pointer nor an array".to_owned()),
        }
    }

    /// How many dimensions an array has.
    fn dimensions(&self, kind: usize) -> Result<usize, String> {
        Ok(self.firsts(kind)?.len())
    }

    /// For each dimension of an array: the number of its first element, if it is known.
    fn firsts(&self, kind: usize) -> Result<Vec<Option<i64>>, String> {
        let (unit, offset) = self
            .entry_at(kind)
            .ok_or_else(|| "its type is not told".to_owned())?;
        // What the standard says for where nothing is said.
        let usual = i64::from(counts_from_one(self.language_of(unit)));
        let mut tree = unit.entries_tree(Some(offset)).map_err(broken)?;
        let mut children = tree.root().map_err(broken)?.children();
        let mut firsts = Vec::new();
        while let Some(child) = children.next().map_err(broken)? {
            let die = child.entry();
            if matches!(
                die.tag(),
                dw::DW_TAG_subrange_type | dw::DW_TAG_enumeration_type
            ) {
                firsts.push(match die.attr_value(dw::DW_AT_lower_bound) {
                    Some(first) => first.sdata_value(),
                    None => Some(usual),
                });
            }
        }
        Ok(firsts)
    }

    /// A field of what something is, or of what it points to.
    pub fn field(&self, of: &Variable, name: &str, is_arrow: bool) -> Result<Variable, String> {
        let (_, die) = self.type_at(of.kind)?;
        let is_reference = matches!(
            die.tag(),
            dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type
        );
        let (kind, address) = match is_arrow || is_reference {
            true => (self.behind(of.kind)?.0, Some(pointer(of)?)),
            false => (of.kind, of.address.clone()),
        };
        let address = address.ok_or_else(|| "it is in registers as a whole".to_owned())?;
        let mut seen = HashSet::new();
        let found = self.member(kind, name, &mut seen)?;
        let (offset, kind) = found.ok_or_else(|| format!("it has no field called {name}"))?;
        let place = Place {
            value: None,
            address: Some(Expression::sum(address, Expression::Constant(offset))),
        };
        self.made(place, kind)
    }

    /// Where a field is in a type, and its own type.
    fn member(
        &self,
        kind: usize,
        name: &str,
        seen: &mut HashSet<usize>,
    ) -> Result<Option<(i64, usize)>, String> {
        if !seen.insert(kind) {
            return Ok(None);
        }
        let (unit, offset) = self
            .entry_at(kind)
            .ok_or_else(|| "its type is not told".to_owned())?;
        let mut tree = unit.entries_tree(Some(offset)).map_err(broken)?;
        let mut children = tree.root().map_err(broken)?.children();
        while let Some(child) = children.next().map_err(broken)? {
            let die = child.entry();
            let is_member = die.tag() == dw::DW_TAG_member;
            if !is_member && die.tag() != dw::DW_TAG_inheritance {
                continue;
            }
            let place = die.attr_value(dw::DW_AT_data_member_location);
            let place = place.and_then(|it| it.udata_value());
            let place = place.unwrap_or(0).cast_signed();
            let own = self.name(unit, die);
            if is_member && own.as_deref() == Some(name) {
                let bits = [dw::DW_AT_data_bit_offset, dw::DW_AT_bit_size];
                if bits.iter().any(|it| die.attr_value(*it).is_some()) {
                    return Err(format!(
                        "{name} is a field of bits; read the bytes around it"
                    ));
                }
                return Ok(Some((place, self.type_of(unit, die)?)));
            }
            // A base class, or a structure without a name: its fields are this one's, too.
            if own.is_none()
                && let Ok(inner) = self.type_of(unit, die)
                && let Some((offset, kind)) = self.member(inner, name, seen)?
            {
                return Ok(Some((place + offset, kind)));
            }
        }
        Ok(None)
    }

    /// How many elements of an array are in front of one, whose number in the source this is.
    fn elements_before(&self, kind: usize, index: Expression) -> Result<Expression, String> {
        let first = self.firsts(kind)?.first().copied().unwrap_or(Some(0));
        let first =
            first.ok_or_else(|| "the number of its first element is not told".to_owned())?;
        Ok(match index {
            Expression::Constant(index) => Expression::Constant(index.wrapping_sub(first)),
            index => Expression::sum(index, Expression::Constant(first.wrapping_neg())),
        })
    }

    /// What something points to, or the element of it that the source numbers so.
    pub fn element(&self, of: &Variable, index: Expression) -> Result<Variable, String> {
        let (kind, is_pointer) = self.behind(of.kind)?;
        let start = match is_pointer {
            true => pointer(of)?,
            false => {
                let address = of.address.clone();
                address.ok_or_else(|| "it is in registers as a whole".to_owned())?
            }
        };
        let index = match is_pointer {
            true => index,
            false => self.elements_before(of.kind, index)?,
        };
        let distance = match index {
            Expression::Constant(0) => Expression::Constant(0),
            index => {
                let (_, die) = self.type_at(kind)?;
                let size = match self.number(kind)? {
                    Some(width) => Some(i64::from(width.bytes)),
                    None => size_of(&die),
                };
                let size =
                    size.ok_or_else(|| "how large its elements are is not told".to_owned())?;
                Expression::scaled(index, size)
            }
        };
        let place = Place {
            value: None,
            address: Some(Expression::sum(start, distance)),
        };
        self.made(place, kind)
    }
}

/// Where something is.
#[derive(Debug, Default)]
struct Place {
    value: Option<Expression>,
    address: Option<Expression>,
}

impl Place {
    fn of_value(value: Expression) -> Self {
        Self {
            value: Some(value),
            address: None,
        }
    }

    fn at(address: Expression) -> Self {
        Self {
            value: None,
            address: Some(address),
        }
    }
}

/// The frame of a function.
struct Frame {
    /// Where variables are told from.
    base: Result<Expression, String>,
    function: UnitOffset,
}

fn broken(error: gimli::Error) -> String {
    format!("the debug information is broken ({error})")
}

fn size_of(die: &Die<Slice<'_>>) -> Option<i64> {
    let size = die.attr_value(dw::DW_AT_byte_size)?.udata_value()?;
    i64::try_from(size).ok()
}

/// Does the array have a description at run time, which says where its elements are?
fn has_descriptor(die: &Die<Slice<'_>>) -> bool {
    let told = [
        dw::DW_AT_data_location,
        dw::DW_AT_allocated,
        dw::DW_AT_associated,
    ];
    told.iter().any(|it| die.attr_value(*it).is_some())
}

/// Does a language count the elements of arrays from one, unless a program says something else?
fn counts_from_one(language: Option<DwLang>) -> bool {
    is_fortran(language) || is_ada(language) || language == Some(dw::DW_LANG_Pascal83)
}

fn is_fortran(language: Option<DwLang>) -> bool {
    matches!(
        language,
        Some(
            dw::DW_LANG_Fortran77
                | dw::DW_LANG_Fortran90
                | dw::DW_LANG_Fortran95
                | dw::DW_LANG_Fortran03
                | dw::DW_LANG_Fortran08
                | dw::DW_LANG_Fortran18
        )
    )
}

fn is_ada(language: Option<DwLang>) -> bool {
    matches!(
        language,
        Some(dw::DW_LANG_Ada83 | dw::DW_LANG_Ada95 | dw::DW_LANG_Ada2005 | dw::DW_LANG_Ada2012)
    )
}

fn binary(stack: &mut Vec<Expression>, operation: Binary) -> Option<()> {
    let right = stack.pop()?;
    let left = stack.pop()?;
    stack.push(Expression::binary(operation, left, right));
    Some(())
}

/// The address in a pointer.
fn pointer(it: &Variable) -> Result<Expression, String> {
    match (&it.value, &it.address) {
        (Some(value), _) => Ok(value.clone()),
        (None, Some(address)) => Ok(Expression::load(Width::WHOLE, address.clone())),
        (None, None) => Err("it is nowhere at this place".to_owned()),
    }
}
