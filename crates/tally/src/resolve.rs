//! From names to what can be computed at a place.

use headcount_model::{Expression, Width};

use crate::registers::{ARGUMENTS, RETURNED, STACK, argument_number, register};
use crate::term::Term;

/// Where an expression is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Before the first instruction of a function.
    Entry,
    /// Before it returns.
    Return,
    /// Somewhere else.
    Inside,
}

/// Knows the variables at an address.
pub trait Names {
    /// A variable.
    fn variable(&self, name: &str) -> Result<Typed, String>;
    /// A field of what this is, or of what it points to.
    fn field(&self, of: &Typed, name: &str, is_arrow: bool) -> Result<Typed, String>;
    /// What it points to, or its first element; so many further.
    fn element(&self, of: &Typed, index: Expression) -> Result<Typed, String>;
}

/// A value, or where it is in memory, and what type it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// Its value, if it is in no memory.
    pub value: Option<Expression>,
    /// Its address, if it is.
    pub address: Option<Expression>,
    /// How it is read as a number, if it is one.
    pub number: Option<Width>,
    /// Names its type, for those who know it.
    pub kind: usize,
}

/// A name means nothing where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// Where in the user's text.
    pub at: usize,
    /// Why.
    pub why: String,
}

impl Term {
    /// What is to be computed.
    pub fn resolve(&self, at: At, names: &dyn Names) -> Result<Expression, Unresolved> {
        match self {
            Self::Number(number) => Ok(Expression::Constant(*number)),
            Self::Load(width, address) => {
                let address = address.resolve(at, names)?;
                Ok(Expression::load(*width, address))
            }
            Self::Narrow(width, of) => {
                let of = of.resolve(at, names)?;
                Ok(match *width {
                    Width { bytes: 8, .. } => of,
                    width => Expression::Narrow(width, Box::new(of)),
                })
            }
            Self::Unary(operation, of) => {
                let of = of.resolve(at, names)?;
                Ok(Expression::Unary(*operation, Box::new(of)))
            }
            Self::Binary(operation, one, other) => {
                let one = one.resolve(at, names)?;
                Ok(Expression::binary(
                    *operation,
                    one,
                    other.resolve(at, names)?,
                ))
            }
            Self::Name(name, place) => match of_machine(name, at) {
                Some(found) => found.map_err(|why| Unresolved { at: *place, why }),
                None => self.typed(at, names)?.number(*place),
            },
            Self::Pointee(_, place) | Self::Element(_, _, place) => {
                self.typed(at, names)?.number(*place)
            }
            Self::Field { at: place, .. } => self.typed(at, names)?.number(*place),
        }
    }

    fn typed(&self, at: At, names: &dyn Names) -> Result<Typed, Unresolved> {
        let wrong = |at: usize| move |why: String| Unresolved { at, why };
        match self {
            Self::Name(name, place) => names.variable(name).map_err(wrong(*place)),
            Self::Field {
                of,
                name,
                is_arrow,
                at: place,
            } => {
                let of = of.typed(at, names)?;
                let field = names.field(&of, name, *is_arrow);
                field.map_err(wrong(*place))
            }
            Self::Pointee(of, place) => {
                let of = of.typed(at, names)?;
                let pointee = names.element(&of, Expression::Constant(0));
                pointee.map_err(wrong(*place))
            }
            Self::Element(of, index, place) => {
                let of = of.typed(at, names)?;
                let index = index.resolve(at, names)?;
                names.element(&of, index).map_err(wrong(*place))
            }
            Self::Number(_)
            | Self::Load(..)
            | Self::Narrow(..)
            | Self::Unary(..)
            | Self::Binary(..) => Err(Unresolved {
                at: 0,
                why: "only variables have fields and elements; `u32[ADDRESS]` reads memory".into(),
            }),
        }
    }
}

impl Typed {
    fn number(self, at: usize) -> Result<Expression, Unresolved> {
        let why = "this is no number, but has fields or elements that are".to_owned();
        let width = self.number.ok_or(Unresolved { at, why })?;
        match (self.value, self.address) {
            (Some(value), _) if width == Width::WHOLE => Ok(value),
            (Some(value), _) => Ok(Expression::Narrow(width, Box::new(value))),
            (None, Some(address)) => Ok(Expression::load(width, address)),
            (None, None) => Err(Unresolved {
                at,
                why: "it is nowhere at this place: optimised out".to_owned(),
            }),
        }
    }
}

/// A register, an argument or the result; `None`: it is a variable, then.
fn of_machine(name: &str, at: At) -> Option<Result<Expression, String>> {
    if let Some((number, width)) = register(name) {
        let whole = Expression::Register(number);
        return Some(Ok(match width {
            Width::WHOLE => whole,
            _ => Expression::Narrow(width, Box::new(whole)),
        }));
    }
    if name == "ret" {
        return Some(match at {
            At::Return => Ok(Expression::Register(RETURNED)),
            _ => Err("a result is known where a function returns: `FUNCTION(ret)`".to_owned()),
        });
    }
    let number = argument_number(name)?;
    Some(match at {
        At::Entry => argument(number),
        At::Return => Err("arguments are gone where a function returns".to_owned()),
        At::Inside => Err(
            "arguments are known where a function begins; elsewhere, name a register or a variable"
                .to_owned(),
        ),
    })
}

fn argument(number: usize) -> Result<Expression, String> {
    const MOST: usize = 64;
    match number.checked_sub(1) {
        Some(index) if index < ARGUMENTS.len() => Ok(Expression::Register(ARGUMENTS[index])),
        Some(index) if index < MOST => {
            // Behind the return address.
            let offset = 8 * (index - ARGUMENTS.len() + 1) as i64;
            Ok(Expression::load(
                Width::WHOLE,
                Expression::offset(STACK, offset),
            ))
        }
        _ => Err(format!("arguments are arg1 to arg{MOST}")),
    }
}
