//! Checks of documents: headings, links, numbers.

use std::collections::BTreeSet;

/// The codes that have their own heading: "### `plan.cycle`".
pub fn headings_of_codes(markdown: &str) -> BTreeSet<String> {
    let headings = markdown.lines().filter_map(|line| line.strip_prefix("### `"));
    headings.filter_map(|rest| rest.strip_suffix('`')).map(str::to_owned).collect()
}

/// Targets of links into the repository that do not exist. Fenced blocks are examples and do not count.
pub fn broken_links(markdown: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut fenced = false;
    let mut broken = Vec::new();
    for line in markdown.lines() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split([')', '#']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !exists(target) {
                broken.push(target.to_owned());
            }
        }
    }
    broken
}

/// Gaps in a list of files like `0001-some-words.md`, which must be numbered consecutively.
pub fn gaps_in_numbers(paths: &[String]) -> Vec<String> {
    let mut names: Vec<&str> = paths.iter().filter_map(|path| path.rsplit('/').next()).collect();
    names.sort_unstable();
    let expected = (1..=names.len()).map(|number| format!("{number:04}-"));
    names
        .iter()
        .zip(expected)
        .filter(|(name, number)| !name.starts_with(number.as_str()))
        .map(|(name, number)| format!("{name} should begin with {number}"))
        .collect()
}

#[test]
fn headings_are_read() {
    let codes = headings_of_codes("# Errors\n### `plan.cycle`\ntext\n### not a code\n## `plan.other`\n");
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), ["plan.cycle"]);
}

#[test]
fn broken_links_are_found() {
    let text = "[a](a.md) [b](b.md#part) [c](#here) [d](https://example.org/x)\n```\n[e](e.md)\n```\n";
    assert_eq!(broken_links(text, |target| target == "a.md"), ["b.md"]);
}

#[test]
fn gaps_are_found() {
    let paths = |names: &[&str]| names.iter().map(|name| format!("docs/{name}")).collect::<Vec<_>>();
    assert!(gaps_in_numbers(&paths(&["0002-b.md", "0001-a.md"])).is_empty());
    assert_eq!(gaps_in_numbers(&paths(&["0001-a.md", "0003-c.md"])), ["0003-c.md should begin with 0002-"]);
}
