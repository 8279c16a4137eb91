//! Every instruction with its count, under the source line it belongs to.

use super::excerpts::function_heading;
use super::listing::source;
use super::{HEADING, Margin, QUIET};
use crate::Error;
use crate::calls::names;
use crate::count::CountedBlock;
use crate::escape::{visible, visible_lines};
use crate::inlined::InlinedRuns;
use crate::listed::Listed;
use crate::names::{Named, functions};
use crate::number::share;
use crate::report::Decode;
use crate::rows::by_address;
use crate::time::Time;
use headcount_model::{Block, Counted, LineRun, LinkAddr, Span};
use std::collections::HashMap;
use std::sync::Arc;

/// Finds one line of one file, if the source is at hand.
pub type SourceLine<'a> = &'a dyn Fn(&str, u32) -> Option<String>;

/// The chosen functions of one module (by their place in the module's own order), instruction by
/// instruction, by address.
pub fn assembly(
    counted: &Counted,
    chosen: &dyn Fn(usize) -> bool,
    demangle: bool,
    decode: Decode<'_>,
    source_line: SourceLine<'_>,
    time: Option<&Time>,
) -> Result<String, Error> {
    let mut out = String::new();
    let inlined = InlinedRuns::of(std::slice::from_ref(counted));
    let all = functions(counted, demangle);
    let names = names(&all);
    let named_decode = |span: &Span| {
        let code = decode(span).into_iter();
        let with_name = |(at, text): (LinkAddr, String)| (at, with_target(text, &names));
        code.map(with_name).collect()
    };
    for named in all.iter().filter(|it| chosen(it.index)) {
        if !out.is_empty() {
            out.push('\n');
        }
        one_function(named, &inlined, &named_decode, source_line, time, &mut out)?;
    }
    Ok(out)
}

/// A call, or a jump to another function, with the name of that function.
fn with_target(text: String, names: &HashMap<LinkAddr, Arc<str>>) -> String {
    let is_transfer = text.starts_with("call") || text.starts_with('j');
    let target = text
        .rsplit_once("0x")
        .filter(|(before, _)| is_transfer && before.ends_with(' '));
    let target = target.and_then(|(_, digits)| u64::from_str_radix(digits, 16).ok());
    match target.and_then(|it| names.get(&LinkAddr(it))) {
        Some(name) => format!("{text} <{name}>"),
        None => text,
    }
}

fn one_function(
    named: &Named<'_>,
    inlined: &InlinedRuns<'_>,
    decode: Decode<'_>,
    source_line: SourceLine<'_>,
    time: Option<&Time>,
    out: &mut String,
) -> Result<(), Error> {
    let heading = function_heading(named, inlined)?;
    let stretches = |it: CountedBlock<'_>| it.stretches(0..it.block.instructions);
    let counts = named.blocks().flat_map(stretches);
    let margin = Margin::of(counts.map(|(_, count)| count));
    let width = margin.width;
    out.push_str(&format!(
        "{HEADING}{}{HEADING:#}\n\n",
        visible_lines(&heading)
    ));
    let title = time.map_or(String::new(), |_| format!(" {:>6}", "time"));
    out.push_str(&format!(
        "{QUIET}{:>width$}  {title} {:>10}{QUIET:#}\n",
        "count", "address"
    ));
    let width = width + title.len();
    let mut last_line = None;
    let listed = Listed::new(named, decode);
    for it in by_address(named) {
        let code = listed.instructions(it.block);
        for ((number, (address, text)), run) in (0..).zip(code).zip(lines_of(it.block)) {
            let line = run.map(|run| (run.file, run.line));
            if line != last_line {
                last_line = line;
                if let Some(run) = run.filter(|run| run.line > 0) {
                    out.push_str(&line_heading(named, run, width, source_line));
                }
            }
            let count = it.at(number);
            let margin = margin.show(count, count.is_never());
            let text = visible(&text).into_owned();
            let time = time.map_or(String::new(), |time| {
                let here = time.of_instruction(&named.module.build_id, address);
                let whole = time.totals.sampled.nanoseconds;
                let part = match here.nanoseconds {
                    0 => String::new(),
                    part => share(part, whole),
                };
                format!(" {part:>6}")
            });
            out.push_str(&format!(
                "{margin}{time} {QUIET}{:>10}{QUIET:#}  {text}\n",
                address.to_string()
            ));
        }
    }
    Ok(())
}

/// The line run of every instruction of a block. Instructions without one stand at the front.
fn lines_of(block: &Block) -> impl Iterator<Item = Option<&LineRun>> {
    let runs = block.lines.iter();
    let in_lines: u64 = runs.map(|run| u64::from(run.instructions)).sum();
    let without = u64::from(block.instructions).saturating_sub(in_lines) as usize;
    let runs = block
        .lines
        .iter()
        .flat_map(|run| std::iter::repeat_n(Some(run), run.instructions as usize));
    // Should the code show more instructions than the block has, they still get shown.
    std::iter::repeat_n(None, without)
        .chain(runs)
        .chain(std::iter::repeat(None))
}

fn line_heading(
    named: &Named<'_>,
    run: &LineRun,
    width: usize,
    source_line: SourceLine<'_>,
) -> String {
    let file = named.file(run.file).unwrap_or(crate::source::UNKNOWN);
    let text = source_line(file, run.line).unwrap_or_default();
    let place = match named.own_file() == Some(file) {
        true => run.line.to_string(),
        false => format!("{}:{}", visible(crate::glob::base_name(file)), run.line),
    };
    let row = format!(
        "{:width$}   {QUIET}{place:>10} | {}{QUIET:#}",
        "",
        source(&text)
    );
    format!("{}\n", row.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_jumps_to_functions_are_named() {
        let names = HashMap::from([(LinkAddr(0x1129), Arc::from("inner"))]);
        let shown = |text: &str| with_target(text.to_owned(), &names);
        assert_eq!(shown("call 0x1129"), "call 0x1129 <inner>");
        assert_eq!(shown("jmp 0x1129"), "jmp 0x1129 <inner>");
        for other in [
            "call 0x112a",
            "call *0x1129(%rip)",
            "mov $0x1129, %eax",
            "je 0x1140",
        ] {
            assert_eq!(shown(other), other);
        }
    }
}
