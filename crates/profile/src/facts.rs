//! The blocks and edges of functions as few bytes, and back.
//!
//! Small functions lie together in one piece, because a little alone does not become much smaller.
//!
//! Everything is a number as LEB128 (seven bits a byte, the lowest first; the top bit says that
//! more follow). A number that may be negative, such as a difference, is folded first: 0, -1, 1,
//! -2, … become 0, 1, 2, 3, …. Differences of addresses wrap around.
//!
//! ```text
//! facts  = 0, plain                        as it is
//!        | 1, length of plain, deflated    RFC 1951; where that is shorter
//! plain  = (length, function)+             one after the other
//! function = length of table, table, code  code: the bytes of all pieces, in order
//! table  = compiled, edge*, block*, place* how many of each is told elsewhere; places: as many
//!                                          as blocks, or none
//! compiled = 8 * calls + 4 * interpreted + 2 * marks_changes + is_optimised
//!          language                        interpreted: the place in `Language::ALL`
//!          call*                           inlined calls, by number
//! call   = within, file, line, column
//!          entry                           0: not known; else 1 + its difference to the function's address, folded
//!          callee                          0: not known; else 1 + its file, and then its line
//! edge   = kind + 8 * from + 32 * to       one byte; kind: the place in `EdgeKind::ALL`
//!          difference                      from = 3: to the block that the edge before left
//!          difference                      to = 2: to the block it leaves, or to 0
//!     from = 0: outside, 1: where the edge before left, 2: the block after that, 3: other
//!     to   = 0: outside, 1: the block after the one it leaves, 2: other
//! block  = 4 * n + 2 * moved + several     moved: not where the code before ended
//!          difference                      moved: of its address to where that ended; at first, to the function's
//!          piece{n}                        several: n pieces; else one, there, of n bytes (or none)
//!          4 * instructions + lines        lines: how many runs of lines, at most 3
//!          runs of lines - 3               if that was 3
//!          run*
//! place  = 0                               in no source text
//!        | kind + 1, file, line, column    kind: the place in `BlockKind::ALL`
//!          0                               of an operation: not known what it does
//!          | 1, text, lines, column        what it does, how many lines further it ends, and where
//! piece  = difference, length              of its address to where the code before ended
//! run    = 8 * instructions + 4 * is_stmt + 2 * other + copied
//!          difference                      other: of its file to that of the run before
//!          copy                            copied: the number of the inlined copy
//!          difference                      of its line to that of the run before
//!          column
//! ```

#[cfg(test)]
mod tests;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use headcount_model::{
    Block, BlockKind, Compiled, EdgeKind, FileId, Function, FunctionEdge, InlinedCall, Language,
    LineRun, LinkAddr, Operation, SourcePlace, Span,
};

/// What facts tell of a function.
pub(crate) type Decoded = (Vec<Block>, Vec<FunctionEdge>, Compiled);

/// Bytes that are no facts, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub &'static str);

/// What is smaller than this is not worth the trouble of making it smaller still.
const WORTH_DEFLATING: usize = 48;

/// Facts that shrink more than so many times are kept as they are, and bytes that claim it are
/// refused: a small file must not fill the memory.
const MOST_SHRUNK: usize = 64;

/// Functions are put together until they have so many bytes: more of them take less room in all,
/// and longer to decode one.
const ENOUGH: usize = 2000;

/// Makes bytes of functions.
pub(crate) struct Encoder {
    deflater: Compress,
    plain: Vec<u8>,
}

impl Encoder {
    pub fn new() -> Self {
        Self {
            deflater: Compress::new(Compression::new(6), false),
            plain: Vec::new(),
        }
    }

    /// Adds the blocks and edges of a function. Says whether it is time to finish.
    pub fn add(&mut self, function: &Function) -> bool {
        let plain = plain(function);
        put(&mut self.plain, plain.len() as u64);
        self.plain.extend(plain);
        self.plain.len() >= ENOUGH
    }

    /// The facts of what was added since the last time.
    pub fn finish(&mut self) -> Vec<u8> {
        let plain = std::mem::take(&mut self.plain);
        match self.deflate(&plain) {
            Some(small) => small,
            None => [&[0], plain.as_slice()].concat(),
        }
    }

    fn deflate(&mut self, plain: &[u8]) -> Option<Vec<u8>> {
        if plain.len() < WORTH_DEFLATING {
            return None;
        }
        let mut small = vec![1];
        put(&mut small, plain.len() as u64);
        let head = small.len();
        small.reserve_exact(plain.len() - head);
        self.deflater.reset();
        // It ends when it runs out of room, which is when it has become no shorter.
        let status = self
            .deflater
            .compress_vec(plain, &mut small, FlushCompress::Finish);
        let is_sane = (small.len() - head).saturating_mul(MOST_SHRUNK) >= plain.len();
        (matches!(status, Ok(Status::StreamEnd)) && is_sane).then_some(small)
    }
}

