//! From the text of a routine to the copy that counts it: everything that does not depend on the
//! process, so that it can be kept for other processes and other runs.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use headcount_binary::{Found, Outline};
use headcount_model::LinkAddr;
use headcount_model::packed::{Packed, Packer};
use headcount_patch::{CounterNumber, Sketch, Template, template};

use crate::event_use::EventUse;
use crate::journal::RoutineFlow;

/// A routine about to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Where it leads into the midst of other parts.
    pub leads_to: Vec<LinkAddr>,
    /// Code in no known part that it leads to.
    pub unknown_code: Vec<LinkAddr>,
    /// Is all of this the same in every run?
    pub is_settled: bool,
    /// Its copy, or why there cannot be one.
    pub made: Result<Made, String>,
}

/// A routine that can be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Link addresses of its bytes.
    pub text: Range<u64>,
    /// How many bytes behind it are filler.
    pub filler: u32,
    /// Its copy.
    pub template: Template,
    /// What is counted.
    pub flow: RoutineFlow,
    /// Routines that will run as soon as it does.
    pub sure: Vec<LinkAddr>,
    /// Does it have jumps that may lead to places in it that nobody knows of?
    pub has_indirect_jumps: bool,
    /// Routines whose flags matter to it.
    pub hands_flags_to: Vec<LinkAddr>,
}

/// Which routine is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Asked {
    /// Where it begins.
    pub start: u64,
    /// Where else it is entered; by address.
    pub arrivals: Vec<LinkAddr>,
    /// Does somebody ask for the flags that it leaves?
    pub keeps_flags: bool,
    /// Where jumps of other routines are among its bytes; by address.
    pub islands: Vec<LinkAddr>,
}

impl Prepared {
    /// Looks at a routine.
    pub fn of(outline: &mut Outline, asked: &Asked, events: &EventUse) -> Result<Self, String> {
        let Found {
            routine,
            leads_to,
            unknown_code,
            is_settled,
        } = outline.routine(LinkAddr(asked.start), &asked.arrivals)?;
        let made = routine.and_then(|mut routine| {
            let islands = asked.islands.iter();
            routine.islands = islands.map(|it| (it.0 - asked.start) as u32).collect();
            routine.keeps_flags = asked.keeps_flags;
            Made::of(routine, events)
        });
        Ok(Self {
            leads_to,
            unknown_code,
            is_settled,
            made,
        })
    }

    /// Writes down what is the same in every run; `None` if it is not, or if there is no copy.
    pub fn pack(&self) -> Option<Vec<u8>> {
        let made = self.made.as_ref().ok().filter(|_| self.is_settled)?;
        let mut to = Packer::default();
        addresses(&mut to, &self.leads_to);
        to.number(made.text.end.checked_sub(made.text.start)? as usize);
        to.number(made.filler as usize);
        to.bytes(&made.flow.0);
        addresses(&mut to, &made.sure);
        to.0.push(made.has_indirect_jumps.into());
        addresses(&mut to, &made.hands_flags_to);
        made.template.pack(&mut to);
        Some(to.0)
    }

    /// What [`Prepared::pack`] wrote.
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut from = Packed(bytes);
        let leads_to = take_addresses(&mut from)?;
        let length = u64::from(from.number()?);
        let filler = from.number()?;
        let flow = RoutineFlow(from.bytes()?.to_vec());
        let sure = take_addresses(&mut from)?;
        let has_indirect_jumps = from.u8()? == 1;
        let hands_flags_to = take_addresses(&mut from)?;
        let template = Template::unpack(&mut from)?;
        let start = template.start.0;
        let text = start..start.checked_add(length)?;
        let is_whole = from.0.is_empty() && u64::from(template.length) == length;
        is_whole.then_some(Self {
            leads_to,
            unknown_code: Vec::new(),
            is_settled: true,
            made: Ok(Made {
                text,
                filler,
                template,
                flow,
                sure,
                has_indirect_jumps,
                hands_flags_to,
            }),
        })
    }
}

impl Made {
    fn of(routine: headcount_model::Routine, events: &EventUse) -> Result<Self, String> {
        let start = routine.start.0;
        let text = start..start + routine.bytes.len() as u64;
        let filler = routine.filler;
        let sketch = Sketch::of(routine, events.adding()).map_err(|it| it.to_string())?;
        let frequencies = headcount_flow::frequencies(sketch.natural_graph(), &[]);
        let plan = headcount_flow::place_counters(sketch.graph(), &frequencies, sketch.costs());
        let plan = plan.map_err(|it| it.to_string())?;
        let keyed = events.keyed();
        let events = events.events_of(&sketch, &plan)?;
        let template = template(&sketch, &plan, events, keyed).map_err(|it| it.to_string())?;
        Ok(Self {
            text,
            filler,
            template,
            flow: RoutineFlow::pack(
                &sketch.routine().blocks,
                &sketch.routine().doubtful,
                sketch.graph(),
                &plan,
            ),
            sure: sketch.sure_to_run(),
            has_indirect_jumps: sketch.has_indirect_jumps(),
            hands_flags_to: sketch.hands_flags_to().to_vec(),
        })
    }

