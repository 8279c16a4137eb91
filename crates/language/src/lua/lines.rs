//! The line of each instruction of Lua 5.4.

/// What a step says if the line is told elsewhere.
const WHOLE: i8 = i8::MIN;

/// The line of each instruction, by how far it is from that of the one before. Some lines are told as they are: pairs
/// of an instruction and a line. If a program was made without lines, there are none.
pub(super) fn lines(steps: &[u8], whole: &[u32], first_line: u32) -> Vec<u32> {
    let mut whole = whole.chunks_exact(2).map(|it| it[1]);
    let mut line = first_line;
    let line_of = |step: &u8| {
        line = match step.cast_signed() {
            WHOLE => whole.next().unwrap_or(line),
            step => line.wrapping_add_signed(step.into()),
        };
        line
    };
    steps.iter().map(line_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_on_from_lines_that_are_told() {
        let steps = [1, 0, 0x80, 0xff, 2];
        assert_eq!(lines(&steps, &[2, 500], 7), [8, 8, 500, 499, 501]);
        assert_eq!(lines(&[], &[], 7), []);
        assert_eq!(lines(&[0x80], &[], 7), [7]);
    }
}
