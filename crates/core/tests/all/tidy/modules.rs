//! The dependencies between the top modules of a crate, and their cycles.

use super::source::Source;
use super::tree::files;
use std::collections::{BTreeMap, BTreeSet};

/// The groups of top modules of a crate that depend on each other. `lib` or `main` stands for the items that the root
/// file itself defines.
pub fn cycles(krate: &str) -> Vec<BTreeSet<String>> {
    let folder = format!("crates/{krate}/src/");
    let sources = files(&folder, "rs").into_iter().filter(|file| !file.is_test());
    let sources: Vec<(String, String)> = sources
        .filter_map(|file| Some((file.path.strip_prefix(&folder)?.to_owned(), file.text)))
        .filter(|(path, _)| !path.starts_with("bin/"))
        .collect();
    groups(&dependencies(&sources))
}

/// Which top modules each top module names; a file is its path below `src/` and its text.
fn dependencies(sources: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let sources: Vec<(Vec<String>, String)> =
        sources.iter().map(|(path, text)| (module_of(path), Source::read(text).without_tests().code)).collect();
    let tops: BTreeSet<&str> = sources.iter().map(|(module, _)| module[0].as_str()).collect();
    let mut exports: BTreeMap<String, String> = BTreeMap::new();
    for (_, code) in sources.iter().filter(|(module, _)| is_root(&module[0])) {
        exports = re_exports(&tokens(code), &tops);
    }
    let root = tops.iter().copied().find(|name| is_root(name)).unwrap_or("lib");
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, code) in &sources {
        let from = &module[0];
        let named = match is_root(from) {
            true => named_by_root(&tokens(code), &tops),
            false => named_from_root(&tokens(code), module.len()),
        };
        let target = |name: String| match tops.contains(name.as_str()) {
            true => name,
            false => exports.get(&name).cloned().unwrap_or_else(|| root.to_owned()),
        };
        known.entry(from.clone()).or_default().extend(named.into_iter().map(target).filter(|name| name != from));
    }
    known
}

/// `drawing/timeline.rs` is the module `drawing::timeline`.
fn module_of(path: &str) -> Vec<String> {
    path.trim_end_matches(".rs").split('/').map(str::to_owned).collect()
}

fn is_root(module: &str) -> bool {
    ["lib", "main"].contains(&module)
}

/// What a module at this depth names right below the root, by `crate::` or by as many `super::` as lead there.
fn named_from_root(tokens: &[&str], depth: usize) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    // The braces of inline modules, which are one level deeper than their file.
    let (mut braces, mut inline) = (0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => {
                braces += 1;
                if at >= 2 && tokens[at - 2] == "mod" {
                    inline.push(braces);
                }
            }
            "}" => {
                inline.retain(|depth| *depth != braces);
                braces -= 1;
            }
            "crate" | "super" if at == 0 || tokens[at - 1] != "::" => {
                let above = if *token == "crate" { depth + inline.len() } else { 1 };
                tree(&tokens[at + 1..], (depth + inline.len()).checked_sub(above), &mut named);
            }
            _ => {}
        }
    }
    named
}

/// Reads what follows a path that is so many levels below the root, and returns how many tokens that is.
fn tree(tokens: &[&str], level: Option<usize>, named: &mut BTreeSet<String>) -> usize {
    if tokens.first() != Some(&"::") {
        return 0;
    }
    1 + match tokens.get(1) {
        Some(&"{") => {
            let mut at = 2;
            while at < tokens.len() && tokens[at] != "}" {
                at += match tokens[at] {
                    "," => 1,
                    _ => segment(&tokens[at..], level, named),
                };
            }
            at
        }
        Some(_) => segment(&tokens[1..], level, named),
        None => 0,
    }
}

/// Reads one part of a path and what hangs below it. Only a name right below the root is of interest.
fn segment(tokens: &[&str], level: Option<usize>, named: &mut BTreeSet<String>) -> usize {
    let below = match (tokens[0], level) {
        ("super", level) => level.and_then(|level| level.checked_sub(1)),
        ("self", level) => level,
        (name, Some(0)) => {
            named.insert(name.to_owned());
            None
        }
        (_, Some(_) | None) => None,
    };
    let mut read = 1 + tree(&tokens[1..], below, named);
    if tokens.get(read) == Some(&"as") {
        read += 2;
    }
    read
}

