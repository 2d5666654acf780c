//! Text layout: aligned columns and wrapped sentences.

use rutter_core::text::first_chars;

/// The width of the output. Fixed, so that it is the same in a terminal, a pipe and a document.
pub(crate) const COLUMNS: usize = 100;
/// Names written out in a list; the rest is counted.
pub(crate) const LISTED_MAX: usize = 4;

/// A piece of text in one colour; the terminal removes the colour if it is not wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableCell {
    text: String,
    paint: CellColor,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum CellColor {
    #[default]
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
}

impl CellColor {
    pub(crate) fn on(self, text: &str) -> String {
        let code = match self {
            _ if text.is_empty() => return String::new(),
            CellColor::Plain => return text.to_owned(),
            CellColor::Bold => 1,
            CellColor::Dim => 2,
            CellColor::Green => 32,
            CellColor::Yellow => 33,
            CellColor::Red => 31,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

impl TableCell {
    pub(crate) fn new(text: impl Into<String>, paint: CellColor) -> TableCell {
        TableCell { text: text.into(), paint }
    }

    pub(crate) fn indented(self, spaces: usize) -> TableCell {
        TableCell { text: format!("{}{}", " ".repeat(spaces), self.text), paint: self.paint }
    }

    pub(crate) fn painted(&self) -> String {
        self.paint.on(&self.text)
    }
}

impl<T: Into<String>> From<T> for TableCell {
    fn from(text: T) -> TableCell {
        TableCell::new(text, CellColor::Plain)
    }
}

/// Renders rows as aligned columns, two spaces apart. Each row becomes one line.
pub(crate) fn columns(rows: &[Vec<TableCell>]) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| chars(&cell.text)).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[TableCell], widths: &[usize]) -> String {
    let last = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |at| at + 1);
    let mut line = String::new();
    for (at, cell) in row[..last].iter().enumerate() {
        line.push_str(&cell.painted());
        if at + 1 < last && widths[at] > 0 {
            line.push_str(&" ".repeat(widths[at] - chars(&cell.text) + 2));
        }
    }
    line
}

/// Breaks a text into lines of at most `COLUMNS`, all but the first indented.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    wrapped_to(text, indent, COLUMNS)
}

/// The same with the given width.
pub(crate) fn wrapped_to(text: &str, indent: usize, width_max: usize) -> String {
    let mut wrapped = String::new();
    let mut used = 0;
    for (at, word) in text.split(' ').enumerate() {
        let width = chars(word);
        if used > indent && used + 1 + width > width_max {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            used = indent;
        } else if at > 0 {
            wrapped.push(' ');
            used += 1;
        }
        wrapped.push_str(word);
        used += width;
    }
    wrapped
}

/// Cuts a text that is too long, and marks the cut.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if chars(text) <= width {
        return text.to_owned();
    }
    format!("{}...", first_chars(text, width.saturating_sub(3)).trim_end())
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_without_trailing_space() {
        let rows = [vec!["a".into(), "".into(), "x".into()], vec!["long".into(), "".into(), "".into()]];
        assert_eq!(columns(&rows), ["a     x", "long"]);
    }

    #[test]
    fn long_sentences_wrap_with_an_indent() {
        assert_eq!(wrapped("  a   b", 4), "  a   b");
        let text = wrapped(&["word"; 30].join(" "), 4);
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.len() <= COLUMNS), "{text}");
        assert!(text.lines().nth(1).unwrap().starts_with("    word"));
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(shortened("abcdefgh", 6), "abc...");
    }
}
