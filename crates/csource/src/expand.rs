//! The tokens of a text after macro expansion.
//!
//! Compilers say of all code that comes out of a macro, arguments included, that it is where the
//! macro was used: so do we. Where an expansion is not certain, a token is left that no parser
//! accepts, unless control is sure to pass through whatever stands there.

use crate::definitions::{Definitions, Hides, MacroId, Role};
use crate::environment::{Environment, Meaning, Several};
use crate::lex::{Kind, Lexed, Token, lex};
use crate::words::Word;

/// How much one use of a macro may come to, in tokens that were made or looked at.
const MOST_PER_USE: usize = 1 << 16;
/// How many times as many tokens as a text has all of it may come to, and how many more.
const MOST_TIMES: usize = 16;
const MOST_MORE: usize = 1 << 20;
/// How deeply arguments are inside of arguments, and macros inside of macros.
const DEEPEST: u32 = 60;
const MOST_FRAMES: usize = 200;

/// Macros of the C library that are not called as functions are.
const LIBRARY: [(&[u8], Hides); 3] = [
    (b"assert", Hides::Parts),
    (b"offsetof", Hides::Nothing),
    (b"va_arg", Hides::Nothing),
];

/// Names that are strings.
const TEXTS: [&[u8]; 3] = [b"__FILE__", b"__DATE__", b"__TIME__"];

/// The tokens, and where each comes from.
#[derive(Default)]
pub struct Expanded {
    /// All bytes that tokens speak of. It begins with the text itself.
    pub text: Vec<u8>,
    pub tokens: Lexed,
    pub origins: Vec<Origin>,
}

/// Where a token comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The token of the text: itself, or the macro's name.
    pub token: u32,
    pub made: Made,
}

/// How a token came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The user wrote it.
    Written,
    /// It is of a macro.
    ByMacro,
    /// It is what is left of a macro, of which nobody knows more than that control comes out of it.
    InsteadOfMacro,
}

/// Expands a text.
pub fn expand(
    text: &[u8],
    lexed: &Lexed,
    definitions: &Definitions,
    environment: Environment<'_>,
) -> Expanded {
    let mut expander = Expander {
        lexed,
        definitions,
        environment,
        base: text.len() as u32,
        out: Expanded {
            text: [text, &definitions.bytes].concat(),
            ..Expanded::default()
        },
        left: lexed.tokens.len() * MOST_TIMES + MOST_MORE,
        budget: 0,
        is_unsure: false,
    };
    expander.out.tokens.tokens.reserve(lexed.tokens.len());
    expander.out.origins.reserve(lexed.tokens.len());
    expander.run();
    expander.out
}

struct Expander<'t, 'd> {
    lexed: &'t Lexed,
    definitions: &'d Definitions,
    environment: Environment<'d>,
    /// Where the bytes of definitions begin.
    base: u32,
    out: Expanded,
    /// How much more all of the text may come to.
    left: usize,
    /// The same for the use we are at.
    budget: usize,
    /// Whether something in that may be one of several things.
    is_unsure: bool,
}

/// A token on its way.
#[derive(Clone, Copy)]
struct Passing {
    token: Token,
    /// It names a macro, but inside of itself.
    is_final: bool,
}

/// Tokens that were made and not yet looked at.
struct Frame {
    tokens: Vec<Passing>,
    at: usize,
    /// The macro that they came from: it means nothing in there.
    made_by: Option<MacroId>,
}

/// Where tokens come from: frames, the last one first, and then the text, if it may be read.
struct Input {
    frames: Vec<Frame>,
    /// The next token of the text.
    next: Option<usize>,
}

/// How sure it is that a macro is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Certain,
    /// Another may be meant, in which control does the same.
    Alike,
    /// Another may be meant, of which nobody knows more than that control comes out of it, as it
    /// does of this block.
    Block,
    /// Nothing may be meant; this lets control pass.
    Guarded,
}

/// Too much, without an end, or not to be understood.
struct GaveUp;

