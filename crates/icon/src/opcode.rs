//! The instructions that are executed: their names in ucode, their numbers in icode, and how many words
//! follow them there.

macro_rules! opcodes {
    ($($opcode:ident $name:literal $number:literal $words:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Opcode {
            $($opcode,)*
        }

        impl Opcode {
            /// As ucode has it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Opcode::$opcode => $name,)*
                }
            }

            /// As icode has it.
            pub fn from_number(number: u32) -> Option<Opcode> {
                match number {
                    $($number => Some(Opcode::$opcode),)*
                    _ => None,
                }
            }

            /// How many words of operands follow it in icode.
            pub fn words(self) -> usize {
                match self {
                    $(Opcode::$opcode => $words,)*
                }
            }
        }
    };
}

opcodes! {
    // Operators.
    Asgn "asgn" 1 0,
    Bang "bang" 2 0,
    Cat "cat" 3 0,
    Compl "compl" 4 0,
    Diff "diff" 5 0,
    Div "div" 6 0,
    Eqv "eqv" 7 0,
    Inter "inter" 8 0,
    Lconcat "lconcat" 9 0,
    Lexeq "lexeq" 10 0,
    Lexge "lexge" 11 0,
    Lexgt "lexgt" 12 0,
    Lexle "lexle" 13 0,
    Lexlt "lexlt" 14 0,
    Lexne "lexne" 15 0,
    Minus "minus" 16 0,
    Mod "mod" 17 0,
    Mult "mult" 18 0,
    Neg "neg" 19 0,
    Neqv "neqv" 20 0,
    Nonnull "nonnull" 21 0,
    Null "null" 22 0,
    Number "number" 23 0,
    Numeq "numeq" 24 0,
    Numge "numge" 25 0,
    Numgt "numgt" 26 0,
    Numle "numle" 27 0,
    Numlt "numlt" 28 0,
    Numne "numne" 29 0,
    Plus "plus" 30 0,
    Power "power" 31 0,
    Random "random" 32 0,
    Rasgn "rasgn" 33 0,
    Refresh "refresh" 34 0,
    Rswap "rswap" 35 0,
    Sect "sect" 36 0,
    Size "size" 37 0,
    Subsc "subsc" 38 0,
    Swap "swap" 39 0,
    Tabmat "tabmat" 40 0,
    Toby "toby" 41 0,
    Unions "unions" 42 0,
    Value "value" 43 0,
    // All else.
    Bscan "bscan" 44 0,
    Ccase "ccase" 45 0,
    Chfail "chfail" 46 1,
    Coact "coact" 47 0,
    Cofail "cofail" 48 0,
    Coret "coret" 49 0,
    Create "create" 50 1,
    Cset "cset" 51 1,
    Dup "dup" 52 0,
    Efail "efail" 53 0,
    Eret "eret" 54 0,
    Escan "escan" 55 0,
    Esusp "esusp" 56 0,
    Field "field" 57 1,
    Goto "goto" 58 1,
    Init "init" 59 1,
    Int "int" 60 1,
    Invoke "invoke" 61 1,
    Keywd "keywd" 62 1,
    Limit "limit" 63 0,
    Llist "llist" 65 1,
    Lsusp "lsusp" 66 0,
    Mark "mark" 67 1,
    Pfail "pfail" 68 0,
    Pnull "pnull" 69 0,
    Pop "pop" 70 0,
    Pret "pret" 71 0,
    Psusp "psusp" 72 0,
    Push1 "push1" 73 0,
    Pushn1 "pushn1" 74 0,
    Real "real" 75 1,
    Sdup "sdup" 76 0,
    Str "str" 77 2,
    Unmark "unmark" 78 0,
    // Only in ucode: a variable of one of the four kinds that follow.
    Var "var" 80 1,
    Arg "arg" 81 1,
    Static "static" 82 1,
    Local "local" 83 1,
    Global "global" 84 1,
    Mark0 "mark0" 85 0,
    // Only in icode: `invoke` with all arguments in a list, and what fills a gap.
    Apply "apply" 89 0,
    Noop "noop" 98 0,
}
