//! What do the columns of a report say?

use anyhow::{Context, Result};

/// The numbers of a column. No name in the report may have a comma: `--no-demangle` sees to that.
pub fn column(csv: &str, name: &str) -> Result<Vec<u64>> {
    let mut lines = csv.lines();
    let head = lines.next().unwrap_or_default();
    let column = head.split(',').position(|it| it == name);
    let column = column.with_context(|| format!("no {name} in {head:?}"))?;
    let number = |line: &str| -> Result<u64> {
        let cell = line.split(',').nth(column);
        let cell = cell.with_context(|| line.to_owned())?;
        cell.parse().with_context(|| line.to_owned())
    };
    lines.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_found_by_its_name() {
        let csv = "function,calls,x\nf,3,1\ng,4,1\n";
        assert_eq!(column(csv, "calls").unwrap(), [3, 4]);
        assert!(column("function,x\nf,3\n", "calls").is_err());
    }
}