/// The top modules that the root file uses for items of its own: named in a path, and not only passed on.
fn named_by_root(tokens: &[&str], tops: &BTreeSet<&str>) -> BTreeSet<String> {
    let is_passed_on = passed_on(tokens);
    let starts_a_path = |at: usize| at == 0 || tokens[at - 1] != "::";
    let named = (0..tokens.len().saturating_sub(1))
        .filter(|at| tops.contains(tokens[*at]) && tokens[at + 1] == "::" && starts_a_path(*at) && !is_passed_on[*at]);
    named.map(|at| tokens[at].to_owned()).collect()
}

/// The names that the root file passes on by `pub use`, and the top modules they come from.
fn re_exports(tokens: &[&str], tops: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let is_passed_on = passed_on(tokens);
    let mut from = None;
    let mut exports = BTreeMap::new();
    for at in (0..tokens.len()).filter(|at| is_passed_on[*at]) {
        match tokens[at] {
            "use" => from = None,
            name if from.is_none() && tops.contains(name) => from = Some(name.to_owned()),
            name => drop(from.clone().map(|from| exports.insert(name.to_owned(), from))),
        }
    }
    exports
}

/// Whether each token is part of a `pub use`.
fn passed_on(tokens: &[&str]) -> Vec<bool> {
    let (mut is_public, mut inside) = (false, false);
    let mut passed_on = Vec::new();
    for token in tokens {
        match *token {
            "pub" => is_public = true,
            "(" | ")" | "crate" => {}
            "use" => inside = is_public,
            ";" => (is_public, inside) = (false, false),
            _ if !inside => is_public = false,
            _ => {}
        }
        passed_on.push(inside);
    }
    passed_on
}

/// Identifiers, `::`, and every other character but white space alone.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            first if is_name(first) => rest.find(|c: char| !is_name(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            first => first.len_utf8(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
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

fn named(path: &str, text: &str) -> Vec<String> {
    named_from_root(&tokens(text), module_of(path).len()).into_iter().collect()
}

#[test]
fn super_leads_to_the_root_from_a_top_module_only() {
    assert_eq!(named("page.rs", "use super::shell; fn f() { super::format::ago() }"), ["format", "shell"]);
    assert_eq!(named("drawing/plan.rs", "use super::timeline; use super::super::page::{self, Page};"), ["page"]);
    assert_eq!(named("drawing/plan/edge.rs", "use super::{super::{super::page::Page}, label};"), ["page"]);
    assert_eq!(named("page.rs", "mod inner { use super::shell; } use super::format;"), ["format"]);
}

#[test]
fn nested_braces_are_read_to_their_end() {
    let text = "use crate::{answer::{self, problem as wrong}, http::{gate::{A, B}, sse}, route};";
    assert_eq!(named("executions.rs", text), ["answer", "http", "route"]);
    assert_eq!(
        named("executions.rs", "use axum::{http::Method}; let a = crate::route::<T>(super::b(1));"),
        ["b", "route"]
    );
}

fn known(sources: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
    let sources: Vec<(String, String)> =
        sources.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    let known = dependencies(&sources).into_iter();
    known.map(|(from, to)| (from, to.into_iter().collect())).collect()
}

#[test]
fn what_the_root_file_defines_is_a_module_of_its_own() {
    let root = "mod a;\nmod b;\nuse a::A;\npub struct State(A);\nfn f() { axum::b::new() }\n";
    let found = known(&[("lib.rs", root), ("a.rs", "use crate::State;"), ("b.rs", "")]);
    assert_eq!(found, [("a".into(), vec!["lib".into()]), ("b".into(), vec![]), ("lib".into(), vec!["a".into()])]);
    let found = known(&[("main.rs", "mod a;\nenum Exit {}\n"), ("a.rs", "use super::Exit;")]);
    assert_eq!(found, [("a".into(), vec!["main".into()]), ("main".into(), vec![])]);
}

#[test]
fn what_the_root_file_passes_on_belongs_to_its_module() {
    let root = "mod a;\nmod b;\npub(crate) use a::{A, inner::Other};\npub use b::B;\n";
    let found = known(&[("lib.rs", root), ("a.rs", "use crate::B;"), ("b/c.rs", "use crate::Other;")]);
    assert_eq!(found, [("a".into(), vec!["b".into()]), ("b".into(), vec!["a".into()]), ("lib".into(), vec![])]);
}