/// Makes functions of bytes.
pub(crate) struct Decoder {
    inflater: Decompress,
    /// What was inflated last.
    plain: Vec<u8>,
}

/// What is known of a function besides its facts, and what they must agree with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub address: LinkAddr,
    pub blocks: u32,
    pub edges: u32,
    pub instructions: u64,
    /// How many source files its module has.
    pub files: usize,
}

impl Decoder {
    pub fn new() -> Self {
        Self {
            inflater: Decompress::new(false),
            plain: Vec::new(),
        }
    }

    /// Takes facts; [`Decoder::function`] tells of the functions in them.
    pub fn open(&mut self, facts: &[u8]) -> Result<(), Broken> {
        self.plain.clear();
        match facts.split_first() {
            Some((0, plain)) => self.plain.extend(plain),
            Some((1, small)) => self.inflate(small)?,
            _ => return Err(Broken("a function has no facts")),
        }
        Ok(())
    }

    /// The blocks and edges of the function with this number in the facts that were opened last.
    /// Every number that is used as an index is checked here, so that no file, however broken,
    /// makes a report stumble.
    pub fn function(&self, number: u32, numbers: Numbers) -> Result<Decoded, Broken> {
        let mut plain = Numerals(&self.plain);
        for _ in 0..number {
            let length = plain.usize()?;
            plain.bytes(length)?;
        }
        let length = plain.usize()?;
        parse(plain.bytes(length)?, numbers)
    }

    fn inflate(&mut self, small: &[u8]) -> Result<(), Broken> {
        let broken = Broken("the facts of a function cannot be inflated");
        let mut small = Numerals(small);
        let length = small.usize()?;
        if length > small.0.len().saturating_mul(MOST_SHRUNK) {
            return Err(broken);
        }
        self.plain.reserve_exact(length);
        self.inflater.reset(false);
        let finish = FlushDecompress::Finish;
        let status = self
            .inflater
            .decompress_vec(small.0, &mut self.plain, finish);
        let is_all = self.inflater.total_in() == small.0.len() as u64;
        match status {
            Ok(Status::StreamEnd) if is_all && self.plain.len() == length => Ok(()),
            _ => Err(broken),
        }
    }
}

fn plain(function: &Function) -> Vec<u8> {
    let mut table = Vec::new();
    put_compiled(&mut table, function);
    put_edges(&mut table, &function.edges);
    let mut before = Before::new(function.address);
    for block in &function.blocks {
        put_block(&mut table, block, &mut before);
    }
    put_places(&mut table, &function.blocks);
    let mut plain = Vec::new();
    put(&mut plain, table.len() as u64);
    plain.extend(table);
    let pieces = function.blocks.iter().flat_map(|block| &block.code);
    pieces.for_each(|piece| plain.extend(&piece.bytes));
    plain
}

fn parse(plain: &[u8], numbers: Numbers) -> Result<Decoded, Broken> {
    let mut plain = Numerals(plain);
    let length = plain.usize()?;
    let mut table = Numerals(plain.bytes(length)?);
    let mut code = plain;
    let compiled = take_compiled(&mut table, numbers)?;
    let edges = take_edges(&mut table, numbers)?;
    let mut blocks = Vec::with_capacity(table.room(numbers.blocks));
    let mut before = Before::new(numbers.address);
    for _ in 0..numbers.blocks {
        blocks.push(take_block(
            &mut table,
            &mut code,
            &mut before,
            numbers.files,
        )?);
    }
    if !table.0.is_empty() {
        for block in &mut blocks {
            block.place = take_place(&mut table, numbers.files)?;
            block.operation = take_operation(&mut table, block.place)?;
        }
    }
    let instructions: u64 = blocks.iter().map(|it| u64::from(it.instructions)).sum();
    match table.0.is_empty() && code.0.is_empty() && instructions == numbers.instructions {
        true => Ok((blocks, edges, compiled)),
        false => Err(Broken("a function has other facts than it says")),
    }
}

