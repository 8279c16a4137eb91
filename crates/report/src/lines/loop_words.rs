//! Where does LLVM say that the code of loops is?
//!
//! It books the branch that ends a loop where the loop's word stands, `while` or `for`: that is
//! executed as often as the condition is evaluated, and not as what precedes the loop.

use super::evidence::Evidence;
use super::loops::loops;
use headcount_model::{Node, SourceFlows, SourceFunction};
use std::collections::BTreeSet;

/// The sources, with the words of loops where the compilers of their files have them.
pub fn as_compiled(sources: &SourceFlows, evidence: &Evidence) -> SourceFlows {
    let mut sources = sources.clone();
    for (file, functions) in &mut sources.functions {
        let is_llvm = evidence.get(file).is_some_and(|it| !it.marks_statements);
        if is_llvm {
            functions.iter_mut().for_each(move_words);
        }
    }
    sources
}

/// The word of a loop belongs to the condition, if there is one; else nobody can tell.
fn move_words(function: &mut SourceFunction) {
    let heads = heads(function);
    let mut moved = Vec::new();
    for word in &function.loops {
        let after = function.places.partition_point(|it| it.0 <= *word);
        let Some(around) = after.checked_sub(1).map(|it| function.places[it].1) else {
            continue;
        };
        let mut next = function.places[after..].iter().map(|it| it.1);
        match next
            .find(|it| *it != around)
            .filter(|it| heads.contains(it))
        {
            Some(head) => moved.extend([(*word, head), ((word.0, word.1 + 1), around)]),
            None => function.vague.push(*word),
        }
    }
    function.vague.sort_unstable();
    function
        .places
        .retain(|it| moved.iter().all(|moved| moved.0 != it.0));
    function.places.extend(moved);
    function.places.sort_unstable_by_key(|it| it.0);
}

/// The blocks in which it is decided whether a loop goes on.
fn heads(function: &SourceFunction) -> BTreeSet<u32> {
    let ways = |block: u32| {
        let from = Node::Block(headcount_model::BlockId(block));
        function
            .graph
            .edges
            .iter()
            .filter(|it| it.from == from)
            .count()
    };
    let heads = loops(&function.graph).into_iter().map(|it| it.head);
    heads.filter(|it| ways(*it) > 1).collect()
}
