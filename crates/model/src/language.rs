//! Languages whose programs are counted while an interpreter runs them.

/// Such a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    /// Python
    Python,
    /// Lua
    Lua,
    /// Icon
    Icon,
}

impl Language {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 3] = [Self::Python, Self::Lua, Self::Icon];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Lua => "lua",
            Self::Icon => "icon",
        }
    }

    /// Its name in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Lua => "Lua",
            Self::Icon => "Icon",
        }
    }

    /// Is it known how to measure what its interpreter's runtime does for each operation?
    pub fn has_measured_runtime(self) -> bool {
        matches!(self, Self::Icon)
    }

    /// The language with this word.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// A small number for compact storage: the place in [`Language::ALL`].
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The language with this code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}
