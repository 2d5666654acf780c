//! A line-based diff of two texts.

/// Longer texts are not compared: the diff takes quadratic time, and the result would be unreadable.
const LINES_MAX: usize = 400;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// `added`, `taken` (removed) or empty.
    pub class: &'static str,
    pub sign: char,
    pub text: String,
}

impl DiffLine {
    /// A change of a plan: `+ added`, `- removed` or `~ changed`.
    pub fn of_change(line: &str) -> DiffLine {
        let (class, sign) = match line.as_bytes().first() {
            Some(b'+') => ("added", '+'),
            Some(b'-') => ("taken", '−'),
            _ => ("", '~'),
        };
        DiffLine { class, sign, text: line.get(2..).unwrap_or_default().to_owned() }
    }
}

/// The diff; empty when the texts are equal or too long.
pub fn lines(before: &str, after: &str) -> Vec<DiffLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    if before == after || old.len() > LINES_MAX || new.len() > LINES_MAX {
        return Vec::new();
    }
    let common = common(&old, &new);
    let line = |class, sign, text: &str| DiffLine { class, sign, text: text.to_owned() };
    let (mut found, mut i, mut j) = (Vec::new(), 0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            found.push(line("", ' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            found.push(line("taken", '−', old[i]));
            i += 1;
        } else {
            found.push(line("added", '+', new[j]));
            j += 1;
        }
    }
    found
}

/// The lengths of the longest common subsequences of all suffixes.
fn common(old: &[&str], new: &[&str]) -> Vec<Vec<u16>> {
    let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = match old[i] == new[j] {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_lines_are_marked() {
        let marked = lines("{\n  a: 1\n  b: 2\n}", "{\n  a: 1\n  b: 3\n  c: 4\n}");
        let marked: Vec<String> = marked.iter().map(|line| format!("{}{}", line.sign, line.text)).collect();
        assert_eq!(marked, [" {", "   a: 1", "−  b: 2", "+  b: 3", "+  c: 4", " }"]);
        assert_eq!(lines("same", "same"), []);
        assert_eq!(lines(&"x\n".repeat(401), "y"), []);
    }
}