impl<'t> Expander<'t, '_> {
    fn run(&mut self) {
        let lexed: &'t Lexed = self.lexed;
        let mut at = 0;
        let mut depth = 0_u32;
        while let Some(token) = lexed.tokens.get(at) {
            // What an included file does inside of a function nobody knows.
            if self.environment.advance(token.start) && depth > 0 {
                self.spoil(at);
            }
            match token.kind {
                Kind::OpenBrace => depth += 1,
                Kind::CloseBrace => depth = depth.saturating_sub(1),
                _ => (),
            }
            at = match token.kind {
                Kind::Name => self.name(at, *token),
                _ => self.written(at, *token),
            };
        }
    }

    fn push(&mut self, token: Token, origin: usize, made: Made) {
        self.out.tokens.tokens.push(token);
        let token = origin as u32;
        self.out.origins.push(Origin { token, made });
    }

    fn written(&mut self, at: usize, token: Token) -> usize {
        self.push(token, at, Made::Written);
        at + 1
    }

    /// Nothing that contains this can be read.
    fn spoil(&mut self, at: usize) {
        let here = self.lexed.tokens[at];
        let stray = Token {
            kind: Kind::Stray,
            ..here
        };
        self.push(stray, at, Made::InsteadOfMacro);
    }

    fn meaning(&self, name: &Token) -> Meaning {
        let meaning = self.environment.meaning(self.bytes(name));
        let known = LIBRARY.iter().find(|it| it.0 == self.bytes(name));
        match (meaning, known) {
            (Meaning::Itself, Some((_, hides))) => Meaning::Several(Several {
                hides: *hides,
                takes: true,
                most: None,
                or_nothing: false,
            }),
            _ => meaning,
        }
    }

    fn bytes(&self, token: &Token) -> &[u8] {
        &self.out.text[token.start as usize..token.end as usize]
    }

    /// A name of the text. Says where the text goes on.
    fn name(&mut self, at: usize, token: Token) -> usize {
        let meaning = self.meaning(&token);
        let is_open = self.lexed.tokens.get(at + 1).map(|it| it.kind) == Some(Kind::OpenParen);
        match meaning {
            Meaning::Itself => self.written(at, token),
            Meaning::Several(it) if it.takes && !is_open => self.written(at, token),
            Meaning::Several(_) => self.use_of_macro(at),
            Meaning::Macro(id) => {
                let takes = self.definitions.macros[id as usize].parameters.is_some();
                match takes && !is_open {
                    true => self.written(at, token),
                    false => self.use_of_macro(at),
                }
            }
        }
    }

    /// A use of a macro in the text: all that comes of it.
    fn use_of_macro(&mut self, at: usize) -> usize {
        self.budget = MOST_PER_USE.min(self.left);
        let before = self.budget;
        let mut input = Input {
            frames: Vec::new(),
            next: Some(at),
        };
        let mut made = Vec::new();
        self.is_unsure = false;
        let result = self.scan(&mut input, &mut made, 0, true);
        let manner = match self.is_unsure {
            true => Made::InsteadOfMacro,
            false => Made::ByMacro,
        };
        self.left -= before - self.budget;
        let next = input.next.unwrap_or(at + 1).max(at + 1);
        match result {
            Ok(()) => {
                for it in made {
                    self.push(it.token, at, manner);
                }
                next
            }
            Err(GaveUp) => {
                let token = self.lexed.tokens[at];
                match self.meaning(&token) {
                    // It does not matter what it is.
                    Meaning::Several(it) if it.hides == Hides::Nothing => self.written(at, token),
                    _ => {
                        self.spoil(at);
                        at + 1
                    }
                }
            }
        }
    }

    fn spend(&mut self) -> Result<(), GaveUp> {
        self.budget = self.budget.checked_sub(1).ok_or(GaveUp)?;
        Ok(())
    }

    /// The next token of the input; frames that are used up are dropped.
    fn take(&self, input: &mut Input) -> Option<Passing> {
        while let Some(frame) = input.frames.last_mut() {
            if let Some(found) = frame.tokens.get(frame.at) {
                frame.at += 1;
                return Some(*found);
            }
            input.frames.pop();
        }
        let next = input.next?;
        let token = *self.lexed.tokens.get(next)?;
        input.next = Some(next + 1);
        Some(Passing {
            token,
            is_final: false,
        })
    }

    /// What comes next, after so many others.
    fn ahead(&self, input: &Input, number: usize) -> Option<Kind> {
        let mut left = number;
        for frame in input.frames.iter().rev() {
            let rest = &frame.tokens[frame.at..];
            match rest.get(left) {
                Some(found) => return Some(found.token.kind),
                None => left -= rest.len(),
            }
        }
        let token = self.lexed.tokens.get(input.next? + left);
        token.map(|it| it.kind)
    }

    fn is_open_next(&self, input: &Input) -> bool {
        self.ahead(input, 0) == Some(Kind::OpenParen)
    }

    /// Expands what is in the frames; or the first token of the text, and what comes of it.
    fn scan(
        &mut self,
        input: &mut Input,
        out: &mut Vec<Passing>,
        depth: u32,
        mut is_first: bool,
    ) -> Result<(), GaveUp> {
        if depth > DEEPEST {
            return Err(GaveUp);
        }
        loop {
            let has_frames = input.frames.iter().any(|it| it.at < it.tokens.len());
            if !has_frames && !is_first {
                return Ok(());
            }
            is_first = false;
            self.spend()?;
            let Some(next) = self.take(input) else {
                return Ok(());
            };
            if next.token.kind != Kind::Name || next.is_final {
                out.push(next);
                continue;
            }
            match self.meaning(&next.token) {
                Meaning::Itself if TEXTS.contains(&self.bytes(&next.token)) => {
                    out.push(self.new_text());
                }
                Meaning::Itself => out.push(next),
                Meaning::Several(several) => match self.chosen(&several) {
                    Some((id, trust)) => self.open(next, id, trust, input, out, depth)?,
                    None => self.leave(next, &several, input, out)?,
                },
                Meaning::Macro(id) => self.open(next, id, Trust::Certain, input, out, depth)?,
            }
        }
    }

    /// Which of several macros to take where control does the same whichever it is; or does more in
    /// that one, so that what follows from it is true of the others.
    fn chosen(&self, several: &Several) -> Option<(MacroId, Trust)> {
        let most = several.most?;
        let found = &self.definitions.macros[most as usize];
        let is_block = found.body.first().map(|it| it.token.kind) == Some(Kind::OpenBrace);
        match several.hides {
            Hides::Nothing => Some((most, Trust::Alike)),
            Hides::Parts if is_block => Some((most, Trust::Block)),
            _ if found.is_guarded && several.or_nothing => Some((most, Trust::Guarded)),
            _ => None,
        }
    }

    /// Puts what a macro stands for in the place of its name and its arguments.
    fn open(
        &mut self,
        mut name: Passing,
        id: MacroId,
        trust: Trust,
        input: &mut Input,
        out: &mut Vec<Passing>,
        depth: u32,
    ) -> Result<(), GaveUp> {
        let takes = self.definitions.macros[id as usize].parameters;
        name.is_final = input.frames.iter().any(|it| it.made_by == Some(id));
        if name.is_final || takes.is_some() && !self.is_open_next(input) {
            out.push(name);
            return Ok(());
        }
        let before = self.before(input, out);
        let arguments = match takes {
            Some(number) => self.arguments(input, id, number)?,
            None => Vec::new(),
        };
        let jumps = arguments.iter().flatten().any(|it| is_jump(it.token.kind));
        self.is_unsure |= matches!(trust, Trust::Block | Trust::Guarded);
        let is_fine = match trust {
            Trust::Certain => true,
            Trust::Alike | Trust::Block => !jumps,
            Trust::Guarded => self.is_statement(before, input, self.is_braced(id)),
        };
        if !is_fine {
            return Err(GaveUp);
        }
        if input.frames.len() >= MOST_FRAMES {
            return Err(GaveUp);
        }
        let tokens = self.substitute(id, &arguments, &input.frames, depth)?;
        input.frames.push(Frame {
            tokens,
            at: 0,
            made_by: Some(id),
        });
        Ok(())
    }

    /// What stands before what comes next, if that is known.
    fn before(&self, input: &Input, out: &[Passing]) -> Option<Kind> {
        let written = self.out.tokens.tokens.last();
        let written = written.filter(|_| input.next.is_some());
        let made = out.last().map(|it| it.token.kind);
        made.or(written.map(|it| it.kind))
    }

    /// Whether what stands between a token and what comes next is all of a statement, with its
    /// semicolon unless it has braces, and no `else` belongs to it.
    fn is_statement(&self, before: Option<Kind>, input: &Input, is_braced: bool) -> bool {
        let next = self.ahead(input, 0);
        let behind = match next {
            Some(Kind::Semicolon) => self.ahead(input, 1),
            _ if is_braced => next,
            _ => return false,
        };
        behind != Some(Kind::Word(Word::Else)) && before.is_some_and(may_end_statement)
    }

    fn is_braced(&self, id: MacroId) -> bool {
        let last = self.definitions.macros[id as usize].body.last();
        last.is_some_and(|it| it.token.kind == Kind::CloseBrace)
    }

    /// Leaves what may be one of several macros as it is, if control comes out of it in any case.
    /// What it does with its arguments is its business.
    fn leave(
        &mut self,
        name: Passing,
        several: &Several,
        input: &mut Input,
        out: &mut Vec<Passing>,
    ) -> Result<(), GaveUp> {
        let before = self.before(input, out);
        out.push(name);
        if several.takes && !self.is_open_next(input) {
            return Ok(());
        }
        self.is_unsure |= several.hides > Hides::Nothing;
        if several.takes {
            self.skip_arguments(input, out)?;
        }
        match several.hides {
            Hides::Ways => Err(GaveUp),
            Hides::Statement if !self.is_statement(before, input, false) => Err(GaveUp),
            _ => Ok(()),
        }
    }

    /// Keeps no more of arguments than their parentheses.
    fn skip_arguments(&mut self, input: &mut Input, out: &mut Vec<Passing>) -> Result<(), GaveUp> {
        out.extend(self.take(input));
        let mut depth = 1;
        loop {
            self.spend()?;
            let next = self.take(input).ok_or(GaveUp)?;
            match next.token.kind {
                kind if is_jump(kind) => return Err(GaveUp),
                Kind::OpenParen => depth += 1,
                Kind::CloseParen => depth -= 1,
                _ => (),
            }
            if depth == 0 {
                out.push(next);
                return Ok(());
            }
        }
    }

    /// The arguments of a macro, from its parenthesis on.
    fn arguments(
        &mut self,
        input: &mut Input,
        id: MacroId,
        number: usize,
    ) -> Result<Vec<Vec<Passing>>, GaveUp> {
        let is_variadic = self.definitions.macros[id as usize].is_variadic;
        let mut arguments = Vec::new();
        let mut argument = Vec::new();
        let mut depth = 0;
        self.take(input).ok_or(GaveUp)?;
        loop {
            self.spend()?;
            let next = self.take(input).ok_or(GaveUp)?;
            let is_last = is_variadic && arguments.len() + 1 == number;
            match next.token.kind {
                Kind::CloseParen if depth == 0 => break,
                Kind::Comma if depth == 0 && !is_last => {
                    arguments.push(std::mem::take(&mut argument));
                    continue;
                }
                Kind::OpenParen => depth += 1,
                Kind::CloseParen => depth -= 1,
                _ => (),
            }
            argument.push(next);
        }
        if number > 0 || !argument.is_empty() {
            arguments.push(argument);
        }
        // What `...` stands for may be left out with its comma.
        if is_variadic && arguments.len() + 1 == number {
            arguments.push(Vec::new());
        }
        match arguments.len() == number {
            true => Ok(arguments),
            false => Err(GaveUp),
        }
    }

    /// What a macro stands for, with these arguments.
    fn substitute(
        &mut self,
        id: MacroId,
        arguments: &[Vec<Passing>],
        around: &[Frame],
        depth: u32,
    ) -> Result<Vec<Passing>, GaveUp> {
        let definitions = self.definitions;
        let body = &definitions.macros[id as usize].body;
        let is_paste = |at: Option<usize>| {
            let piece = at.and_then(|it| body.get(it));
            piece.is_some_and(|it| it.role == Role::Paste)
        };
        let mut expanded: Vec<Option<Vec<Passing>>> = vec![None; arguments.len()];
        let mut made = Vec::new();
        // Whether something stands to the left of a `##`.
        let mut has_left = false;
        for (at, piece) in body.iter().enumerate() {
            let is_pasted = is_paste(at.checked_sub(1));
            let next = match piece.role {
                Role::Paste => continue,
                Role::Itself => vec![self.own(piece.token)],
                Role::Quoted(_) => vec![self.new_text()],
                Role::Parameter(number) if is_pasted || is_paste(Some(at + 1)) => {
                    arguments[number].clone()
                }
                Role::Parameter(number) => {
                    if expanded[number].is_none() {
                        let argument = arguments[number].clone();
                        expanded[number] = Some(self.argument(argument, around, depth)?);
                    }
                    expanded[number].clone().unwrap_or_default()
                }
            };
            for _ in &next {
                self.spend()?;
            }
            let is_empty = next.is_empty();
            match is_pasted && has_left {
                true => self.paste(&mut made, next, piece.role),
                false => made.extend(next),
            }
            has_left = has_left && is_pasted || !is_empty;
        }
        Ok(made)
    }

    /// A token of a definition.
    fn own(&self, token: Token) -> Passing {
        let token = Token {
            start: token.start + self.base,
            end: token.end + self.base,
            ..token
        };
        Passing {
            token,
            is_final: false,
        }
    }

    /// An argument, as it is once it was expanded by itself.
    fn argument(
        &mut self,
        tokens: Vec<Passing>,
        around: &[Frame],
        depth: u32,
    ) -> Result<Vec<Passing>, GaveUp> {
        if tokens.iter().all(|it| it.token.kind != Kind::Name) {
            return Ok(tokens);
        }
        // The macros that we are in mean nothing there either.
        let outer = around.iter().map(|it| Frame {
            tokens: Vec::new(),
            at: 0,
            made_by: it.made_by,
        });
        let mut frames: Vec<Frame> = outer.collect();
        frames.push(Frame {
            tokens,
            at: 0,
            made_by: None,
        });
        let mut input = Input { frames, next: None };
        let mut out = Vec::new();
        self.scan(&mut input, &mut out, depth + 1, false)?;
        Ok(out)
    }

    /// A string, whatever is in it.
    fn new_text(&mut self) -> Passing {
        self.new_tokens(b"\"\"").swap_remove(0)
    }

    fn new_tokens(&mut self, bytes: &[u8]) -> Vec<Passing> {
        let start = self.out.text.len() as u32;
        self.out.text.extend_from_slice(bytes);
        let passing = |token: Token| Passing {
            token: Token {
                start: token.start + start,
                end: token.end + start,
                ..token
            },
            is_final: false,
        };
        lex(bytes, "").tokens.into_iter().map(passing).collect()
    }

    /// Makes one token of the last of what is made and the first of what comes next.
    fn paste(&mut self, made: &mut Vec<Passing>, next: Vec<Passing>, role: Role) {
        let is_comma = made.last().is_some_and(|it| it.token.kind == Kind::Comma);
        let is_list = is_comma && matches!(role, Role::Parameter(_));
        match next.split_first() {
            // `, ## __VA_ARGS__`
            None if is_list => _ = made.pop(),
            None => (),
            Some(_) if is_list => made.extend(next),
            Some((first, rest)) => {
                let last = made.pop();
                let mut bytes = last.map_or(Vec::new(), |it| self.bytes(&it.token).to_vec());
                bytes.extend_from_slice(self.bytes(&first.token));
                made.extend(self.new_tokens(&bytes));
                made.extend_from_slice(rest);
            }
        }
    }
}

