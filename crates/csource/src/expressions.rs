//! Which parts of an expression run on a condition, and which calls are in it?

use headcount_model::library;

use crate::lex::Kind;
use crate::macros::{Holds, Macros, is_loud};
use crate::parser::{Parser, Trouble};
use crate::statements::{Constant, constant};
use crate::tree::{Atom, Call, Expr, Fate, Shape, Tokens, is_unordered};
use crate::words::Word;

/// What is not evaluated, or wants constants, if its name begins like this.
const RAW: [&[u8]; 14] = [
    b"__builtin_offsetof",
    b"__builtin_types_compatible_p",
    b"__builtin_constant_p",
    b"__builtin_object_size",
    b"__builtin_dynamic_object_size",
    b"__builtin_classify_type",
    b"__builtin_has_attribute",
    b"__builtin_va_arg",
    b"__builtin_choose_expr",
    b"__builtin_convertvector",
    b"__builtin_shuffle",
    b"__builtin_prefetch",
    b"__builtin_tgmath",
    b"__builtin_ia32_",
];

/// How many of those are never evaluated: there is nothing to count in them.
const UNEVALUATED: usize = 7;

const WANTS_CONSTANTS: &str = "operands of a built-in function that may want constants";
const MACRO: &str = "arguments of what may be a macro";
const NULL_OPERAND: &str =
    "the constant behind `?:`, a null pointer perhaps, which only a constant is";
const GENERIC: &str = "operands inside _Generic";

impl Parser<'_, '_> {
    /// An expression with commas.
    pub fn expression(&mut self) -> Result<Expr, Trouble> {
        let first = self.assignment()?;
        if self.kind() != Kind::Comma {
            return Ok(first);
        }
        let start = first.tokens.start;
        let mut items = vec![first];
        while self.take(Kind::Comma) {
            items.push(self.assignment()?);
        }
        Ok(joined(start..self.at, items, Shape::Sequence))
    }

    /// An expression without commas.
    pub fn assignment(&mut self) -> Result<Expr, Trouble> {
        let target = self.choice()?;
        if !matches!(self.kind(), Kind::Is | Kind::Assign) {
            return Ok(target);
        }
        self.at += 1;
        let start = target.tokens.start;
        let value = self.deeper(Self::assignment)?;
        let mut whole = leaf(
            start..self.at,
            vec![Atom::Group(target), Atom::Group(value)],
        );
        whole.is_constant = false;
        Ok(whole)
    }

    fn choice(&mut self) -> Result<Expr, Trouble> {
        let condition = self.logic()?;
        if !self.take(Kind::Question) {
            return Ok(condition);
        }
        self.deeper(|parser| parser.arms(condition))
    }

    fn arms(&mut self, condition: Expr) -> Result<Expr, Trouble> {
        let start = condition.tokens.start;
        let yes = match self.kind() {
            Kind::Colon => None,
            _ => Some(Box::new(self.expression()?)),
        };
        self.expect(Kind::Colon, "the `:` of a `?`")?;
        let no = Box::new(self.choice()?);
        let is_short = yes.is_none() && !condition.is_constant && no.is_constant;
        if is_short && constant(&no, self.text, self.tokens) == Constant::MaybeNull {
            self.left_alone.push((no.tokens.start, NULL_OPERAND));
        }
        let arms = || yes.iter().chain([&no]);
        let is_constant = condition.is_constant && arms().all(|it| it.is_constant);
        Ok(Expr {
            tokens: start..self.at,
            has_blocks: !is_constant,
            may_be_lost: condition.may_be_lost || arms().any(|it| it.may_be_lost),
            is_constant,
            shape: Shape::Choice {
                condition: Box::new(condition),
                yes,
                no,
            },
        })
    }

    /// Operands joined by `||`.
    fn logic(&mut self) -> Result<Expr, Trouble> {
        let first = self.conjunction()?;
        match self.kind() {
            Kind::OrOr => self.joined_by(Kind::OrOr, first, Self::conjunction),
            _ => Ok(first),
        }
    }

    /// One level down: operands joined by `&&`.
    #[inline]
    fn conjunction(&mut self) -> Result<Expr, Trouble> {
        let first = self.operand()?;
        match self.kind() {
            Kind::AndAnd => self.joined_by(Kind::AndAnd, first, Self::operand),
            _ => Ok(first),
        }
    }

