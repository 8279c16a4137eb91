//! Which ranges of code does the unwinder know?

use std::ops::Range;

use gimli::{
    BaseAddresses, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian, Pointer, UnwindSection,
};

use crate::image::Image;

/// A range of code that the unwinder knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub range: Range<u64>,
    /// Where the table of its landing pads is.
    pub lsda: Option<u64>,
}

/// All of them, by address.
pub fn frames(image: &Image<'_>, debug_frame: Option<&[u8]>) -> Vec<Frame> {
    let mut found = Vec::new();
    let start_of = |name: &str| {
        let piece = image.data().find(|piece| piece.name == name);
        piece.map(|piece| (piece.start, piece.bytes))
    };
    let mut bases = BaseAddresses::default();
    if let Some((start, _)) = start_of(".eh_frame_hdr") {
        bases = bases.set_eh_frame_hdr(start);
    }
    if let Some(text) = image.code().find(|piece| piece.name == ".text") {
        bases = bases.set_text(text.start);
    }
    if let Some((start, bytes)) = start_of(".eh_frame") {
        let section = EhFrame::new(bytes, LittleEndian);
        collect(
            image,
            &section,
            &bases.clone().set_eh_frame(start),
            &mut found,
        );
    }
    if let Some(bytes) = debug_frame {
        let section = DebugFrame::new(bytes, LittleEndian);
        collect(image, &section, &bases, &mut found);
    }
    found.sort_by_key(|frame| {
        (
            frame.range.start,
            std::cmp::Reverse(frame.range.end),
            frame.lsda.is_none(),
        )
    });
    found.dedup_by(|later, earlier| later.range.start == earlier.range.start);
    found
}

fn collect<'a, S>(image: &Image<'_>, section: &S, bases: &BaseAddresses, found: &mut Vec<Frame>)
where
    S: UnwindSection<EndianSlice<'a, LittleEndian>>,
{
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let Ok(frame) =
            partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset))
        else {
            continue;
        };
        let first = frame.initial_address();
        // Unwinders look up the byte before a return address. A signal's handler returns to the
        // very start of its trampoline, so that begins one byte early in the table.
        let early = u64::from(frame.is_signal_trampoline());
        let (Some(start), Some(end)) = (first.checked_add(early), first.checked_add(frame.len()))
        else {
            continue;
        };
        if start < end && image.is_code(start) {
            let lsda = frame.lsda().and_then(|pointer| match pointer {
                Pointer::Direct(at) => Some(at),
                Pointer::Indirect(at) => image.address(at).map(|address| address.0),
            });
            found.push(Frame {
                range: start..end,
                lsda,
            });
        }
    }
}