fn put_compiled(to: &mut Vec<u8>, function: &Function) {
    let Compiled {
        is_optimised,
        marks_changes,
        inlined,
        language,
    } = &function.compiled;
    let flags = u64::from(*marks_changes) << 1 | u64::from(*is_optimised);
    let flags = u64::from(language.is_some()) << 2 | flags;
    put(to, (inlined.len() as u64) << 3 | flags);
    if let Some(language) = language {
        put(to, language.code().into());
    }
    for call in inlined {
        for number in [call.within, call.file.0, call.line, call.column] {
            put(to, number.into());
        }
        let distance = |at: LinkAddr| at.0.wrapping_sub(function.address.0).cast_signed();
        let folded = call.entry.map(|at| folded(distance(at)));
        // The one distance that has no successor is no distance within a function.
        put(to, folded.and_then(|it| it.checked_add(1)).unwrap_or(0));
        match call.callee {
            None => put(to, 0),
            Some((file, line)) => {
                put(to, u64::from(file.0) + 1);
                put(to, line.into());
            }
        }
    }
}

fn take_compiled(table: &mut Numerals<'_>, numbers: Numbers) -> Result<Compiled, Broken> {
    let head = table.number()?;
    let mut compiled = Compiled {
        is_optimised: head & 1 != 0,
        marks_changes: head & 2 != 0,
        inlined: Vec::with_capacity(table.room(head >> 3)),
        language: None,
    };
    if head & 4 != 0 {
        let code = u8::try_from(table.number()?).ok();
        let language = code.and_then(Language::from_code);
        compiled.language = Some(language.ok_or(Broken("a function is in no known language"))?);
    }
    for _ in 0..head >> 3 {
        let known = |file: u32| match (file as usize) < numbers.files {
            true => Ok(FileId(file)),
            false => Err(Broken("a source file is missing")),
        };
        let (within, file) = (table.u32()?, known(table.u32()?)?);
        // Whoever asks what is around a copy comes to an end.
        if within as usize > compiled.inlined.len() {
            return Err(Broken("a copy is inside of a later one"));
        }
        let (line, column) = (table.u32()?, table.u32()?);
        let entry = table.number()?.checked_sub(1).map(unfolded);
        let entry = entry.map(|it| LinkAddr(numbers.address.0.wrapping_add(it.cast_unsigned())));
        let callee = match table.u32()?.checked_sub(1) {
            None => None,
            Some(file) => Some((known(file)?, table.u32()?)),
        };
        compiled.inlined.push(InlinedCall {
            within,
            file,
            line,
            column,
            entry,
            callee,
        });
    }
    Ok(compiled)
}

fn put_edges(to: &mut Vec<u8>, edges: &[FunctionEdge]) {
    let mut left = 0_u32;
    for edge in edges {
        let from = match edge.from {
            None => 0,
            Some(from) if from == left => 1,
            Some(from) if Some(from) == left.checked_add(1) => 2,
            Some(_) => 3,
        };
        let next = edge.from.and_then(|from| from.checked_add(1));
        let end = match edge.to {
            None => 0,
            to if to == next => 1,
            Some(_) => 2,
        };
        to.push(edge.kind.code() | from << 3 | end << 5);
        if let (3, Some(from)) = (from, edge.from) {
            put_signed(to, i64::from(from) - i64::from(left));
        }
        if let (2, Some(end)) = (end, edge.to) {
            put_signed(to, i64::from(end) - i64::from(edge.from.unwrap_or(0)));
        }
        left = edge.from.unwrap_or(left);
    }
}

fn take_edges(table: &mut Numerals<'_>, numbers: Numbers) -> Result<Vec<FunctionEdge>, Broken> {
    let block = |block: Option<i64>| {
        let block = block.and_then(|it| u32::try_from(it).ok());
        let block = block.filter(|it| *it < numbers.blocks);
        block.ok_or(Broken("an edge leads to another function"))
    };
    let mut edges = Vec::with_capacity(table.room(numbers.edges));
    let mut left = 0_i64;
    for _ in 0..numbers.edges {
        let head = table.byte()?;
        let from = match head >> 3 & 3 {
            0 => None,
            1 => Some(block(Some(left))?),
            2 => Some(block(Some(left + 1))?),
            _ => Some(block(left.checked_add(table.signed()?))?),
        };
        let start = i64::from(from.unwrap_or(0));
        let to = match head >> 5 {
            0 => None,
            1 if from.is_some() => Some(block(Some(start + 1))?),
            2 => Some(block(start.checked_add(table.signed()?))?),
            _ => return Err(Broken("an edge leads nowhere")),
        };
        left = from.map_or(left, i64::from);
        edges.push(FunctionEdge {
            from,
            to,
            kind: EdgeKind::from_code(head & 7).ok_or(Broken("an edge is of no kind"))?,
        });
    }
    Ok(edges)
}

