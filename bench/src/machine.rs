//! On what machine, and with which tools, were these times taken?

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::variant::Tools;

pub fn facts(tools: &Tools) -> Vec<(String, String)> {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let fact = |name: &str, text: String| (name.to_owned(), text);
    vec![
        fact("processor", format!("{} x {}", processors, processor())),
        fact("kernel", first_line(Path::new("uname"), "-sr")),
        fact("gcc", first_line(Path::new(tools.gcc), "--version")),
        fact("clang", first_line(Path::new(tools.clang), "--version")),
        fact("rustc", first_line(Path::new("rustc"), "--version")),
        fact("valgrind", first_line(Path::new("valgrind"), "--version")),
        fact("headcount", first_line(tools.headcount, "--version")),
    ]
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    model
        .map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']))
        .to_owned()
}

fn first_line(program: &Path, option: &str) -> String {
    let said = Command::new(program).arg(option).output();
    let text = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok()
        .and_then(|text| text.lines().next().map(str::to_owned))
        .unwrap_or("absent".to_owned())
}