    /// Is there still nothing but filler behind it? Routines that became known since may lie there.
    fn still_fits(&self, outline: &mut Outline) -> bool {
        let starts = outline.starts();
        let next = starts.partition_point(|it| *it < self.text.end);
        let end = self.text.end + u64::from(self.filler);
        let is_free = starts.get(next).is_none_or(|it| *it >= end);
        is_free && outline.close(&self.text)
    }
}

/// Routines of one module that were prepared before, by this run or another one.
#[derive(Debug, Default)]
pub struct Kept {
    /// Names everything that they depend on; none if nothing is to be kept.
    pub fingerprint: Option<Rc<str>>,
    /// What their copies count besides.
    pub events: EventUse,
    /// What other runs left, and then what this one added.
    bytes: Vec<u8>,
    places: HashMap<Asked, Range<usize>>,
    /// Where this run's own begin.
    old: usize,
    /// Those that this run counts, by start.
    counted: HashMap<u64, Vec<(RoutineFlow, Numbers)>>,
}

/// What a routine is known by in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Its number there.
    pub routine: usize,
    /// The number of its first counter.
    pub first_counter: CounterNumber,
}

impl Kept {
    /// What other runs left; as far as it makes sense.
    pub fn new(bytes: Vec<u8>) -> Self {
        let mut kept = Self::default();
        let mut from = Packed(&bytes);
        loop {
            let before = from;
            let Some((asked, length)) = take_head(&mut from) else {
                from = before;
                break;
            };
            let end = bytes.len() - from.0.len();
            kept.places.insert(asked, end - length..end);
        }
        kept.old = bytes.len() - from.0.len();
        kept.bytes = bytes;
        kept.bytes.truncate(kept.old);
        kept
    }

    /// Was this routine prepared before?
    pub fn has(&self, asked: &Asked) -> bool {
        self.places.contains_key(asked)
    }

    /// A routine that was prepared before.
    pub fn get(&self, asked: &Asked, outline: &mut Outline) -> Option<Prepared> {
        let place = self.places.get(asked)?;
        let prepared = Prepared::unpack(self.bytes.get(place.clone())?)?;
        let made = prepared.made.as_ref().ok()?;
        (made.text.start == asked.start && made.still_fits(outline)).then_some(prepared)
    }

    /// Keeps a routine.
    pub fn put(&mut self, asked: &Asked, prepared: &Prepared) {
        let Some(body) = prepared.pack() else {
            return;
        };
        let mut to = Packer(std::mem::take(&mut self.bytes));
        to.0.extend(asked.start.to_le_bytes());
        addresses(&mut to, &asked.arrivals);
        to.0.push(asked.keeps_flags.into());
        addresses(&mut to, &asked.islands);
        to.bytes(&body);
        self.bytes = to.0;
        let end = self.bytes.len();
        self.places.insert(asked.clone(), end - body.len()..end);
    }

    /// The numbers of a routine that has a copy elsewhere: both count the same.
    pub fn numbers(&self, start: u64, flow: &RoutineFlow) -> Option<Numbers> {
        let mut known = self.counted.get(&start)?.iter();
        known.find(|it| it.0 == *flow).map(|it| it.1)
    }

    /// Remembers them.
    pub fn number(&mut self, start: u64, flow: RoutineFlow, numbers: Numbers) {
        let known = self.counted.entry(start).or_default();
        known.push((flow, numbers));
    }

    /// Everything, if this run added to it.
    pub fn news(&self) -> Option<&[u8]> {
        (self.bytes.len() > self.old).then_some(&self.bytes)
    }
}

fn take_head(from: &mut Packed<'_>) -> Option<(Asked, usize)> {
    let asked = Asked {
        start: from.u64()?,
        arrivals: take_addresses(from)?,
        keeps_flags: from.u8()? == 1,
        islands: take_addresses(from)?,
    };
    Some((asked, from.bytes()?.len()))
}

fn addresses(to: &mut Packer, addresses: &[LinkAddr]) {
    to.many(addresses, |to, it| to.0.extend(it.0.to_le_bytes()));
}

