//! How many bytes of preprocessed C are counted in a second, and in how much memory?
//!
//! `cargo run --release -p headcount-csource --example speed -- FILE.i...`

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use headcount_csource::{Dialect, Options, Probe, Source, every_block, insert};

struct Plain;

impl Dialect for Plain {
    fn statement(&self, probe: Probe, out: &mut String) {
        let _ = write!(out, "c[{}]++;", probe.counter);
    }
    fn expression(&self, probe: Probe, out: &mut String) {
        let _ = write!(out, "c[{}]++", probe.counter);
    }
    fn declaration(&self, probe: Probe, out: &mut String) {
        self.statement(probe, out);
    }
    fn fall_through(&self) -> &str {
        ""
    }
    fn enter(&self) -> String {
        String::new()
    }
    fn enter_declaration(&self) -> String {
        self.enter()
    }
    fn around_fork(&self, _: &str) -> Option<(String, String)> {
        None
    }
}

fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read(&path).expect("the file can be read");
        // The best of a few: whatever else the machine does only ever makes it slower.
        let passes: Vec<Pass> = (0..9).map(|_| pass(&text)).collect();
        let best = |time: fn(&Pass) -> Duration| passes.iter().map(time).min().unwrap_or_default();
        let rate = |time: Duration| text.len() as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{path}: {} bytes, {} counted; read {:.1} MB/s, all {:.1} MB/s",
            text.len(),
            passes[0].counted,
            rate(best(|it| it.read)),
            rate(best(|it| it.all)),
        );
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!(
        "{}, in and out included",
        peak.unwrap_or("no peak is known")
    );
}

struct Pass {
    counted: usize,
    read: Duration,
    all: Duration,
}

fn pass(text: &[u8]) -> Pass {
    let start = Instant::now();
    let source = Source::parse(text, &Options::default()).expect("it is C");
    let read = start.elapsed();
    let plans: Vec<_> = source.units.iter().map(every_block).collect();
    let counted = insert(&source, &plans, &Plain, None).len();
    let all = start.elapsed();
    Pass { counted, read, all }
}