/// Whether a token leads control away.
fn is_jump(kind: Kind) -> bool {
    match kind {
        Kind::Word(word) => word.is_jump(),
        kind => kind == Kind::Stray,
    }
}

/// Whether a statement may follow.
fn may_end_statement(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Semicolon
            | Kind::OpenBrace
            | Kind::CloseBrace
            | Kind::CloseParen
            | Kind::Colon
            | Kind::Word(Word::Else | Word::Do)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text with all that macros stand for in it.
    fn expanded(text: &str) -> String {
        let mut definitions = Definitions::default();
        definitions.read("x.c", text.as_bytes());
        definitions.settle();
        let lexed = lex(text.as_bytes(), "");
        let environment = Environment::new(&definitions, 0, 0, &|_| false);
        let found = expand(text.as_bytes(), &lexed, &definitions, environment);
        let bytes = |it: &Token| match it.kind {
            Kind::Stray => "@".into(),
            _ => String::from_utf8_lossy(&found.text[it.start as usize..it.end as usize])
                .into_owned(),
        };
        let words: Vec<String> = found.tokens.tokens.iter().map(bytes).collect();
        words.join(" ")
    }

    #[test]
    fn macros_become_what_they_stand_for() {
        for (text, made) in [
            ("#define A 1 + 2\nA * A", "1 + 2 * 1 + 2"),
            ("#define F(a, b) b - a\nF(x, (y, z)) F", "( y , z ) - x F"),
            ("#define E()  7\nE() E( )", "7 7"),
            ("#define E(x) [x]\nE() E(E(1))", "[ ] [ [ 1 ] ]"),
            ("#define G H\n#define H(x) x;\nG(3) G (\n4)", "3 ; 4 ;"),
            (
                "#define V(f, ...) f(__VA_ARGS__)\nV(a, b, c) V(d)",
                "a ( b , c ) d ( )",
            ),
            (
                "#define V(f, r...) f(0, ##r)\nV(a, b, c) V(d)",
                "a ( 0 , b , c ) d ( 0 )",
            ),
            (
                "#define P(a, b) a ## b ## 1\nP(x, y) P(, y) P(x,)",
                "xy1 y1 x1",
            ),
            ("#define S(a) #a a\nS(x + 1)", "\"\" x + 1"),
            ("#define N(a) S_##a\n#define A 5\n#define S_A 6\nN(A)", "6"),
        ] {
            assert_eq!(expanded(text), made, "{text}");
        }
    }

    #[test]
    fn a_macro_means_nothing_inside_of_itself() {
        for (text, made) in [
            (
                "#define f(x) g(f(x))\nf(1) f(f(2))",
                "g ( f ( 1 ) ) g ( f ( g ( f ( 2 ) ) ) )",
            ),
            ("#define a b\n#define b a + b\na b", "a + b b + b"),
        ] {
            assert_eq!(expanded(text), made, "{text}");
        }
    }

    #[test]
    fn definitions_count_from_where_they_are() {
        let text = "A\n#define A 1\nA\n#undef A\nA\n#define A 2\nA";
        assert_eq!(expanded(text), "A 1 A 2");
    }

    #[test]
    fn one_of_several_macros_is_left_as_it_is_if_control_comes_out_of_it() {
        let text = "#ifdef WHO\n#define T(x) if (x) return\n#define U(x) { h(x); }\n#else\n\
                    #define T(x)\n#define U(x)\n#endif\n;T(1); U(a || b); U(break);";
        assert_eq!(
            expanded(text),
            "; if ( 1 ) return ; { h ( a || b ) ; } ; @ ( break ) ;"
        );
        let text = "#ifdef WHO\n#define T(x) return x\n#define U(x) (x ? h(x) : 0)\n#else\n\
                    #define T(x) x\n#define U(x) x\n#endif\nT(1); U(a || b); T (c); U(break);";
        assert_eq!(expanded(text), "@ ( 1 ) ; U ( ) ; @ ( c ) ; @ ( break ) ;");
        let text = "#ifdef WHO\n#define T(x) if (x) h()\n#else\n#define T(x) g(x)\n#endif\n\
                    ;T(1); if (a) T(2); else b; i = T(3);";
        assert_eq!(
            expanded(text),
            "; T ( ) ; if ( a ) @ ( 2 ) ; else b ; i = @ ( 3 ) ;"
        );
    }

    #[test]
    fn of_several_macros_that_hide_nothing_one_is_taken() {
        let text = "#ifdef WHO\n#define C const\n#define O z_o\n#define S(x) 0\n\
                    #define N(x) x\n#else\n#define C\n#define N(x, y) x + y\n#endif\n\
                    C O S(1) N(1, 2) N(1)";
        assert_eq!(expanded(text), "const O S ( 1 ) 1 + 2 N ( 1 )");
    }

    #[test]
    fn what_would_never_end_is_given_up() {
        let mut text = String::from("#define A0 x\n");
        for number in 1..60 {
            let before = number - 1;
            text += &format!("#define A{number} A{before} A{before}\n");
        }
        assert_eq!(expanded(&format!("{text}A3 A59 B")), "x x x x x x x x @ B");
        // The same with nothing in it.
        let empty = text.replacen(" x", "", 1);
        assert_eq!(expanded(&format!("{empty}A3 A59 B")), "@ B");
        let mut chain = String::from("#define B0 x\n");
        for number in 1..300 {
            chain += &format!("#define B{number} B{}\n", number - 1);
        }
        assert_eq!(expanded(&format!("{chain}B150 B299")), "x @");
        assert_eq!(
            expanded("#define F(x) x\nF(1, 2) F((3"),
            "@ ( 1 , 2 ) @ ( ( 3"
        );
    }

    #[test]
    fn files_that_are_included_inside_of_braces_spoil_what_is_around_them() {
        assert_eq!(
            expanded("#include \"x.h\"\n{ a;\n#include \"y.h\"\nb; }"),
            "{ a ; @ b ; }"
        );
    }
}
