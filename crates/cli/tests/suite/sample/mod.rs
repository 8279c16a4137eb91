//! A profile made by hand: a program `max` with two functions, as if it had run twice.

use headcount_model::{
    Block, EdgeKind, FileId, Function, FunctionCounts, FunctionEdge, LineRun, LinkAddr, Module,
    ModuleCounts, Process, Refusal, Run, Span,
};
use headcount_profile::Profile;
use std::path::Path;

/// The source of the program.
pub const MAX_C: &str = "\
#include <stdlib.h>
int x[100];

int max(int *v, int n)
{
\tint j = 0;
\tfor (int i = 1; i < n; i++)
\t\tif (v[i] > v[j])
\t\t\tj = i;
\treturn j;
}

int main(void)
{
\tif (max(x, 100) < 0)
\t\tabort();
}
";

/// One block: its address, its code, and for each run of lines the line and how many
/// instructions.
fn block(address: u64, code: &[u8], lines: &[(u32, u32)]) -> Block {
    let run = |&(line, instructions): &(u32, u32)| LineRun {
        file: FileId(0),
        line,
        column: 0,
        is_stmt: true,
        instructions,
        inline_copy: 0,
    };
    Block {
        address: LinkAddr(address),
        code: vec![Span {
            address: LinkAddr(address),
            bytes: code.to_vec(),
        }],
        instructions: lines.iter().map(|(_, instructions)| instructions).sum(),
        lines: lines.iter().map(run).collect(),
        place: None,
        operation: None,
    }
}

fn edge(from: Option<u32>, to: Option<u32>, kind: EdgeKind) -> FunctionEdge {
    FunctionEdge { from, to, kind }
}

#[rustfmt::skip]
fn max() -> Function {
    Function {
        name: "_Z3maxPii".into(),
        address: LinkAddr(0x1000),
        source: Some((FileId(0), 4)),
        blocks: vec![
            block(0x1000, &[
                0x55,             // push %rbp
                0x48, 0x89, 0xe5, // mov %rsp,%rbp
                0x31, 0xc0,       // xor %eax,%eax
            ], &[(5, 2), (6, 1)]),
            block(0x1006, &[
                0x39, 0xf0,       // cmp %esi,%eax
                0x7d, 0x08,       // jge 0x1012
            ], &[(7, 2)]),
            block(0x100a, &[
                0x39, 0xd1,       // cmp %edx,%ecx
                0x7e, 0x02,       // jle 0x1010
            ], &[(8, 2)]),
            block(0x100e, &[
                0x89, 0xc2,       // mov %eax,%edx
            ], &[(9, 1)]),
            block(0x1010, &[
                0xeb, 0xf4,       // jmp 0x1006
            ], &[(7, 1)]),
            block(0x1012, &[
                0x5d,             // pop %rbp
                0xc3,             // ret
            ], &[(10, 1), (11, 1)]),
        ],
        edges: vec![
            edge(None, Some(0), EdgeKind::Entry),
            edge(Some(0), Some(1), EdgeKind::Fall),
            edge(Some(1), Some(2), EdgeKind::Fall),
            edge(Some(1), Some(5), EdgeKind::Taken),
            edge(Some(2), Some(3), EdgeKind::Fall),
            edge(Some(2), Some(4), EdgeKind::Taken),
            edge(Some(3), Some(4), EdgeKind::Fall),
            edge(Some(4), Some(1), EdgeKind::Jump),
            edge(Some(5), None, EdgeKind::Leave),
        ],
        counters: 3,
        compiled: Default::default(),
    }
}

#[rustfmt::skip]
fn main() -> Function {
    Function {
        name: "main".into(),
        address: LinkAddr(0x1020),
        source: Some((FileId(0), 13)),
        blocks: vec![
            block(0x1020, &[
                0xe8, 0xdb, 0xff, 0xff, 0xff, // call 0x1000
                0x85, 0xc0,                   // test %eax,%eax
                0x79, 0x05,                   // jns 0x102e
            ], &[(14, 1), (15, 2)]),
            block(0x1029, &[
                0xe8, 0xd2, 0x0f, 0x00, 0x00, // call 0x2000
            ], &[(16, 1)]),
            block(0x102e, &[
                0xc3,                         // ret
            ], &[(17, 1)]),
        ],
        edges: vec![
            edge(None, Some(0), EdgeKind::Entry),
            edge(Some(0), Some(1), EdgeKind::Fall),
            edge(Some(0), Some(2), EdgeKind::Taken),
            edge(Some(1), None, EdgeKind::Lost),
            edge(Some(2), None, EdgeKind::Leave),
        ],
        counters: 2,
        compiled: Default::default(),
    }
}

/// The program. Something in it is not counted, and its name is not polite.
pub fn module(folder: &Path) -> Module {
    Module {
        path: folder.join("max").to_string_lossy().into_owned(),
        build_id: "0123456789abcdef".into(),
        files: vec!["max.c".into()],
        functions: vec![max(), main()],
        refusals: vec![Refusal {
            subject: "start\u{1b}[2J".into(),
            file: "start.s".into(),
            line: 7,
            reason: "it uses a macro, `SAVE_ALL`".into(),
        }],
    }
}

/// A run in which the largest number was found anew `found` times.
pub fn run(key: &str, found: u64, status: i32) -> Run {
    Run {
        key: key.into(),
        batch: String::new(),
        phase: String::new(),
        command: vec!["./max".into(), "--of".into(), "100".into()],
        started: 4_000_000_000_000_000_000,
        ended: 4_000_000_001_000_000_000,
        status: Some(status),
        is_part: false,
        cpu: "a processor".into(),
        host: "a machine".into(),
        processes: vec![Process {
            pid: 100,
            threads: vec![100],
            ..Process::default()
        }],
        notes: Vec::new(),
        calls: None,
        system_calls: Default::default(),
        values: None,
        threads: None,
        runtimes: None,
        modules: vec![ModuleCounts {
            build_id: "0123456789abcdef".into(),
            functions: vec![
                FunctionCounts::whole(
                    [1, 100, 99, found, 99, 1],
                    [1, 1, 99, 1, found, 99 - found, found, 99, 1],
                ),
                FunctionCounts::whole([1, 0, 1], [1, 0, 1, 0, 1]),
            ],
        }],
    }
}

/// A folder with `max.c` and `headcount.db`.
pub fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("max.c"), MAX_C).unwrap();
    let mut profile = Profile::create_or_open(&folder.path().join("headcount.db")).unwrap();
    let modules = [module(folder.path())];
    profile.add(&modules, &run("first", 7, 0)).unwrap();
    profile.add(&modules, &run("second", 5, 139)).unwrap();
    folder
}