    fn joined_by(
        &mut self,
        operator: Kind,
        first: Expr,
        next: fn(&mut Self) -> Result<Expr, Trouble>,
    ) -> Result<Expr, Trouble> {
        let start = first.tokens.start;
        let mut operands = vec![first];
        while self.take(operator) {
            operands.push(next(self)?);
        }
        let mut whole = joined(start..self.at, operands, Shape::Logic);
        whole.has_blocks = !whole.is_constant;
        Ok(whole)
    }

    /// Everything that binds closer than `&&`.
    fn operand(&mut self) -> Result<Expr, Trouble> {
        let start = self.at;
        let mut atoms = Vec::new();
        let mut is_constant = true;
        loop {
            is_constant &= self.prefixed(&mut atoms)?;
            is_constant &= self.suffixes(&mut atoms)?;
            match self.kind() {
                Kind::Either | Kind::Binary => self.at += 1,
                _ => break,
            }
        }
        let mut whole = leaf(start..self.at, atoms);
        whole.is_constant = is_constant && whole.is_constant;
        Ok(whole)
    }

    /// What stands between two operators, but for what follows it. Says whether it may be constant.
    fn prefixed(&mut self, atoms: &mut Vec<Atom>) -> Result<bool, Trouble> {
        loop {
            match self.kind() {
                Kind::Either | Kind::Prefix | Kind::Step => self.at += 1,
                Kind::Word(Word::Extension | Word::Operator) => self.at += 1,
                Kind::Word(Word::SizeOf) => {
                    self.at += 1;
                    self.skip_unevaluated()?;
                    return Ok(true);
                }
                Kind::OpenParen if self.is_cast() => {
                    self.skip_group()?;
                    if self.kind() == Kind::OpenBrace {
                        let list = self.deeper(Self::braced)?;
                        atoms.push(Atom::List(list));
                        return Ok(false);
                    }
                }
                _ => return self.primary(atoms),
            }
        }
    }

    /// Is the parenthesis before us that of a type?
    fn is_cast(&self) -> bool {
        let inside = self.at + 1;
        if self.kind_at(inside) == Kind::Word(Word::Attribute) || self.begins_type(inside) {
            return true;
        }
        // A type we have not heard of: two operands cannot stand side by side.
        let is_one_name =
            self.kind_at(inside) == Kind::Name && self.kind_at(inside + 1) == Kind::CloseParen;
        is_one_name
            && matches!(
                self.kind_at(inside + 2),
                Kind::Name | Kind::Number | Kind::Text
            )
    }

    fn primary(&mut self, atoms: &mut Vec<Atom>) -> Result<bool, Trouble> {
        match self.kind() {
            Kind::Name if self.next_kind() == Kind::OpenParen => self.called(atoms),
            Kind::Name => {
                let name = self.at;
                self.at += 1;
                if self.may_hide_a_call(name) {
                    atoms.push(Atom::Macro);
                }
                Ok(self.names_a_constant(name))
            }
            Kind::Number | Kind::Word(Word::Constant) => {
                self.at += 1;
                Ok(true)
            }
            Kind::Text => {
                while self.kind() == Kind::Text || self.is_name_among_texts() {
                    self.at += 1;
                }
                Ok(true)
            }
            // The address of a label.
            Kind::AndAnd if self.next_kind() == Kind::Name => {
                self.at += 2;
                Ok(false)
            }
            Kind::Word(Word::Generic) => {
                let start = self.at;
                self.at += 1;
                self.skip_group()?;
                self.leave_alone(start, self.at, GENERIC);
                Ok(false)
            }
            Kind::OpenParen => self.group(atoms),
            _ => Err(self.unexpected("an operand")),
        }
    }

    /// Names that are constants; where there may be macros, names in capitals may all be.
    fn names_a_constant(&self, at: u32) -> bool {
        let name = self.bytes(at);
        matches!(name, b"true" | b"false" | b"NULL") || self.macros.is_some() && is_loud(name)
    }

    /// Whether a name may be a macro that control does not come back from.
    fn may_hide_a_call(&self, at: u32) -> bool {
        let name = self.bytes(at);
        let holds = |macros: &Macros<'_>| macros.holds(name, false);
        name != b"NULL" && self.macros.map(holds) > Some(Holds::Values)
    }

    /// `"a" PRId64 "b"`: a macro that stands for a string.
    fn is_name_among_texts(&self) -> bool {
        self.kind() == Kind::Name
            && self.next_kind() != Kind::OpenParen
            && self.at > 0
            && self.kind_at(self.at - 1) == Kind::Text
    }

