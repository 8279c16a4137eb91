//! What the copies of a module count besides, in the event counter of their thread.

use std::rc::Rc;

use headcount_flow::{EventCounter, Weights};
use headcount_model::{EventPlan, KeyedProbes, LinkAddr, Plan};
use headcount_patch::{Adding, Events, Sketch};

use crate::countdown::MOST_LAG;

/// Which events, and what for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventUse {
    /// None.
    #[default]
    None,
    /// Instructions, to stop at the N-th.
    CountDown,
    /// Entries at these addresses, to stop at the N-th.
    CountDownEntries(Vec<LinkAddr>),
    /// Instructions, to log how many there were at each call and return.
    Log,
    /// How often places were reached, by values.
    Keyed(Rc<KeyedProbes>),
}

impl EventUse {
    /// The name under which copies of a module with this fingerprint are kept for other runs, if they
    /// are.
    pub fn fingerprint(&self, fingerprint: &str) -> Option<String> {
        match self {
            Self::None => Some(fingerprint.to_owned()),
            Self::CountDown => Some(format!("{fingerprint}-instructions")),
            Self::CountDownEntries(entries) => entries.is_empty().then(|| fingerprint.to_owned()),
            Self::Log => Some(format!("{fingerprint}-calls")),
            Self::Keyed(probes) if probes.is_empty() => Some(fingerprint.to_owned()),
            // Most are the user's choice.
            Self::Keyed(probes) => {
                let kept_as = probes.kept_as.as_ref();
                kept_as.map(|it| format!("{fingerprint}-{it}"))
            }
        }
    }

    /// How probes add.
    pub fn adding(&self) -> Adding {
        match self {
            Self::None => Adding::One,
            Self::CountDownEntries(entries) if entries.is_empty() => Adding::One,
            Self::Keyed(probes) if probes.is_empty() => Adding::One,
            Self::CountDown | Self::CountDownEntries(_) | Self::Log | Self::Keyed(_) => Adding::Sum,
        }
    }

    /// Probes that choose their counter by a value.
    pub fn keyed(&self) -> &KeyedProbes {
        static NONE: KeyedProbes = KeyedProbes::NONE;
        match self {
            Self::Keyed(probes) => probes,
            _ => &NONE,
        }
    }

    /// The events of a routine.
    pub fn events_of(&self, sketch: &Sketch, plan: &Plan) -> Result<Events, String> {
        match self {
            Self::None | Self::Keyed(_) => Ok(Events::None),
            Self::CountDownEntries(entries) => Ok(Events::CountDownEntries(entries.clone())),
            Self::CountDown => {
                let plan = instructions(sketch, plan, MOST_LAG)?;
                plan.map(Events::CountDown).ok_or_else(|| {
                    "it is too large to stop in it at a number of instructions".into()
                })
            }
            Self::Log => {
                let plan = instructions(sketch, plan, i64::MAX)?;
                plan.map(Events::Log)
                    .ok_or_else(|| "it is too large to count its instructions in one number".into())
            }
        }
    }
}

/// How instructions are counted in one number that is never behind by more than so many, or before.
fn instructions(sketch: &Sketch, plan: &Plan, most: i64) -> Result<Option<EventPlan>, String> {
    let blocks = sketch.routine().blocks.iter();
    let weights = Weights {
        blocks: blocks.map(|it| it.lengths.len() as u32).collect(),
        edges: Vec::new(),
    };
    let counter = EventCounter::new(sketch.graph(), plan, &weights);
    let counter = counter.map_err(|it| it.to_string())?;
    let lag = counter.lag();
    let is_small = -lag.start() <= most && *lag.end() <= most;
    Ok(counter.plan().filter(|_| is_small))
}