fn take_addresses(from: &mut Packed<'_>) -> Option<Vec<LinkAddr>> {
    from.many(|it| it.u64().map(LinkAddr))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn outline(path: &str) -> Outline {
        let bytes = std::fs::read(path).expect("it can be read");
        Outline::read(Arc::new(bytes), &mut |_| None).expect("it is a program")
    }

    /// Two files that we did not make: this test itself, and the C library.
    fn files() -> Vec<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("we are running");
        let paths = maps.lines().filter_map(|it| it.split_whitespace().nth(5));
        let library = paths.into_iter().find(|it| it.contains("libc.so"));
        let own = std::env::current_exe().expect("we are a file");
        let own = own.to_string_lossy().into_owned();
        library
            .map(str::to_owned)
            .into_iter()
            .chain([own])
            .collect()
    }

    /// The first routines of a file, which is enough of a large one.
    fn starts(outline: &Outline) -> Vec<u64> {
        outline.starts().iter().take(4000).copied().collect()
    }

    fn at(start: u64) -> Asked {
        Asked {
            start,
            ..Asked::default()
        }
    }

    #[test]
    fn what_is_settled_is_the_same_in_whatever_order_routines_run() {
        for path in files() {
            let (mut forwards, mut backwards) = (outline(&path), outline(&path));
            let starts = starts(&forwards);
            let mut found = Vec::new();
            for start in &starts {
                found.push(Prepared::of(&mut forwards, &at(*start), &EventUse::None));
            }
            let mut settled = 0;
            for (start, found) in starts.iter().zip(found).rev() {
                let again = Prepared::of(&mut backwards, &at(*start), &EventUse::None);
                let (Ok(found), Ok(again)) = (found, again) else {
                    continue;
                };
                if found.is_settled && again.is_settled {
                    assert_eq!(found, again, "{path}: {start:#x}");
                    settled += 1;
                }
            }
            assert!(
                settled * 2 > starts.len(),
                "{path}: only {settled} are kept"
            );
        }
    }

    #[test]
    fn what_is_kept_comes_back_as_it_was() {
        for path in files() {
            let mut outline = outline(&path);
            let mut kept = Kept::default();
            let mut all = Vec::new();
            for (number, start) in starts(&outline).into_iter().step_by(7).enumerate() {
                let events = match number % 2 {
                    0 => EventUse::None,
                    _ => EventUse::CountDown,
                };
                if let Ok(prepared) = Prepared::of(&mut outline, &at(start), &events) {
                    kept.put(&at(start), &prepared);
                    all.push((start, prepared));
                }
            }
            let bytes = kept.news().expect("there are news").to_vec();
            let later = Kept::new(bytes);
            assert!(later.news().is_none());
            let mut came_back = 0;
            for (start, prepared) in all {
                if let Some(again) = later.get(&at(start), &mut outline) {
                    assert_eq!(again, prepared);
                    let arrivals = vec![LinkAddr(start + 1)];
                    let other = Asked {
                        arrivals,
                        ..at(start)
                    };
                    assert_eq!(later.get(&other, &mut outline), None);
                    came_back += 1;
                }
            }
            assert!(came_back > 100, "{path}: {came_back}");
        }
    }

    #[test]
    fn whatever_is_kept_is_read_or_refused() {
        let path = &files()[0];
        let mut outline = outline(path);
        let mut kept = Kept::default();
        let starts = starts(&outline);
        for start in starts.iter().step_by(97) {
            if let Ok(prepared) = Prepared::of(&mut outline, &at(*start), &EventUse::CountDown) {
                kept.put(&at(*start), &prepared);
            }
        }
        let whole = kept.news().expect("there are news").to_vec();
        let mut state = 1_u64;
        let mut dice = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for _ in 0..300 {
            let mut bytes = whole.clone();
            for _ in 0..1 + dice(8) {
                let at = dice(bytes.len());
                bytes[at] = dice(256) as u8;
            }
            bytes.truncate(bytes.len() - dice(bytes.len() / 2));
            let kept = Kept::new(bytes);
            for start in starts.iter().step_by(97) {
                let Some(found) = kept.get(&at(*start), &mut outline) else {
                    continue;
                };
                let made = found.made.expect("only what was made is kept");
                let _ = made.flow.unpack();
                if let Ok(copy) = made.template.copy_at(LinkAddr(start + (1 << 20)), 8, &[]) {
                    for offset in 0..copy.length.min(64) {
                        let _ = (copy.spot(offset), copy.resume(offset), copy.call(offset));
                        let _ = (copy.is_covered(offset), copy.island_of(offset));
                    }
                }
            }
        }
    }
}