    fn group(&mut self, atoms: &mut Vec<Atom>) -> Result<bool, Trouble> {
        let end = self.partner[self.at as usize];
        self.at += 1;
        if self.kind() == Kind::OpenBrace {
            let open = self.at;
            let items = self.deeper(Self::block)?;
            atoms.push(Atom::Block { open, items });
            self.expect(Kind::CloseParen, "the end of a statement expression")?;
            return Ok(false);
        }
        let inside = self.deeper(Self::expression)?;
        self.expect(Kind::CloseParen, "a closing parenthesis")?;
        debug_assert_eq!(self.at, end + 1);
        let is_constant = inside.is_constant;
        keep(atoms, Atom::Group(inside));
        Ok(is_constant)
    }

    /// Calls, subscripts and members behind an operand. Says whether there are none.
    fn suffixes(&mut self, atoms: &mut Vec<Atom>) -> Result<bool, Trouble> {
        let start = self.at;
        loop {
            match self.kind() {
                Kind::OpenParen => {
                    let arguments = self.arguments()?;
                    atoms.push(Atom::Call(Call {
                        arguments,
                        fate: Fate::Unsure,
                    }));
                }
                Kind::OpenBracket => {
                    self.at += 1;
                    let inside = self.deeper(Self::expression)?;
                    self.expect(Kind::CloseBracket, "a closing bracket")?;
                    keep(atoms, Atom::Group(inside));
                }
                Kind::Member if matches!(self.next_kind(), Kind::Name | Kind::Word(_)) => {
                    self.at += 2;
                }
                Kind::Step => self.at += 1,
                _ => return Ok(self.at == start),
            }
        }
    }

