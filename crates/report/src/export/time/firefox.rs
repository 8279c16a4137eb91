//! Samples for the Firefox Profiler, in its processed format.
//!
//! Each stack of a thread is one sample there with the weight of all: when each was taken is not kept.

use super::super::Exported;
use super::{CUT, TimeMaterial, thread_name};
use crate::Error;
use fxprof_processed_profile::{
    CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, ReferenceTimestamp,
    SamplingInterval, Timestamp,
};
use std::time::Duration;

pub fn write(material: &TimeMaterial<'_>) -> Result<Exported, Error> {
    let interval = material.samples.first().map_or(1_000_000, |it| it.interval);
    let begin = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
    let mut profile = Profile::new(
        &material.command.join(" "),
        begin,
        SamplingInterval::from_nanos(interval),
    );
    profile.set_symbolicated(true);
    for samples in material.samples {
        let mut process = None;
        for thread in &samples.threads {
            let start = Timestamp::from_nanos_since_reference(0);
            let is_new = process.is_none_or(|(pid, _)| pid != thread.pid);
            if is_new {
                let new = profile.add_process(&thread_name(thread), thread.pid, start);
                process = Some((thread.pid, new));
            }
            let Some((_, process)) = process else {
                continue;
            };
            let handle = profile.add_thread(process, thread.tid, start, thread.pid == thread.tid);
            profile.set_thread_name(handle, &thread_name(thread));
            let mut now = 0_u64;
            for (stack, count) in &thread.samples {
                let (frames, is_cut) = material.stack(samples, *stack);
                let cut = is_cut.then(|| CUT.to_owned());
                let names = cut
                    .into_iter()
                    .chain(frames.into_iter().rev().map(|it| it.name));
                let frames: Vec<FrameInfo> = names
                    .map(|name| FrameInfo {
                        frame: Frame::Label(profile.intern_string(&name)),
                        category_pair: CategoryHandle::OTHER.into(),
                        flags: FrameFlags::empty(),
                    })
                    .collect();
                let stack = profile.intern_stack_frames(handle, frames.into_iter());
                let time = count.saturating_mul(samples.interval);
                let at = Timestamp::from_nanos_since_reference(now);
                let weight = i32::try_from(*count).map_err(|_| Error::TooLarge)?;
                profile.add_sample(handle, at, stack, CpuDelta::from_nanos(time), weight);
                now = now.saturating_add(time);
            }
        }
    }
    let bytes = serde_json::to_vec(&profile).map_err(|_| Error::TooLarge)?;
    Ok(Exported {
        bytes,
        notes: Vec::new(),
    })
}
