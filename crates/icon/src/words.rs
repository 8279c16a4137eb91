//! The words and operators of the language, and whether an expression may begin or end with them.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What a lexeme is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Name,
    Integer,
    Real,
    String,
    Cset,
    Word(Word),
    Operator(Operator),
    /// The same, and an assignment: `+:=`.
    Augmented(Operator),
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Comma,
    Colon,
    PlusColon,
    MinusColon,
    Semicolon,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Break,
    By,
    Case,
    Create,
    Default,
    Do,
    Else,
    End,
    Every,
    Fail,
    Global,
    If,
    Initial,
    Invocable,
    Link,
    Local,
    Next,
    Not,
    Of,
    Procedure,
    Record,
    Repeat,
    Return,
    Static,
    Suspend,
    Then,
    To,
    Until,
    While,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Assign,
    Swap,
    ReversibleAssign,
    ReversibleSwap,
    Ampersand,
    At,
    Caret,
    Concatenate,
    ConcatenateLists,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Union,
    Difference,
    Intersection,
    Same,
    NotSame,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    LexicallyEqual,
    LexicallyNotEqual,
    LexicallyGreater,
    LexicallyGreaterOrEqual,
    LexicallyLess,
    LexicallyLessOrEqual,
    Question,
    Backslash,
    Bar,
    Bang,
    Dot,
    Tilde,
}

use Operator::*;

const WORDS: [(&str, Word); 29] = [
    ("break", Word::Break),
    ("by", Word::By),
    ("case", Word::Case),
    ("create", Word::Create),
    ("default", Word::Default),
    ("do", Word::Do),
    ("else", Word::Else),
    ("end", Word::End),
    ("every", Word::Every),
    ("fail", Word::Fail),
    ("global", Word::Global),
    ("if", Word::If),
    ("initial", Word::Initial),
    ("invocable", Word::Invocable),
    ("link", Word::Link),
    ("local", Word::Local),
    ("next", Word::Next),
    ("not", Word::Not),
    ("of", Word::Of),
    ("procedure", Word::Procedure),
    ("record", Word::Record),
    ("repeat", Word::Repeat),
    ("return", Word::Return),
    ("static", Word::Static),
    ("suspend", Word::Suspend),
    ("then", Word::Then),
    ("to", Word::To),
    ("until", Word::Until),
    ("while", Word::While),
];

/// Operators that have no assignment of their own.
const PLAIN: [(&str, Operator); 9] = [
    (":=", Assign),
    (":=:", Swap),
    ("<-", ReversibleAssign),
    ("<->", ReversibleSwap),
    ("\\", Backslash),
    ("|", Bar),
    ("!", Bang),
    (".", Dot),
    ("~", Tilde),
];

/// Operators that also come with `:=`.
const ASSIGNING: [(&str, Operator); 28] = [
    ("&", Ampersand),
    ("@", At),
    ("^", Caret),
    ("||", Concatenate),
    ("|||", ConcatenateLists),
    ("+", Plus),
    ("-", Minus),
    ("*", Star),
    ("/", Slash),
    ("%", Percent),
    ("++", Union),
    ("--", Difference),
    ("**", Intersection),
    ("===", Same),
    ("~===", NotSame),
    ("=", Equal),
    ("~=", NotEqual),
    (">", Greater),
    (">=", GreaterOrEqual),
    ("<", Less),
    ("<=", LessOrEqual),
    ("==", LexicallyEqual),
    ("~==", LexicallyNotEqual),
    (">>", LexicallyGreater),
    (">>=", LexicallyGreaterOrEqual),
    ("<<", LexicallyLess),
    ("<<=", LexicallyLessOrEqual),
    ("?", Question),
];

const MARKS: [(&str, Sort); 15] = [
    ("(", Sort::OpenParenthesis),
    (")", Sort::CloseParenthesis),
    ("[", Sort::OpenBracket),
    ("]", Sort::CloseBracket),
    ("{", Sort::OpenBrace),
    ("}", Sort::CloseBrace),
    ("$<", Sort::OpenBracket),
    ("$>", Sort::CloseBracket),
    ("$(", Sort::OpenBrace),
    ("$)", Sort::CloseBrace),
    (",", Sort::Comma),
    (":", Sort::Colon),
    ("+:", Sort::PlusColon),
    ("-:", Sort::MinusColon),
    (";", Sort::Semicolon),
];

pub fn reserved(name: &[u8]) -> Option<Word> {
    let found = WORDS.iter().find(|(word, _)| word.as_bytes() == name);
    found.map(|(_, word)| *word)
}

