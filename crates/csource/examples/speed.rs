//! How many bytes of preprocessed C are counted in a second?
//!
//! `cargo run --release -p headcount-csource --example speed -- FILE.i...`

use std::time::Instant;

use headcount_csource::{Dialect, Options, Source, every_block, insert};

struct Plain;

impl Dialect for Plain {
    fn statement(&self, counter: usize) -> String {
        format!("c[{counter}]++;")
    }
    fn expression(&self, counter: usize) -> String {
        format!("c[{counter}]++")
    }
    fn fall_through(&self) -> &str {
        ""
    }
    fn enter(&self) -> String {
        String::new()
    }
    fn around_fork(&self, _: &str) -> Option<(String, String)> {
        None
    }
}

fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read(&path).expect("the file can be read");
        let start = Instant::now();
        let source = Source::parse(&text, &Options::default()).expect("it is C");
        let read = start.elapsed();
        let plans: Vec<_> = source.units.iter().map(every_block).collect();
        let counted = insert(&source, &plans, &Plain, None);
        let all = start.elapsed();
        let rate = |time: std::time::Duration| text.len() as f64 / 1e6 / time.as_secs_f64();
        println!(
            "{path}: {} bytes, {} counted; read {:.1} MB/s, all {:.1} MB/s",
            text.len(),
            counted.len(),
            rate(read),
            rate(all)
        );
    }
}
