//! Which names are keywords, in any dialect of C?

/// A keyword, by the part it plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    If,
    Else,
    While,
    Do,
    For,
    Switch,
    Case,
    Default,
    Goto,
    Return,
    Break,
    Continue,
    Asm,
    /// `__attribute__`: parentheses follow, and it says nothing about the shape.
    Attribute,
    /// `__extension__`
    Extension,
    /// `__label__`
    LabelDeclaration,
    /// `_Static_assert`
    StaticAssert,
    Typedef,
    /// `static`, `extern`, `constexpr`: what follows is initialised before the program runs.
    Static,
    Extern,
    /// `inline`, `auto`, `register`, `_Noreturn`, qualifiers: words among a declaration's first.
    Specifier,
    Inline,
    /// `int`: a type by itself.
    Type,
    /// `struct`, `union`, `enum`.
    Tag,
    /// `typeof`, `_Atomic`, `_BitInt`, `_Alignas`: parentheses follow.
    TypeOf,
    Alignas,
    Atomic,
    /// `sizeof`, `_Alignof`: what follows is not evaluated.
    SizeOf,
    Generic,
    /// `__real__`: an operator in front of its operand.
    Operator,
    /// `_Pragma`
    Pragma,
    /// `true`, `nullptr`
    Constant,
}

impl Word {
    /// Whether it leads control away, or is what control is led to.
    pub fn is_jump(self) -> bool {
        matches!(
            self,
            Self::Case | Self::Default | Self::Goto | Self::Return | Self::Break | Self::Continue
        )
    }

    /// Whether it says where control goes.
    pub fn is_of_control(self) -> bool {
        let begins = matches!(
            self,
            Self::If | Self::Else | Self::While | Self::Do | Self::For | Self::Switch
        );
        begins || self.is_jump()
    }
}

/// The keyword with this name.
pub fn word(name: &[u8]) -> Option<Word> {
    let Some(bare) = name.strip_prefix(b"__") else {
        return plain(name);
    };
    match bare {
        b"attribute__" | b"attribute" | b"declspec" => Some(Word::Attribute),
        b"extension__" => Some(Word::Extension),
        b"label__" => Some(Word::LabelDeclaration),
        b"auto_type" => Some(Word::Type),
        b"thread" | b"seg_gs" | b"seg_fs" => Some(Word::Specifier),
        b"real__" | b"imag__" | b"real" | b"imag" => Some(Word::Operator),
        b"int128" | b"float128" | b"float80" | b"ibm128" | b"fp16" | b"bf16" | b"int128_t"
        | b"uint128_t" | b"builtin_va_list" => Some(Word::Type),
        b"alignof__" | b"alignof" => Some(Word::SizeOf),
        b"complex__" | b"complex" | b"signed__" => Some(Word::Type),
        b"restrict" | b"const" | b"volatile" | b"restrict__" | b"const__" | b"volatile__" => {
            Some(Word::Specifier)
        }
        b"typeof" | b"typeof__" => Some(Word::TypeOf),
        b"asm" | b"asm__" => Some(Word::Asm),
        b"inline" | b"inline__" => Some(Word::Inline),
        b"signed" => Some(Word::Type),
        _ => None,
    }
}

fn plain(name: &[u8]) -> Option<Word> {
    Some(match name {
        b"if" => Word::If,
        b"else" => Word::Else,
        b"while" => Word::While,
        b"do" => Word::Do,
        b"for" => Word::For,
        b"switch" => Word::Switch,
        b"case" => Word::Case,
        b"default" => Word::Default,
        b"goto" => Word::Goto,
        b"return" => Word::Return,
        b"break" => Word::Break,
        b"continue" => Word::Continue,
        b"asm" => Word::Asm,
        b"typedef" => Word::Typedef,
        b"static" | b"constexpr" => Word::Static,
        b"extern" => Word::Extern,
        b"inline" => Word::Inline,
        b"const" | b"volatile" | b"restrict" | b"register" | b"auto" | b"_Noreturn"
        | b"_Thread_local" | b"thread_local" => Word::Specifier,
        b"void" | b"char" | b"short" | b"int" | b"long" | b"float" | b"double" | b"signed"
        | b"unsigned" | b"_Bool" | b"bool" | b"_Complex" | b"_Imaginary" | b"_Float16"
        | b"_Float32" | b"_Float64" | b"_Float128" | b"_Float32x" | b"_Float64x"
        | b"_Float128x" | b"_Decimal32" | b"_Decimal64" | b"_Decimal128" | b"_Sat" | b"_Fract"
        | b"_Accum" => Word::Type,
        b"struct" | b"union" | b"enum" => Word::Tag,
        b"typeof" | b"typeof_unqual" | b"_BitInt" => Word::TypeOf,
        b"_Alignas" | b"alignas" => Word::Alignas,
        b"_Atomic" => Word::Atomic,
        b"sizeof" | b"_Alignof" | b"alignof" => Word::SizeOf,
        b"_Generic" => Word::Generic,
        b"_Static_assert" | b"static_assert" => Word::StaticAssert,
        b"_Pragma" => Word::Pragma,
        b"nullptr" => Word::Constant,
        _ => return None,
    })
}
