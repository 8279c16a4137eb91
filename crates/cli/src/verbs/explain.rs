//! Say how a function is counted, or why it is not.

use crate::args::Explain;
use crate::copied::{Copied, Files};
use crate::output;
use anyhow::bail;
use headcount_model::{Counted, Function, FunctionCounts, Refusal};
use headcount_profile::Loaded;
use headcount_report::{
    Pattern, demangle, is_counted, is_end_of_path, no_function_called, split_module, thousands,
    visible, without_parameters,
};
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn run(args: &Explain) -> anyhow::Result<ExitCode> {
    let loaded = super::load(args.profile.input.as_ref(), &args.runs)?;
    let wanted = args.function.as_str();
    let has_it = loaded.counted.iter().any(|it| {
        let mut names = names_of(it);
        names.any(|name| is_meant(wanted, it, name))
    });
    // What nothing is called may be the end of a path.
    let end = Pattern::new(wanted.strip_suffix("()").unwrap_or(wanted));
    let is_meant = |it: &Counted, name: &str| match has_it {
        true => is_meant(wanted, it, name),
        false => is_end_of_path(&end, &demangle(name)),
    };
    if args.json {
        return as_json(&loaded, &is_meant, args);
    }
    let mut files = Files::default();
    let (mut counted, mut refused) = (String::new(), String::new());
    let mut all_counted = true;
    for it in &loaded.counted {
        for (function, counts) in it.module.functions.iter().zip(&it.functions) {
            if is_meant(it, &function.name) {
                let name = shown_name(&function.name, args);
                all_counted &= is_counted(counts);
                counted.push_str(&explanation(&mut files, it, function, counts, &name));
            }
        }
        let refusals = it.module.refusals.iter();
        for refusal in refusals.filter(|refusal| is_meant(it, &refusal.subject)) {
            let name = shown_name(&refusal.subject, args);
            refused.push_str(&refusal_text(it, refusal, &name));
        }
    }
    if counted.is_empty() && refused.is_empty() {
        bail!("{}", no_function_called(&loaded.counted, &args.function));
    }
    output::write(None, &format!("{counted}{refused}"))?;
    Ok(match refused.is_empty() && all_counted {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// The linker's names of functions, and of what was refused.
fn names_of(it: &Counted) -> impl Iterator<Item = &str> {
    let functions = it.module.functions.iter().map(|it| it.name.as_str());
    let refusals = it.module.refusals.iter();
    functions.chain(refusals.map(|it| it.subject.as_str()))
}

/// Is a function, or what was refused, called so: `NAME`, or `MODULE!NAME`?
fn is_meant(typed: &str, it: &Counted, name: &str) -> bool {
    let shown = demangle(name);
    let names = [name, &shown, without_parameters(&shown)];
    let is_called = |pattern: &str| {
        let pattern = Pattern::new(pattern);
        names.iter().any(|it| pattern.matches(it))
    };
    let is_here = |module: &str| Pattern::new(module).matches_module(&it.module.path);
    let within = split_module(typed);
    is_called(typed) || within.is_some_and(|(module, name)| is_here(module) && is_called(name))
}

/// The same for machines: functions with blocks and edges, and what was refused.
fn as_json(
    loaded: &Loaded,
    is_meant: &dyn Fn(&Counted, &str) -> bool,
    args: &Explain,
) -> anyhow::Result<ExitCode> {
    let (mut functions, mut refused) = (Vec::new(), Vec::new());
    let mut all_counted = true;
    for it in &loaded.counted {
        for (function, counts) in it.module.functions.iter().zip(&it.functions) {
            if is_meant(it, &function.name) {
                all_counted &= is_counted(counts);
                functions.push(function_as_json(it, function, counts, args));
            }
        }
        let refusals = it.module.refusals.iter();
        for refusal in refusals.filter(|refusal| is_meant(it, &refusal.subject)) {
            refused.push(json!({
                "module": it.module.path,
                "subject": plain_name(&refusal.subject, args),
                "file": refusal.file,
                "line": refusal.line,
                "reason": refusal.reason,
            }));
        }
    }
    if functions.is_empty() && refused.is_empty() {
        bail!("{}", no_function_called(&loaded.counted, &args.function));
    }
    let is_well = refused.is_empty() && all_counted;
    let all = json!({ "version": 1, "functions": functions, "refused": refused });
    output::write_exact(None, &format!("{all:#}\n"))?;
    Ok(ExitCode::from(u8::from(!is_well)))
}

fn function_as_json(
    it: &Counted,
    function: &Function,
    counts: &FunctionCounts,
    args: &Explain,
) -> Value {
    let source = function.source;
    let file = source.and_then(|(file, _)| it.module.files.get(file.index()));
    let blocks = headcount_report::blocks(function, counts).map(|it| {
        json!({
            "address": it.block.address.to_string(),
            "instructions": it.block.instructions,
            "count": it.count().value(),
        })
    });
    let edges = function.edges.iter().zip(headcount_report::edges(counts));
    let edges = edges.map(|(edge, count)| {
        json!({
            "from": edge.from,
            "to": edge.to,
            "kind": edge.kind.name(),
            "count": count.value(),
        })
    });
    json!({
        "module": it.module.path,
        "function": plain_name(&function.name, args),
        "linkage_name": function.name,
        "file": file,
        "line": source.map(|(_, line)| line),
        "counted": is_counted(counts),
        "counters": function.counters,
        "blocks": blocks.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
    })
}

fn plain_name(name: &str, args: &Explain) -> String {
    match args.names.no_demangle {
        true => name.to_owned(),
        false => demangle(name).into_owned(),
    }
}

fn shown_name(name: &str, args: &Explain) -> String {
    visible(&plain_name(name, args)).into_owned()
}

fn refusal_text(it: &Counted, refusal: &Refusal, name: &str) -> String {
    let place = match (refusal.file.as_str(), refusal.line) {
        ("", _) => String::new(),
        (file, 0) => format!(" ({})", visible(file)),
        (file, line) => format!(" ({}:{line})", visible(file)),
    };
    format!(
        "{name}{place} in {}\n  is not counted: {}\n\n",
        visible(&it.module.path),
        visible(&refusal.reason)
    )
}

fn explanation(
    files: &mut Files,
    it: &Counted,
    function: &Function,
    counts: &FunctionCounts,
    name: &str,
) -> String {
    let file = function
        .source
        .and_then(|(file, line)| Some((it.module.files.get(file.index())?, line)));
    let place = file.map_or(String::new(), |(file, line)| {
        format!(" ({}:{line})", visible(file))
    });
    let mut out = format!("{name}{place} in {}\n", visible(&it.module.path));
    out.push_str(&summary(files, it, function, counts));
    if !is_counted(counts) {
        out.push('\n');
        return out;
    }
    out.push_str("\n  block     address  instructions                 count\n");
    for (number, it) in headcount_report::blocks(function, counts).enumerate() {
        let block = it.block;
        out.push_str(&format!(
            "  {number:>5}  {:>10}  {:>12}  {:>20}{}\n",
            block.address.to_string(),
            block.instructions,
            it.count(),
            if block.address == function.address {
                "  entry"
            } else {
                ""
            }
        ));
    }
    out.push_str("\n   from     to  kind                     count\n");
    let end = |end: Option<u32>| end.map_or("out".to_owned(), |block| block.to_string());
    for (edge, count) in function.edges.iter().zip(headcount_report::edges(counts)) {
        out.push_str(&format!(
            "  {:>5}  {:>5}  {:<7}  {count:>20}\n",
            end(edge.from),
            end(edge.to),
            edge.kind.name()
        ));
    }
    out.push('\n');
    out
}

/// How few counters are enough, or that not all was to be counted.
fn summary(
    files: &mut Files,
    it: &Counted,
    function: &Function,
    counts: &FunctionCounts,
) -> String {
    if !is_counted(counts) {
        return "  was not counted: it was not selected, or nothing that was counted leads there.\n".into();
    }
    if counts.blocks.iter().any(Option::is_none) {
        return "  was counted in part: a `-` was not selected.\n".into();
    }
    let is_copied = function.counters == 0 && counts.edges.iter().any(Option::is_some);
    if is_copied && let Some(copied) = Copied::of(files, &it.module, function) {
        return copied.to_string();
    }
    if !counts.edges.is_empty() && counts.edges.iter().all(Option::is_none) {
        return "  is counted: a breakpoint on every block; edges are not counted.\n".into();
    }
    let (blocks, edges) = (function.blocks.len() as u64, function.edges.len() as u64);
    let counters = u64::from(function.counters);
    let number = |n: u64, word: &str| match n {
        1 => format!("1 {word}"),
        n => format!("{} {word}s", thousands(n)),
    };
    let mut out = format!(
        "  is counted: {}, {}, {}.\n",
        number(blocks, "block"),
        number(edges, "edge"),
        number(counters, "counter"),
    );
    match (blocks + edges).saturating_sub(counters) {
        0 => (),
        rest => out.push_str(&format!(
            "  The other {} follow: what flows into a block flows out of it.\n",
            number(rest, "count")
        )),
    }
    out
}
