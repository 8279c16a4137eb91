//! Numbers for people.

/// `1234567` as `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The same of a number that may be negative: `-1,234,567`.
pub fn signed_thousands(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", thousands(number.unsigned_abs()))
}

/// `1 line`, `2,000 lines`.
pub fn plural(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        many => format!("{} {one}s", thousands(many)),
    }
}

/// How much of `whole` a `part` is: `12.3%`. Computed in whole numbers, so it is the same
/// everywhere.
pub fn share(part: u64, whole: u64) -> String {
    let Some(whole) = std::num::NonZeroU128::new(whole.into()) else {
        return "-".into();
    };
    let permille = (u128::from(part) * 1000 + whole.get() / 2) / whole;
    format!("{}.{}%", permille / 10, permille % 10)
}

/// A time with three digits and the unit that fits: `1.23 s`, `45.6 ms`, `789 ns`.
pub fn time_text(nanoseconds: u64) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let fits = |it: &&(&str, u64)| nanoseconds >= it.1;
    let Some((unit, size)) = units.iter().find(fits) else {
        return format!("{nanoseconds} ns");
    };
    let whole = nanoseconds as f64 / *size as f64;
    let digits = match whole {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{whole:.digits$} {unit}")
}

pub const MILLION: u64 = 1_000_000;

/// A number of digits alone.
pub fn digits(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// `1.25` as 1,250,000.
pub fn millionths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let part = (1..=6)
        .contains(&part.len())
        .then(|| format!("{part:0<6}"))?;
    let whole = digits(whole)?.checked_mul(MILLION)?;
    whole.checked_add(digits(&part)?)
}

/// Millionths of a percent: `1.25%`.
pub fn percent(millionths: u64, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let rest = format!("{:06}", millionths % MILLION);
    let rest = rest.trim_end_matches('0');
    let point = if rest.is_empty() { "" } else { "." };
    write!(f, "{}{point}{rest}%", millionths / MILLION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let shown = [0, 7, 999, 1000, 1_048_576, u64::MAX].map(thousands);
        assert_eq!(
            shown,
            [
                "0",
                "7",
                "999",
                "1,000",
                "1,048,576",
                "18,446,744,073,709,551,615"
            ]
        );
    }

    #[test]
    fn negative_numbers_keep_their_sign() {
        let shown = [0, -7, -999, -1000, 1_048_576, i64::MIN].map(signed_thousands);
        assert_eq!(
            shown,
            [
                "0",
                "-7",
                "-999",
                "-1,000",
                "1,048,576",
                "-9,223,372,036,854,775,808"
            ]
        );
    }

    #[test]
    fn shares_are_rounded_and_never_divide_by_nothing() {
        assert_eq!(share(1, 3), "33.3%");
        assert_eq!(share(2, 3), "66.7%");
        assert_eq!(share(u64::MAX, u64::MAX), "100.0%");
        assert_eq!(share(0, 0), "-");
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let shown = [0, 999, 1_000, 45_600, 2_310_000_000, 100_000_000_000].map(time_text);
        assert_eq!(
            shown,
            ["0 ns", "999 ns", "1.00 us", "45.6 us", "2.31 s", "100 s"]
        );
    }
}
