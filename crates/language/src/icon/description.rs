//! What is kept of a program that ran.

use headcount_model::packed::{Packed, Packer};

/// What instructions that were counted are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Description {
    /// The interpreter's own: they call `main`, and end when it does.
    Own,
    /// A program that cannot be told: its name, and why.
    Refused { name: String, why: String },
    /// A program: where it is, and the file that `icont` made.
    Program { path: String, file: Vec<u8> },
}

impl Description {
    pub(super) fn pack(&self) -> Vec<u8> {
        let mut to = Packer::default();
        match self {
            Self::Own => to.0.push(0),
            Self::Refused { name, why } => {
                to.0.push(1);
                to.text(name);
                to.text(why);
            }
            Self::Program { path, file } => {
                to.0.push(2);
                to.text(path);
                to.bytes(file);
            }
        }
        to.0
    }

    pub(super) fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let found = match from.u8()? {
            0 => Self::Own,
            1 => Self::Refused {
                name: from.text()?,
                why: from.text()?,
            },
            2 => Self::Program {
                path: from.text()?,
                file: from.bytes()?.to_vec(),
            },
            _ => return None,
        };
        from.0.is_empty().then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_again() {
        let all = [
            Description::Own,
            Description::Refused {
                name: "./p".to_owned(),
                why: "gone".to_owned(),
            },
            Description::Program {
                path: "/p".to_owned(),
                file: b"icode".to_vec(),
            },
        ];
        for it in all {
            let bytes = it.pack();
            assert_eq!(Description::unpack(&bytes), Some(it));
            for end in 0..bytes.len() {
                assert_eq!(Description::unpack(&bytes[..end]), None);
            }
        }
    }
}
