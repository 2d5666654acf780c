//! Reference pages generated from the program's own tables, so that they are always accurate.

mod plan;
mod tools;

pub use plan::plan;
pub use tools::tools;

/// One row of a Markdown table; cells are escaped.
fn row(cells: &[String]) -> String {
    let cell = |cell: &String| cell.replace('|', "\\|").replace('\n', " ");
    format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "))
}

fn code(text: &str) -> String {
    format!("`{text}`")
}