/// What the next number is a difference to.
struct Before {
    end: u64,
    file: u32,
    line: u32,
}

impl Before {
    fn new(address: LinkAddr) -> Self {
        Self {
            end: address.0,
            file: 0,
            line: 0,
        }
    }
}

fn put_block(to: &mut Vec<u8>, block: &Block, before: &mut Before) {
    let address = block.address.0;
    let moved = u64::from(address != before.end);
    // One piece that has bytes and begins where the block does, or none: the rule.
    let (several, number) = match block.code.as_slice() {
        [] => (0, 0),
        [piece] if piece.address == block.address && !piece.bytes.is_empty() => {
            (0, piece.bytes.len())
        }
        pieces => (1, pieces.len()),
    };
    put(to, (number as u64) << 2 | moved << 1 | several);
    if moved == 1 {
        put_signed(to, address.wrapping_sub(before.end).cast_signed());
    }
    before.end = address;
    for piece in &block.code {
        let length = piece.bytes.len() as u64;
        if several == 1 {
            put_signed(to, piece.address.0.wrapping_sub(before.end).cast_signed());
            put(to, length);
        }
        before.end = piece.address.0.wrapping_add(length);
    }
    let lines = block.lines.len() as u64;
    put(to, u64::from(block.instructions) << 2 | lines.min(3));
    if let Some(more) = lines.checked_sub(3) {
        put(to, more);
    }
    block.lines.iter().for_each(|run| put_run(to, run, before));
}

fn take_block(
    table: &mut Numerals<'_>,
    code: &mut Numerals<'_>,
    before: &mut Before,
    files: usize,
) -> Result<Block, Broken> {
    let head = table.number()?;
    if head & 2 != 0 {
        before.end = before.end.wrapping_add(table.signed()?.cast_unsigned());
    }
    let address = LinkAddr(before.end);
    let number = usize::try_from(head >> 2).map_err(|_| CUT_OFF)?;
    let mut pieces = Vec::new();
    match (head & 1, number) {
        (0, 0) => {}
        (0, length) => pieces.push(take_piece(code, before, 0, length)?),
        _ => {
            for _ in 0..number {
                let (moved, length) = (table.signed()?, table.usize()?);
                pieces.push(take_piece(code, before, moved, length)?);
            }
        }
    }
    let head = table.number()?;
    let instructions = u32::try_from(head >> 2);
    let instructions = instructions.map_err(|_| Broken("a block has too many instructions"))?;
    let lines = match head & 3 {
        3 => table.number()?.saturating_add(3),
        few => few,
    };
    let mut block = Block {
        address,
        code: pieces,
        instructions,
        lines: Vec::with_capacity(table.room(lines)),
        place: None,
        operation: None,
    };
    let mut in_lines = 0;
    for _ in 0..lines {
        let run = take_run(table, before, files)?;
        in_lines += u64::from(run.instructions);
        block.lines.push(run);
    }
    match in_lines <= u64::from(instructions) {
        true => Ok(block),
        false => Err(Broken(
            "a block has more instructions in its lines than in all",
        )),
    }
}

/// Where the blocks are in a source text, if any is.
fn put_places(to: &mut Vec<u8>, blocks: &[Block]) {
    if blocks.iter().all(|block| block.place.is_none()) {
        return;
    }
    for block in blocks {
        match block.place {
            None => put(to, 0),
            Some(place) => {
                put(to, u64::from(place.kind.code()) + 1);
                put(to, place.file.0.into());
                put(to, place.line.into());
                put(to, place.column.into());
                put_operation(to, place, block.operation.as_ref());
            }
        }
    }
}

fn put_operation(to: &mut Vec<u8>, place: SourcePlace, operation: Option<&Operation>) {
    if place.kind != BlockKind::Operation {
        return;
    }
    put(to, operation.is_some().into());
    if let Some(it) = operation {
        put_text(to, &it.kind);
        put_signed(to, i64::from(it.end_line) - i64::from(place.line));
        put(to, it.end_column.into());
    }
}

fn take_operation(
    table: &mut Numerals<'_>,
    place: Option<SourcePlace>,
) -> Result<Option<Operation>, Broken> {
    let Some(place) = place.filter(|it| it.kind == BlockKind::Operation) else {
        return Ok(None);
    };
    if table.number()? == 0 {
        return Ok(None);
    }
    let kind = table.text()?;
    let end_line = i64::from(place.line).checked_add(table.signed()?);
    let end_line = end_line.and_then(|it| u32::try_from(it).ok());
    Ok(Some(Operation {
        kind,
        end_line: end_line.ok_or(Broken("an operation ends on no line"))?,
        end_column: table.u32()?,
    }))
}

