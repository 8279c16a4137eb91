//! Functions made at random, and bytes that nobody made on purpose.

use super::*;

/// A small generator of numbers that look random (xorshift; any would do).
struct Dice(u64);

impl Dice {
    fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// Mostly small, now and then at the end of what fits.
    fn any(&mut self) -> u32 {
        match self.below(20) {
            0 => u32::MAX,
            1 => self.number() as u32,
            _ => self.below(40) as u32,
        }
    }

    fn address(&mut self, near: u64) -> LinkAddr {
        LinkAddr(match self.below(10) {
            0 => self.number(),
            1 => near.wrapping_add(self.below(100)),
            _ => near,
        })
    }

    fn function(&mut self) -> Function {
        let address = self.address(0x1000);
        let mut end = address.0;
        let number = self.below(9) as u32;
        Function {
            name: String::new(),
            address,
            source: None,
            blocks: (0..number).map(|_| self.block(&mut end)).collect(),
            edges: match number {
                0 => Vec::new(),
                _ => (0..self.below(20)).map(|_| self.edge(number)).collect(),
            },
            counters: 0,
            compiled: Compiled {
                is_optimised: self.below(2) == 0,
                marks_changes: self.below(2) == 0,
                inlined: (0..self.below(3))
                    .map(|before| self.inlined_call(before, address))
                    .collect(),
                language: (self.below(3) == 0).then_some(Language::Python),
            },
        }
    }

    /// One behind so many others.
    fn inlined_call(&mut self, before: u64, near: LinkAddr) -> InlinedCall {
        InlinedCall {
            within: self.below(before + 1) as u32,
            file: FileId(self.below(5) as u32),
            line: self.any(),
            column: self.any(),
            entry: (self.below(4) != 0).then(|| LinkAddr(near.0.wrapping_add(self.below(99)))),
            callee: (self.below(4) != 0).then(|| (FileId(self.below(5) as u32), self.any())),
        }
    }

    fn block(&mut self, end: &mut u64) -> Block {
        let mut block = Block {
            address: self.address(*end),
            ..Block::default()
        };
        *end = block.address.0;
        let pieces = [1, 1, 1, 1, 1, 0, 2, 3];
        for _ in 0..pieces[self.below(8) as usize] {
            let address = self.address(*end);
            let bytes: Vec<u8> = (0..self.below(40)).map(|_| self.below(7) as u8).collect();
            *end = address.0.wrapping_add(bytes.len() as u64);
            block.code.push(Span { address, bytes });
        }
        for _ in 0..self.below(6) {
            block.lines.push(LineRun {
                file: FileId(self.below(5) as u32),
                line: self.any(),
                column: self.any(),
                is_stmt: self.below(2) == 0,
                instructions: self.below(4) as u32,
                inline_copy: match self.below(3) {
                    0 => self.any(),
                    _ => 0,
                },
            });
        }
        let in_lines: u32 = block.lines.iter().map(|it| it.instructions).sum();
        block.instructions = match self.below(20) {
            0 => u32::MAX,
            more => in_lines + more as u32 / 8,
        };
        if self.below(3) == 0 {
            self.set_place(&mut block);
        }
        block
    }

    fn set_place(&mut self, block: &mut Block) {
        let kind = self.below(BlockKind::ALL.len() as u64) as usize;
        let place = SourcePlace {
            file: FileId(self.below(5) as u32),
            line: self.any(),
            column: self.any(),
            kind: BlockKind::ALL[kind],
        };
        block.place = Some(place);
        if place.kind == BlockKind::Operation && self.below(4) != 0 {
            block.operation = Some(Operation {
                kind: format!("it {}", self.below(9)),
                end_line: self.any(),
                end_column: self.any(),
            });
        }
    }

    fn edge(&mut self, blocks: u32) -> FunctionEdge {
        let mut end = || (self.below(4) != 0).then(|| self.below(blocks.into()) as u32);
        FunctionEdge {
            from: end(),
            to: end(),
            kind: EdgeKind::ALL[self.below(7) as usize],
        }
    }
}

fn numbers(of: &Function) -> Numbers {
    Numbers {
        address: of.address,
        blocks: of.blocks.len() as u32,
        edges: of.edges.len() as u32,
        instructions: of.blocks.iter().map(|it| u64::from(it.instructions)).sum(),
        files: 5,
    }
}

fn decode(facts: &[u8], number: u32, of: &Function) -> Option<Decoded> {
    let mut decoder = Decoder::new();
    decoder.open(facts).ok()?;
    decoder.function(number, numbers(of)).ok()
}

#[test]
fn what_goes_in_comes_out_and_no_bytes_make_it_stumble() {
    let mut encoder = Encoder::new();
    for seed in 1..2000 {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ seed);
        let functions: Vec<Function> = (0..=dice.below(4)).map(|_| dice.function()).collect();
        for function in &functions {
            encoder.add(function);
        }
        let plain = [&[0], encoder.plain.as_slice()].concat();
        let facts = encoder.finish();
        for facts in [&facts, &plain] {
            for (number, function) in (0..).zip(&functions) {
                let wanted = (
                    function.blocks.clone(),
                    function.edges.clone(),
                    function.compiled.clone(),
                );
                assert_eq!(decode(facts, number, function), Some(wanted), "seed {seed}");
                let mut bytes = facts.clone();
                for _ in 0..1 + dice.below(3) {
                    let at = dice.below(bytes.len() as u64) as usize;
                    bytes[at] = dice.number() as u8;
                }
                let _ = decode(&bytes, number, function);
            }
            let beyond = functions.len() as u32;
            assert_eq!(decode(facts, beyond, &functions[0]), None);
            let cut = &facts[..facts.len() - 1];
            let last = &functions[functions.len() - 1];
            assert_eq!(decode(cut, beyond - 1, last), None, "seed {seed}");
        }
        let noise: Vec<u8> = (0..dice.below(60)).map(|_| dice.number() as u8).collect();
        let _ = decode(&noise, 0, &functions[0]);
    }
}

#[test]
fn a_few_bytes_do_not_become_many() {
    let block = Block {
        code: vec![Span {
            address: LinkAddr(0),
            bytes: vec![0x90; 1 << 20],
        }],
        ..Block::default()
    };
    let function = Function {
        name: String::new(),
        address: LinkAddr(0),
        source: None,
        blocks: vec![block],
        edges: Vec::new(),
        counters: 0,
        compiled: Default::default(),
    };
    let mut encoder = Encoder::new();
    assert!(encoder.add(&function));
    let facts = encoder.finish();
    assert!(facts.len() > 1 << 14);
    let wanted = (function.blocks.clone(), Vec::new(), Compiled::default());
    assert_eq!(decode(&facts, 0, &function), Some(wanted));
    let bomb = [1, 0xff, 0xff, 0xff, 0xff, 0x0f, 3, 0];
    assert!(Decoder::new().open(&bomb).is_err());
}
