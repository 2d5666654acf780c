//! References that are made from what the program itself goes by, so that they cannot be wrong about it.

mod plan;
mod tools;

pub use plan::plan;
pub use tools::tools;

/// One line of a table; what would end a cell is escaped.
fn row(cells: &[String]) -> String {
    let cell = |cell: &String| cell.replace('|', "\\|").replace('\n', " ");
    format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "))
}

fn code(text: &str) -> String {
    format!("`{text}`")
}