fn take_place(table: &mut Numerals<'_>, files: usize) -> Result<Option<SourcePlace>, Broken> {
    let code = table.number()?;
    let Some(code) = code.checked_sub(1) else {
        return Ok(None);
    };
    let kind = u8::try_from(code).ok().and_then(BlockKind::from_code);
    let kind = kind.ok_or(Broken("a block is of no known kind"))?;
    let file = table.u32()?;
    if file as usize >= files {
        return Err(Broken("a source file is missing"));
    }
    Ok(Some(SourcePlace {
        file: FileId(file),
        line: table.u32()?,
        column: table.u32()?,
        kind,
    }))
}

fn take_piece(
    code: &mut Numerals<'_>,
    before: &mut Before,
    moved: i64,
    length: usize,
) -> Result<Span, Broken> {
    let address = LinkAddr(before.end.wrapping_add(moved.cast_unsigned()));
    let bytes = code.bytes(length)?.to_vec();
    before.end = address.0.wrapping_add(length as u64);
    Ok(Span { address, bytes })
}

fn put_run(to: &mut Vec<u8>, run: &LineRun, before: &mut Before) {
    let other = u64::from(run.file.0 != before.file);
    let copied = u64::from(run.inline_copy != 0);
    let is_stmt = u64::from(run.is_stmt);
    put(
        to,
        u64::from(run.instructions) << 3 | is_stmt << 2 | other << 1 | copied,
    );
    if other == 1 {
        put_signed(to, i64::from(run.file.0) - i64::from(before.file));
    }
    if copied == 1 {
        put(to, run.inline_copy.into());
    }
    put_signed(to, i64::from(run.line) - i64::from(before.line));
    put(to, run.column.into());
    (before.file, before.line) = (run.file.0, run.line);
}

fn take_run(
    table: &mut Numerals<'_>,
    before: &mut Before,
    files: usize,
) -> Result<LineRun, Broken> {
    let head = table.number()?;
    let add = |to: u32, difference: i64| {
        let sum = i64::from(to).checked_add(difference);
        sum.and_then(|it| u32::try_from(it).ok())
            .ok_or(Broken("a line is out of range"))
    };
    if head & 2 != 0 {
        before.file = add(before.file, table.signed()?)?;
    }
    if before.file as usize >= files {
        return Err(Broken("a source file is missing"));
    }
    let inline_copy = match head & 1 {
        0 => 0,
        _ => table.u32()?,
    };
    before.line = add(before.line, table.signed()?)?;
    Ok(LineRun {
        file: FileId(before.file),
        line: before.line,
        column: table.u32()?,
        is_stmt: head & 4 != 0,
        instructions: u32::try_from(head >> 3)
            .map_err(|_| Broken("a line has too many instructions"))?,
        inline_copy,
    })
}

const CUT_OFF: Broken = Broken("facts are cut off");

/// Appends a number.
pub(crate) fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends a number that may be negative.
pub(crate) fn put_signed(to: &mut Vec<u8>, number: i64) {
    put(to, folded(number));
}

fn folded(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn unfolded(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Appends a text.
pub(crate) fn put_text(to: &mut Vec<u8>, text: &str) {
    put(to, text.len() as u64);
    to.extend(text.as_bytes());
}

/// Numbers and what else is in bytes, one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numerals<'a>(pub &'a [u8]);

impl<'a> Numerals<'a> {
    pub fn byte(&mut self) -> Result<u8, Broken> {
        let (first, rest) = self.0.split_first().ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn number(&mut self) -> Result<u64, Broken> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Broken("a number is too large"))
    }

    pub fn signed(&mut self) -> Result<i64, Broken> {
        Ok(unfolded(self.number()?))
    }

    pub fn usize(&mut self) -> Result<usize, Broken> {
        usize::try_from(self.number()?).map_err(|_| CUT_OFF)
    }

    pub fn u32(&mut self) -> Result<u32, Broken> {
        u32::try_from(self.number()?).map_err(|_| Broken("a number is too large"))
    }

    pub fn text(&mut self) -> Result<String, Broken> {
        let length = self.usize()?;
        let text = std::str::from_utf8(self.bytes(length)?);
        Ok(text.map_err(|_| Broken("a name is no text"))?.to_owned())
    }

    /// Room for so many things, each of at least a byte, but not for more than there can be.
    pub fn room(&self, number: impl TryInto<usize>) -> usize {
        number.try_into().unwrap_or(usize::MAX).min(self.0.len())
    }
}
