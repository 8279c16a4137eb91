//! Numbers and texts as the page's script reads them (`page/data.js`).

use crate::count::Count;
use crate::escape::{commands_a_terminal, visible};
use crate::events::{AT_LEAST, Amount};
use crate::lines::LineCount;
use serde_json::Value;

/// The largest whole number that a script knows exactly.
const EXACT: u64 = (1 << 53) - 1;

/// A count: a number; in digits, where a script would round it; `>` and digits for "at least";
/// `null` for what was not counted.
pub fn count(count: Count) -> Value {
    match count {
        Count::Exact(value) => number(value),
        Count::AtLeast(value) => Value::from(format!(">{value}")),
        Count::Unknown => Value::Null,
    }
}

/// A number of events: as a count; or `<` and digits for "at most".
pub fn amount(amount: Amount) -> Value {
    match (amount.value(), amount.bound()) {
        (None, _) => Value::Null,
        (Some(value), None) => number(value),
        (Some(value), Some(AT_LEAST)) => Value::from(format!(">{value}")),
        (Some(value), Some(_)) => Value::from(format!("<{value}")),
    }
}

/// The count of a line: a `?` where it was counted, but its code does not tell.
pub fn of_line(line: &LineCount) -> Value {
    match line.count {
        Count::Unknown if line.counted => Value::from("?"),
        known => count(known),
    }
}

/// A number that may be large.
pub fn number(value: u64) -> Value {
    match value <= EXACT {
        true => Value::from(value),
        false => Value::from(value.to_string()),
    }
}

/// A name, with nothing in it that would turn the direction of reading or hide.
pub fn name(text: &str) -> Value {
    Value::from(visible(text))
}

/// Source text: tabs are the reader's.
pub fn source(line: &str) -> String {
    match line.contains(|c| c != '\t' && commands_a_terminal(c)) {
        false => line.to_owned(),
        true => line.split('\t').map(visible).collect::<Vec<_>>().join("\t"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_count_is_rounded() {
        assert_eq!(count(Count::Exact(EXACT)), json!(9_007_199_254_740_991_u64));
        assert_eq!(count(Count::Exact(EXACT + 1)), json!("9007199254740992"));
        assert_eq!(count(Count::AtLeast(7)), json!(">7"));
        assert_eq!(count(Count::Unknown), Value::Null);
        assert_eq!(amount(Count::AtLeast(7).into()), json!(">7"));
        assert_eq!(amount(Amount::Unknown), Value::Null);
        let masked = Amount::Between {
            least: 3,
            most: Some(9),
        };
        assert_eq!(amount(masked), json!("<9"));
    }

    #[test]
    fn text_that_hides_is_written_out_and_tabs_stay() {
        assert_eq!(
            source("\tif (a\u{202e}b)\u{7}\t;"),
            "\tif (a\\u{202e}b)\\x07\t;"
        );
    }
}
