//! How long does it take each time?

use super::Cost;

/// With fewer samples, a time for each visit says too little: with these, it may be off by a fifth.
const FEWEST: u64 = 25;

/// A time for each visit, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Nanoseconds.
    pub each: f64,
    /// The standard error of that.
    pub error: f64,
}

impl Estimate {
    /// The time for each of so many visits. None, if there are too few samples, or no visits.
    pub fn new(cost: Cost, visits: f64) -> Option<Self> {
        let is_enough = cost.samples >= FEWEST && visits > 0.0;
        let each = cost.nanoseconds as f64 / visits;
        is_enough.then(|| Self {
            each,
            // How many of many moments fall into a part of the time: their number varies by its root.
            error: each / (cost.samples as f64).sqrt(),
        })
    }
}

impl std::fmt::Display for Estimate {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
        let fits = |it: &&(&str, f64)| self.each >= it.1;
        let (unit, size) = units.iter().find(fits).unwrap_or(&("ns", 1.0));
        let (each, error) = (self.each / size, self.error / size);
        // No digit more than the error leaves certain.
        let digits = match error {
            1.0.. => 0,
            0.1.. => 1,
            _ => 2,
        };
        write!(out, "{each:.digits$} ± {error:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(samples: u64) -> Cost {
        Cost::of(samples, 1_000_000)
    }

    #[test]
    fn the_error_shrinks_with_the_samples() {
        let few = Estimate::new(cost(100), 1000.0).unwrap();
        let many = Estimate::new(cost(10_000), 100_000.0).unwrap();
        assert_eq!(few.to_string(), "100 ± 10 us");
        assert_eq!(many.to_string(), "100 ± 1 us");
    }

    #[test]
    fn nothing_is_said_where_samples_are_too_few() {
        assert_eq!(Estimate::new(cost(24), 10.0), None);
        assert_eq!(Estimate::new(cost(1000), 0.0), None);
    }

    #[test]
    fn the_unit_fits() {
        let shown = |nanoseconds: f64| {
            let each = Estimate {
                each: nanoseconds,
                error: nanoseconds / 40.0,
            };
            each.to_string()
        };
        assert_eq!(shown(0.4), "0.40 ± 0.01 ns");
        assert_eq!(shown(210.0), "210 ± 5 ns");
        assert_eq!(shown(3_000_000.0), "3.00 ± 0.07 ms");
    }
}
