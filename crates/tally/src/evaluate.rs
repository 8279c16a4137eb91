//! What an expression is in a thread that stands still.

use headcount_model::{Binary, Expression, Unary, Width};

/// A thread that stands still.
pub trait Thread {
    /// A register, by its number.
    fn register(&self, number: u8) -> u64;
    /// The base of `fs`.
    fn thread_pointer(&self) -> u64;
    /// The load address of a link address.
    fn load_address(&self, link: u64) -> u64;
    /// Up to eight bytes of memory; `None`: they are not there.
    fn memory(&self, at: u64, bytes: usize) -> Option<[u8; 8]>;
}

/// There is no such number: memory cannot be read, or something is divided by zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Computes an expression.
pub fn evaluate(it: &Expression, thread: &dyn Thread) -> Result<i64, Unreadable> {
    Ok(match it {
        Expression::Constant(number) => *number,
        Expression::Register(number) => thread.register(*number).cast_signed(),
        Expression::Address(link) => thread.load_address(*link).cast_signed(),
        Expression::ThreadPointer => thread.thread_pointer().cast_signed(),
        Expression::Load(width, address) => {
            let address = evaluate(address, thread)?.cast_unsigned();
            let bytes = thread.memory(address, width.bytes.into());
            narrow(*width, u64::from_le_bytes(bytes.ok_or(Unreadable)?))
        }
        Expression::Narrow(width, of) => narrow(*width, evaluate(of, thread)?.cast_unsigned()),
        Expression::Unary(operation, of) => {
            let of = evaluate(of, thread)?;
            match operation {
                Unary::Negate => of.wrapping_neg(),
                Unary::Complement => !of,
                Unary::Log2 => 63 - i64::from(of.leading_zeros()),
            }
        }
        Expression::Binary(operation, one, other) => {
            let one = evaluate(one, thread)?;
            binary(*operation, one, evaluate(other, thread)?)?
        }
    })
}

/// The lower bytes of a number.
fn narrow(width: Width, number: u64) -> i64 {
    let unused = 64 - 8 * u32::from(width.bytes);
    let shifted = number << unused;
    match width.is_signed {
        true => shifted.cast_signed() >> unused,
        false => (shifted >> unused).cast_signed(),
    }
}

fn binary(operation: Binary, one: i64, other: i64) -> Result<i64, Unreadable> {
    let count = other as u32;
    Ok(match operation {
        Binary::Add => one.wrapping_add(other),
        Binary::Subtract => one.wrapping_sub(other),
        Binary::Multiply => one.wrapping_mul(other),
        Binary::Divide => one.checked_div(other).ok_or(Unreadable)?,
        Binary::Remainder => one.checked_rem(other).ok_or(Unreadable)?,
        Binary::And => one & other,
        Binary::Or => one | other,
        Binary::Xor => one ^ other,
        Binary::ShiftLeft => one.wrapping_shl(count),
        Binary::ShiftRight => one.cast_unsigned().wrapping_shr(count).cast_signed(),
        Binary::Equal => (one == other).into(),
        Binary::NotEqual => (one != other).into(),
        Binary::Less => (one < other).into(),
        Binary::LessOrEqual => (one <= other).into(),
    })
}