    /// A call by name. Says whether it may be constant.
    fn called(&mut self, atoms: &mut Vec<Atom>) -> Result<bool, Trouble> {
        let name_token = self.at;
        let name = self.bytes(name_token);
        self.at += 1;
        if let Some(rule) = RAW.iter().position(|raw| name.starts_with(raw)) {
            self.skip_group()?;
            if rule >= UNEVALUATED {
                self.leave_alone(name_token, self.at, WANTS_CONSTANTS);
            }
            return Ok(rule < UNEVALUATED);
        }
        if self.macros.is_some() && !self.defined.contains(name) {
            self.skip_group()?;
            self.leave_alone(name_token, self.at, MACRO);
            atoms.push(Atom::Call(Call {
                arguments: Vec::new(),
                fate: Fate::Unsure,
            }));
            return Ok(false);
        }
        let arguments = self.arguments()?;
        let may_fork = std::str::from_utf8(name).is_ok_and(library::may_fork);
        if may_fork && !self.defined.contains(name) {
            self.forks.push(name_token..self.at);
        }
        let call = Atom::Call(Call {
            arguments,
            fate: self.fate(name),
        });
        atoms.push(call);
        Ok(false)
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, Trouble> {
        let mut arguments = Vec::new();
        self.at += 1;
        if self.take(Kind::CloseParen) {
            return Ok(arguments);
        }
        loop {
            let argument = self.deeper(Self::assignment)?;
            if argument.has_blocks || argument.may_be_lost {
                arguments.push(argument);
            }
            if !self.take(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::CloseParen, "the end of a call's arguments")?;
        Ok(arguments)
    }

    fn fate(&self, name: &[u8]) -> Fate {
        let Ok(text) = std::str::from_utf8(name) else {
            return Fate::Unsure;
        };
        if library::never_returns(text) {
            return Fate::Never;
        }
        if library::returns_twice(text.trim_start_matches("__builtin")) {
            return Fate::Unsure;
        }
        match !self.defined.contains(name) && surely_returns(text) {
            true => Fate::Returns,
            false => Fate::Unsure,
        }
    }

    /// The operand of `sizeof`.
    fn skip_unevaluated(&mut self) -> Result<(), Trouble> {
        loop {
            match self.kind() {
                Kind::Either | Kind::Prefix | Kind::Step | Kind::AndAnd => self.at += 1,
                Kind::Word(Word::SizeOf | Word::Extension | Word::Operator) => self.at += 1,
                Kind::OpenParen if self.is_cast() => {
                    self.skip_group()?;
                    if self.kind() == Kind::OpenBrace {
                        self.skip_group()?;
                        break;
                    }
                    // `sizeof (int)` ends here, `sizeof (int) x` is a cast.
                    let goes_on = matches!(
                        self.kind(),
                        Kind::Name | Kind::Number | Kind::Text | Kind::OpenParen | Kind::Prefix
                    );
                    if !goes_on {
                        return Ok(());
                    }
                }
                Kind::OpenParen => {
                    self.skip_group()?;
                    break;
                }
                Kind::Name | Kind::Number | Kind::Word(Word::Constant) => {
                    self.at += 1;
                    break;
                }
                Kind::Word(Word::Generic) => {
                    self.at += 1;
                    self.skip_group()?;
                    break;
                }
                Kind::Text => {
                    while self.take(Kind::Text) {}
                    break;
                }
                _ => return Err(self.unexpected("the operand of sizeof")),
            }
        }
        loop {
            match self.kind() {
                Kind::OpenParen | Kind::OpenBracket => self.skip_group()?,
                Kind::Member => self.at += 2,
                Kind::Step => self.at += 1,
                _ => return Ok(()),
            }
        }
    }

    /// An initialiser in braces: what of it is evaluated.
    pub fn braced(&mut self) -> Result<Vec<Expr>, Trouble> {
        let mut items = Vec::new();
        let end = self.partner[self.at as usize];
        self.at += 1;
        while self.kind() != Kind::CloseBrace {
            self.designators()?;
            let item = self.initialiser()?;
            if item.has_blocks || item.may_be_lost {
                items.push(item);
            }
            if !self.take(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::CloseBrace, "the end of an initialiser")?;
        debug_assert_eq!(self.at, end + 1);
        Ok(items)
    }

    /// What a variable or a member is initialised with.
    pub fn initialiser(&mut self) -> Result<Expr, Trouble> {
        if self.kind() != Kind::OpenBrace {
            return self.deeper(Self::assignment);
        }
        let start = self.at;
        let items = self.deeper(Self::braced)?;
        Ok(leaf(start..self.at, vec![Atom::List(items)]))
    }

    /// `.x[3] =`, or `x:` as it once was.
    fn designators(&mut self) -> Result<(), Trouble> {
        if self.kind() == Kind::Name && self.next_kind() == Kind::Colon {
            self.at += 2;
            return Ok(());
        }
        loop {
            match self.kind() {
                Kind::Member => self.at += 2,
                Kind::OpenBracket => self.skip_group()?,
                Kind::Is => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }
}

/// Keeps what matters.
fn keep(atoms: &mut Vec<Atom>, atom: Atom) {
    if atom.has_blocks() || atom.may_be_lost() {
        atoms.push(atom);
    }
}

pub fn leaf(tokens: Tokens, atoms: Vec<Atom>) -> Expr {
    Expr {
        tokens,
        has_blocks: atoms.iter().any(Atom::has_blocks),
        may_be_lost: atoms.iter().any(Atom::may_be_lost),
        is_constant: atoms.is_empty() || atoms.iter().all(is_constant),
        shape: Shape::Leaf(atoms),
    }
}

fn is_constant(atom: &Atom) -> bool {
    match atom {
        Atom::Group(inside) => inside.is_constant,
        Atom::Macro => true,
        _ => false,
    }
}

fn joined(tokens: Tokens, items: Vec<Expr>, shape: impl FnOnce(Vec<Expr>) -> Shape) -> Expr {
    Expr {
        tokens,
        has_blocks: items.iter().any(|it| it.has_blocks),
        may_be_lost: items.iter().any(|it| it.may_be_lost),
        is_constant: items.iter().all(|it| it.is_constant),
        shape: shape(items),
    }
}

/// Whether parts of an operand may be evaluated in any order, and that matters.
pub fn atoms_are_unordered(atoms: &[Atom]) -> bool {
    is_unordered(atoms.iter().map(|it| (it.has_blocks(), it.may_be_lost())))
}

/// The same for the arguments of a call or the items of an initialiser.
pub fn items_are_unordered(items: &[Expr]) -> bool {
    is_unordered(items.iter().map(|it| (it.has_blocks, it.may_be_lost)))
}

fn surely_returns(name: &str) -> bool {
    if name.starts_with("__atomic_") || name.starts_with("__sync_") {
        return true;
    }
    let Some(name) = name.strip_prefix("__builtin_") else {
        return library::always_returns(name);
    };
    let name = name.trim_start_matches('_');
    let name = name.strip_suffix("_chk").unwrap_or(name);
    let may_end = [
        "longjmp",
        "trap",
        "unreachable",
        "abort",
        "exit",
        "Exit",
        "return",
        "apply",
    ];
    let may_wait = ["print", "put", "scan", "exec", "fork"];
    !may_end.contains(&name) && !may_wait.iter().any(|part| name.contains(part))
}
