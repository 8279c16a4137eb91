//! What is computed from the registers and the memory of a thread.

/// A number of 64 bits. Arithmetic wraps around.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expression {
    /// Always the same.
    Constant(i64),
    /// What is in a register, by its number in the encoding of instructions: 0 is `rax`.
    Register(u8),
    /// The load address of a link address.
    Address(u64),
    /// Where the thread's own variables are: the base of `fs`.
    ThreadPointer,
    /// What is in memory.
    Load(Width, Box<Expression>),
    /// The lower bytes of a number, extended.
    Narrow(Width, Box<Expression>),
    /// An operation on one number.
    Unary(Unary, Box<Expression>),
    /// An operation on two numbers.
    Binary(Binary, Box<Expression>, Box<Expression>),
}

/// How many bytes a number has, and how it becomes one of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Width {
    /// 1, 2, 4 or 8.
    pub bytes: u8,
    /// Is its highest bit a sign?
    pub is_signed: bool,
}

impl Width {
    /// Eight bytes.
    pub const WHOLE: Self = Self {
        bytes: 8,
        is_signed: false,
    };
}

/// An operation on one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-`
    Negate,
    /// `~`
    Complement,
    /// The number of the highest bit that is set; -1 if none is.
    Log2,
}

/// An operation on two numbers. Comparisons and division take them as signed, and comparisons make 1
/// or 0. Shifts shift zeros in, by the lower six bits of the second number. A division that has no
/// result is unreadable, like memory that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

impl Expression {
    /// A register plus a number.
    pub fn offset(register: u8, by: i64) -> Self {
        Self::sum(Self::Register(register), Self::Constant(by))
    }

    /// The sum of two numbers.
    pub fn sum(left: Self, right: Self) -> Self {
        match (left, right) {
            (it, Self::Constant(0)) | (Self::Constant(0), it) => it,
            (left, right) => Self::binary(Binary::Add, left, right),
        }
    }

    /// So many times a number.
    pub fn scaled(number: Self, times: i64) -> Self {
        match times {
            1 => number,
            _ => Self::binary(Binary::Multiply, number, Self::Constant(times)),
        }
    }

    /// Two numbers, and what is done with them.
    pub fn binary(operation: Binary, left: Self, right: Self) -> Self {
        Self::Binary(operation, Box::new(left), Box::new(right))
    }

    /// How many numbers must be kept while it is computed in one register with a second one to help.
    pub fn temporaries(&self) -> u32 {
        match self {
            Self::Constant(_) | Self::Register(_) | Self::Address(_) | Self::ThreadPointer => 0,
            Self::Load(_, of) | Self::Narrow(_, of) | Self::Unary(_, of) => of.temporaries(),
            Self::Binary(_, left, right) => left.temporaries().max(1 + right.temporaries()),
        }
    }

    /// The least and the largest number that it can be, where that is easily seen and they are close together.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        match self {
            Self::Constant(number) => Some((*number, *number)),
            Self::Load(width, _) | Self::Narrow(width, _) => match (width.bytes, width.is_signed) {
                (1, true) => Some((i8::MIN.into(), i8::MAX.into())),
                (1, false) => Some((0, u8::MAX.into())),
                (2, true) => Some((i16::MIN.into(), i16::MAX.into())),
                (2, false) => Some((0, u16::MAX.into())),
                _ => None,
            },
            Self::Unary(Unary::Log2, _) => Some((-1, 63)),
            Self::Unary(..) => None,
            Self::Binary(operation, left, right) => match (operation, &**right) {
                (Binary::And, Self::Constant(mask)) if *mask >= 0 => Some((0, *mask)),
                (Binary::Add, Self::Constant(by)) => {
                    let (least, most) = left.bounds()?;
                    Some((least.checked_add(*by)?, most.checked_add(*by)?))
                }
                (Binary::Equal | Binary::NotEqual | Binary::Less | Binary::LessOrEqual, _) => {
                    Some((0, 1))
                }
                _ => None,
            },
            Self::Register(_) | Self::Address(_) | Self::ThreadPointer => None,
        }
    }

    /// What is at an address.
    pub fn load(width: Width, address: Self) -> Self {
        Self::Load(width, Box::new(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_within_their_bounds() {
        let byte = |is_signed| Width {
            bytes: 1,
            is_signed,
        };
        let of = Expression::Register(3);
        let narrow = |width| Expression::Narrow(width, Box::new(of.clone()));
        let two =
            |operation, by| Expression::binary(operation, of.clone(), Expression::Constant(by));
        assert_eq!(narrow(byte(false)).bounds(), Some((0, 255)));
        assert_eq!(narrow(byte(true)).bounds(), Some((-128, 127)));
        assert_eq!(two(Binary::And, 7).bounds(), Some((0, 7)));
        assert_eq!(two(Binary::And, -8).bounds(), None);
        assert_eq!(two(Binary::LessOrEqual, 9).bounds(), Some((0, 1)));
        let sum = Expression::sum(two(Binary::And, 7), Expression::Constant(-3));
        assert_eq!(sum.bounds(), Some((-3, 4)));
        let far = Expression::sum(Expression::Constant(1), Expression::Constant(i64::MAX));
        assert_eq!(far.bounds(), None);
        assert_eq!(of.bounds(), None);
        assert_eq!(two(Binary::ShiftRight, 60).bounds(), None);
    }
}
