//! How long does an outline take? `cargo run --release -p headcount-binary --example outline_speed
//! -- FILE...` prints it, for the outline alone, for all routines and for all return points.

use std::sync::Arc;
use std::time::Instant;

use headcount_binary::Outline;
use headcount_model::LinkAddr;

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = Arc::new(std::fs::read(&path).unwrap());
        let mut best = u128::MAX;
        for _ in 0..10 {
            let begin = Instant::now();
            let outline = Outline::read(bytes.clone(), &mut |_| None).unwrap();
            best = best.min(begin.elapsed().as_micros());
            drop(outline);
        }
        let mut outline = Outline::read(bytes.clone(), &mut |_| None).unwrap();
        let starts = outline.starts().to_vec();
        let begin = Instant::now();
        let mut refused = 0;
        let mut unknown = 0;
        let mut blocks = 0;
        let mut slowest = (0, 0);
        for at in &starts {
            let begin = Instant::now();
            match outline.routine(LinkAddr(*at), &[]) {
                Ok(found) => {
                    let routine = found.routine.unwrap_or_default();
                    blocks += routine.blocks.len();
                    unknown += usize::from(routine.has_unknown_jumps);
                }
                Err(_) => refused += 1,
            }
            slowest = slowest.max((begin.elapsed().as_micros(), *at));
        }
        let all = begin.elapsed().as_millis();
        let begin = Instant::now();
        let returns = outline.explore().return_points.len();
        println!(
            "{path} ({}): outline {best} us, {} parts; all routines {all} ms ({blocks} blocks, \
             {refused} refused, {unknown} with unknown jumps, slowest {} us at {:#x}); {returns} \
             return points {} ms",
            outline.key(),
            starts.len(),
            slowest.0,
            slowest.1,
            begin.elapsed().as_millis()
        );
    }
}
