//! The dependencies between the top modules of a crate, and their cycles.

use super::tree::{TextFile, files};
use std::collections::{BTreeMap, BTreeSet};

/// The groups of top modules of a crate that depend on each other.
pub fn cycles(krate: &str) -> Vec<BTreeSet<String>> {
    let folder = format!("crates/{krate}/src/");
    let sources: Vec<TextFile> = files(&folder, "rs").into_iter().filter(|file| !file.is_test()).collect();
    let top = |path: &str| {
        let inside = path.strip_prefix(&folder)?;
        Some(inside.split('/').next()?.trim_end_matches(".rs").to_owned())
    };
    let names: BTreeSet<String> = sources.iter().filter_map(|file| top(&file.path)).collect();
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &sources {
        let Some(from) = top(&file.path).filter(|name| !["lib", "main", "bin"].contains(&name.as_str())) else {
            continue;
        };
        let used = used(&file.text);
        known.entry(from.clone()).or_default().extend(used.intersection(&names).filter(|name| **name != from).cloned());
    }
    groups(&known)
}

/// The names that follow `crate::` in the code outside its tests, alone or in braces.
fn used(text: &str) -> BTreeSet<String> {
    let (text, _) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((text, ""));
    let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut used = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(list) => {
                let list = list.split('}').next().unwrap_or_default();
                used.extend(list.split(',').map(|name| word(name.trim())));
            }
            None => drop(used.insert(word(rest))),
        }
    }
    used
}

fn groups(known: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(name) = open.pop() {
            let next = known.get(&name).into_iter().flatten();
            open.extend(next.filter(|next| seen.insert((*next).clone())).cloned());
        }
        seen
    };
    let all: BTreeMap<&String, BTreeSet<String>> = known.keys().map(|name| (name, reached(name))).collect();
    let mut groups = BTreeSet::new();
    for (name, reached) in &all {
        if reached.contains(*name) {
            let mutual = reached.iter().filter(|other| all.get(other).is_some_and(|back| back.contains(*name)));
            groups.insert(mutual.cloned().collect::<BTreeSet<String>>());
        }
    }
    groups.into_iter().collect()
}

#[test]
fn a_circle_is_found() {
    let edge = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|name| (*name).to_owned()).collect());
    let known = BTreeMap::from([edge("a", &["b"]), edge("b", &["c"]), edge("c", &["b"]), edge("d", &["a"])]);
    assert_eq!(groups(&known), [BTreeSet::from(["b".to_owned(), "c".to_owned()])]);
}
