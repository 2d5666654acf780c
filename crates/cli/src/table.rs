//! Lines of text under each other: columns that align, sentences that wrap.

/// How wide an answer is laid out. Fixed, so that it reads the same in a terminal, a pipe and a document.
pub(crate) const COLUMNS: usize = 100;

/// A piece of text in one colour; the terminal takes the colour away where it is not wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    paint: Paint,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Paint {
    #[default]
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
}

impl Paint {
    pub(crate) fn on(self, text: &str) -> String {
        let code = match self {
            _ if text.is_empty() => return String::new(),
            Paint::Plain => return text.to_owned(),
            Paint::Bold => 1,
            Paint::Dim => 2,
            Paint::Green => 32,
            Paint::Yellow => 33,
            Paint::Red => 31,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, paint: Paint) -> Cell {
        Cell { text: text.into(), paint }
    }

    pub(crate) fn indented(self, spaces: usize) -> Cell {
        Cell { text: format!("{}{}", " ".repeat(spaces), self.text), paint: self.paint }
    }

    pub(crate) fn painted(&self) -> String {
        self.paint.on(&self.text)
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::new(text, Paint::Plain)
    }
}

/// Renders rows as aligned columns, two spaces apart. Each row becomes one line.
pub(crate) fn columns(rows: &[Vec<Cell>]) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| chars(&cell.text)).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[Cell], widths: &[usize]) -> String {
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

/// The same with a width of its own.
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

/// Cuts a text that is too long and says so.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    if chars(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(3)).collect();
    format!("{}...", kept.trim_end())
}

/// Joins names for a sentence: `a, b and 9 more`.
pub(crate) fn listed<T: AsRef<str>>(names: &[T]) -> String {
    const LISTED_MAX: usize = 4;
    let join = |names: &[T]| names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len() {
        count if count > LISTED_MAX + 1 => {
            format!("{} and {} more", join(&names[..LISTED_MAX]), count - LISTED_MAX)
        }
        _ => join(names),
    }
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
    fn long_lists_are_counted() {
        assert_eq!(listed(&["a", "b"]), "a, b");
        assert_eq!(listed(&["a"; 5]), "a, a, a, a, a");
        assert_eq!(listed(&["a"; 6]), "a, a, a, a and 2 more");
        assert_eq!(shortened("abcdefgh", 6), "abc...");
    }
}
