//! Which place in the source each code unit of CPython is of.

use crate::Position;

/// The place of each code unit of a code object; `None` where there is none.
pub(crate) fn positions(table: &[u8], first_line: u32, units: usize) -> Vec<Option<Position>> {
    let mut reader = Reader {
        table,
        line: i64::from(first_line),
    };
    let mut all = Vec::with_capacity(units);
    while let Some((count, position)) = reader.entry() {
        let left = units.saturating_sub(all.len());
        all.extend(std::iter::repeat_n(position, count.min(left)));
    }
    all.resize(units, None);
    all
}

struct Reader<'a> {
    table: &'a [u8],
    line: i64,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.table.split_first()?;
        self.table = rest;
        Some(*first)
    }

    /// Six bits a byte, the least first.
    fn number(&mut self) -> Option<i64> {
        let mut number = 0;
        for shift in (0..30).step_by(6) {
            let byte = self.byte()?;
            number |= i64::from(byte & 63) << shift;
            if byte & 64 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some(match number & 1 {
            0 => number >> 1,
            _ => -(number >> 1),
        })
    }

    /// For how many code units which place is meant.
    fn entry(&mut self) -> Option<(usize, Option<Position>)> {
        let first = self.byte()?;
        let units = usize::from(first & 7) + 1;
        let (lines, columns) = match first >> 3 & 15 {
            15 => return Some((units, None)),
            14 => {
                self.line += self.signed()?;
                let lines = self.number()?;
                // Nothing is written as 0.
                let (start, end) = (self.number()?, self.number()?);
                (lines, Some((start - 1, end - 1)))
            }
            13 => {
                self.line += self.signed()?;
                (0, None)
            }
            code @ 10..=12 => {
                self.line += i64::from(code - 10);
                let start = self.byte()?;
                (0, Some((start.into(), self.byte()?.into())))
            }
            code => {
                let second = self.byte()?;
                let start = i64::from(code << 3 | second >> 4);
                (0, Some((start, start + i64::from(second & 15))))
            }
        };
        let line = u32::try_from(self.line).ok();
        let columns = columns.filter(|(start, end)| *start >= 0 && *end >= 0);
        let column = |at: i64| u32::try_from(at).map_or(0, |it| it.saturating_add(1));
        let position = line.filter(|it| *it > 0).map(|line| Position {
            line,
            column: columns.map_or(0, |it| column(it.0)),
            end_line: line.saturating_add(u32::try_from(lines).unwrap_or(0)),
            end_column: columns.map_or(0, |it| column(it.1)),
        });
        Some((units, position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, column: u32, end_column: u32) -> Option<Position> {
        Some(Position {
            line,
            column,
            end_line: line,
            end_column,
        })
    }

    #[test]
    fn every_kind_of_entry() {
        let table = [
            0x80 | 15 << 3, // one unit without a place
            0x80 | 11 << 3 | 1,
            4,
            9, // two units on the next line
            0x80 | 1 << 3,
            0x23, // the same line, columns 10 to 13
            0x80 | 13 << 3,
            3, // the line before, no columns
            0x80 | 14 << 3,
            4,
            2,
            1,
            6, // two lines on, over two lines
        ];
        let found = positions(&table, 7, 7);
        let long = Position {
            line: 9,
            column: 1,
            end_line: 11,
            end_column: 6,
        };
        let expected = [
            None,
            at(8, 5, 10),
            at(8, 5, 10),
            at(8, 11, 14),
            at(7, 0, 0),
            Some(long),
            None,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_makes_it_panic() {
        for seed in 0..2000_u32 {
            let bytes: Vec<u8> = (0..seed % 40)
                .map(|it| (seed.wrapping_mul(2_654_435_761).rotate_left(it) >> 7) as u8)
                .collect();
            assert_eq!(positions(&bytes, seed, 50).len(), 50);
        }
    }
}
