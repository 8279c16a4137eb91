//! What does the page ask?

use crate::engine::Engine;
use anyhow::{Context, Result};

const PAGE: &str = include_str!("../../../docs/fleet.md");

/// SQL of the page, with the words of its first line, a comment.
pub struct Question {
    pub title: &'static str,
    pub sql: &'static str,
}

/// All SQL of the page, in its order, but for what makes the view.
pub fn questions() -> Result<Vec<Question>> {
    let mut all = blocks()?;
    all.retain(|it| {
        ![Engine::DuckDb, Engine::Spark]
            .map(Engine::name)
            .contains(&it.title)
    });
    Ok(all)
}

/// What makes the view `counts` of the files in the folder `fleet`.
pub fn view(engine: Engine) -> Result<&'static str> {
    let mut all = blocks()?.into_iter();
    let view = all.find(|it| it.title == engine.name());
    Ok(view.context("the page does not say how to begin")?.sql)
}

fn blocks() -> Result<Vec<Question>> {
    let blocks = PAGE.split("```sql\n").skip(1);
    blocks
        .map(|it| {
            let (sql, _) = it.split_once("```").context("SQL without an end")?;
            let title = sql.lines().next().and_then(|it| it.strip_prefix("-- "));
            let title = title.context("SQL without a title")?;
            Ok(Question { title, sql })
        })
        .collect()
}

/// The names of columns that the page explains, in its order.
pub fn columns() -> Vec<&'static str> {
    let (_, table) = PAGE.split_once("| --- | --- |\n").unwrap_or_default();
    let rows = table.lines().take_while(|it| it.starts_with('|'));
    let names = rows.filter_map(|row| row.split('|').nth(1));
    names
        .flat_map(|it| it.split('`').skip(1).step_by(2))
        .collect()
}