/// All that is written with special characters, by the first of them.
static SPECIALS: LazyLock<HashMap<u8, Vec<(String, Sort)>>> = LazyLock::new(|| {
    let mut all = HashMap::<u8, Vec<(String, Sort)>>::new();
    let mut add = |text: String, sort| {
        if let Some(first) = text.bytes().next() {
            all.entry(first).or_default().push((text, sort));
        }
    };
    for (text, operator) in PLAIN {
        add(text.to_owned(), Sort::Operator(operator));
    }
    for (text, operator) in ASSIGNING {
        add(text.to_owned(), Sort::Operator(operator));
        add(format!("{text}:="), Sort::Augmented(operator));
    }
    for (text, sort) in MARKS {
        add(text.to_owned(), sort);
    }
    all
});

/// What these characters are, if they are something, and whether more may follow.
pub fn special(text: &[u8]) -> (Option<Sort>, bool) {
    let all = text.first().and_then(|first| SPECIALS.get(first));
    let (mut whole, mut goes_on) = (None, false);
    for (spelled, sort) in all.map_or(&[][..], |it| it) {
        if spelled.as_bytes() == text {
            whole = Some(*sort);
        } else if spelled.as_bytes().starts_with(text) {
            goes_on = true;
        }
    }
    (whole, goes_on)
}

impl Sort {
    /// May an expression, or what follows one on a line of its own, begin so? Between two lines a
    /// semicolon is put if this one [`Sort::may_end`] and the next one [`Sort::may_begin`].
    pub fn may_begin(self) -> bool {
        match self {
            Sort::Name | Sort::Integer | Sort::Real | Sort::String | Sort::Cset => true,
            Sort::OpenParenthesis | Sort::OpenBracket | Sort::OpenBrace => true,
            Sort::Operator(it) => it.is_prefix(),
            Sort::Word(it) => !matches!(
                it,
                Word::By
                    | Word::Do
                    | Word::Else
                    | Word::Global
                    | Word::Invocable
                    | Word::Link
                    | Word::Of
                    | Word::Procedure
                    | Word::Record
                    | Word::Then
                    | Word::To
            ),
            _ => false,
        }
    }

    pub fn may_end(self) -> bool {
        match self {
            Sort::Name | Sort::Integer | Sort::Real | Sort::String | Sort::Cset => true,
            Sort::CloseParenthesis | Sort::CloseBracket | Sort::CloseBrace => true,
            Sort::Word(it) => matches!(
                it,
                Word::Break | Word::Fail | Word::Next | Word::Return | Word::Suspend
            ),
            _ => false,
        }
    }

    /// May an expression begin so?
    pub fn begins_expression(self) -> bool {
        let is_no_expression = |it| {
            matches!(
                it,
                Word::Default | Word::End | Word::Initial | Word::Local | Word::Static
            )
        };
        match self {
            Sort::Word(it) => self.may_begin() && !is_no_expression(it),
            _ => self.may_begin(),
        }
    }
}

impl Operator {
    /// Does it stand before operands? `&` does, for keywords, and so do operators that look like
    /// several prefix operators.
    pub fn is_prefix(self) -> bool {
        !matches!(
            self,
            Assign
                | Swap
                | ReversibleAssign
                | ReversibleSwap
                | Percent
                | Greater
                | GreaterOrEqual
                | Less
                | LessOrEqual
                | LexicallyGreater
                | LexicallyGreaterOrEqual
                | LexicallyLess
                | LexicallyLessOrEqual
        )
    }
}

/// The names of keywords, without `&`.
pub const KEYWORDS: &[&str] = &[
    "allocated",
    "ascii",
    "clock",
    "col",
    "collections",
    "column",
    "control",
    "cset",
    "current",
    "date",
    "dateline",
    "digits",
    "dump",
    "e",
    "error",
    "errornumber",
    "errortext",
    "errorvalue",
    "errout",
    "eventcode",
    "eventsource",
    "eventvalue",
    "fail",
    "features",
    "file",
    "host",
    "input",
    "interval",
    "lcase",
    "ldrag",
    "letters",
    "level",
    "line",
    "lpress",
    "lrelease",
    "main",
    "mdrag",
    "meta",
    "mpress",
    "mrelease",
    "null",
    "output",
    "phi",
    "pi",
    "pos",
    "progname",
    "random",
    "rdrag",
    "regions",
    "resize",
    "row",
    "rpress",
    "rrelease",
    "shift",
    "source",
    "storage",
    "subject",
    "time",
    "trace",
    "ucase",
    "version",
    "window",
    "x",
    "y",
];
