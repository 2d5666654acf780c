//! Conventions that a test can check. Each rule is a function over text and has a small test of its own.

mod document;
mod modules;
mod source;
mod tree;

use document::{broken_links, gaps_in_numbers, headings_of_codes};
use rutter_core::execution::input::CODES;
use rutter_core::port::error::CODES as STORE_CODES;
use source::{Source, is_code};
use std::collections::{BTreeMap, BTreeSet};
use tree::{TextFile, files, text_of};

/// Allowed dependencies of the core: data, text and hashes; nothing that waits, reads a clock or is random.
const CORE_DEPENDENCIES: &[&str] = &[
    "base64",
    "ed25519-dalek",
    "granit-parser",
    "icu_normalizer",
    "indexmap",
    "jsonschema",
    "memchr",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
];

/// Access to the outside world. `std::{` is included because it would hide the others.
const OUTSIDE: &[&str] = &[
    "SystemTime",
    "Instant",
    "std::time",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::os",
    "std::{",
    "rand::",
    "getrandom",
    "stdin",
    "stdout",
    "stderr",
    "async fn",
    ".await",
    "println!",
    "eprintln!",
    "print!",
    "eprint!",
];

/// Names that say nothing about a module or a type.
const OTHER_WORDS: &[&str] = &["util", "utils", "helper", "helpers"];

const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("#[ign", "ore"),
];

const LINES_MAX: usize = 500;

#[test]
fn core_depends_on_nothing_that_waits_or_reads_a_clock() {
    let strangers: Vec<String> = dependencies(&text_of("crates/core/Cargo.toml"))
        .into_iter()
        .filter(|name| !CORE_DEPENDENCIES.contains(&name.as_str()))
        .collect();
    assert!(strangers.is_empty(), "crates/core/Cargo.toml has {strangers:?}, which the core must not use");
}

#[test]
fn crates_know_only_those_below_them() {
    for (krate, known) in [
        ("store", &["rutter-core"][..]),
        ("tools", &["rutter-core"]),
        ("engine", &["rutter-core"]),
        ("observe", &["rutter-core", "rutter-engine"]),
        ("app", &["rutter-core", "rutter-engine", "rutter-observe", "rutter-store", "rutter-tools"]),
        ("mcp", &["rutter-app", "rutter-core"]),
        ("api", &["rutter-app", "rutter-core", "rutter-observe"]),
        ("web", &["rutter-api", "rutter-app", "rutter-core", "rutter-observe"]),
    ] {
        let ours = dependencies(&text_of(&format!("crates/{krate}/Cargo.toml")));
        let ours: Vec<String> = ours.into_iter().filter(|name| name.starts_with("rutter-")).collect();
        assert_eq!(ours, known, "{krate}");
    }
}

#[test]
fn top_modules_of_a_crate_do_not_know_each_other_in_circles() {
    let product = ["core", "store", "tools", "engine", "observe", "app", "mcp", "api", "web", "cli"];
    let found = product.into_iter().chain(["testkit", "conformance", "bench"]).flat_map(|krate| {
        modules::cycles(krate).into_iter().map(move |names| (krate, names.into_iter().collect::<Vec<String>>()))
    });
    let found: BTreeSet<(String, Vec<String>)> = found.map(|(krate, names)| (krate.to_owned(), names)).collect();
    assert!(found.is_empty(), "modules that know each other in a circle: {found:#?}");
}

/// Names that every crate may have by convention.
const CONVENTIONAL: &[&str] = &["Args", "Config", "Error", "Result"];

#[test]
fn a_type_is_found_by_its_name() {
    let product = ["core", "store", "tools", "engine", "observe", "app", "mcp", "api", "web", "cli"];
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in product.iter().flat_map(|krate| files(&format!("crates/{krate}/src"), "rs")) {
        if file.is_test() {
            continue;
        }
        let code = Source::read(&file.text).without_tests().code;
        let words: Vec<&str> =
            code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2).filter(|pair| ["struct", "enum", "trait", "union"].contains(&pair[0])) {
            places.entry(pair[1].to_owned()).or_default().push(file.path.clone());
        }
    }
    let shared: Vec<_> = places
        .iter()
        .filter(|(name, at)| at.len() > 1 && !CONVENTIONAL.contains(&name.as_str()))
        .filter(|(name, _)| name.starts_with(char::is_uppercase))
        .collect();
    assert!(shared.is_empty(), "types of one name; give each its own: {shared:#?}");
}

#[test]
fn only_the_composition_root_names_a_store_or_tools() {
    for file in files("crates/app/src", "rs").iter().filter(|file| !file.path.ends_with("runtime.rs")) {
        let source = Source::read(&file.text).without_tests();
        let found = ["rutter_store", "rutter_tools"].into_iter().find(|krate| source.names(krate));
        assert!(found.is_none(), "{} names {found:?}; only app::runtime may", file.path);
    }
}

#[test]
fn surfaces_do_not_reach_the_engine_or_name_a_scope() {
    for file in ["mcp", "api", "web"].iter().flat_map(|krate| files(&format!("crates/{krate}/src"), "rs")) {
        let code = Source::read(&file.text).without_tests().code;
        assert!(!code.contains(".engine"), "{} reaches the engine; ask a function of app", file.path);
        // The page of keys lists the scopes; it decides nothing by them.
        let lists = file.path.ends_with("web/src/settings.rs");
        assert!(lists || !code.contains("AccessScope::"), "{} names a scope; name the operation", file.path);
    }
}

#[test]
fn every_dependency_is_used() {
    for manifest in files("crates", "toml") {
        let Some(folder) = manifest.path.strip_suffix("Cargo.toml") else { continue };
        let sources = files(&format!("{folder}src"), "rs");
        for name in dependencies(&manifest.text) {
            let krate = name.replace('-', "_");
            let used = |file: &TextFile| Source::read(&file.text).without_tests().names(&krate);
            let product = sources.iter().filter(|file| !file.is_test());
            assert!(product.into_iter().any(used), "{} has {name}, which nothing uses", manifest.path);
        }
    }
}

#[test]
fn core_never_looks_outside() {
    for file in files("crates/core/src", "rs").iter().filter(|file| !file.is_test()) {
        let code = Source::read(&file.text).without_tests().code;
        let found: Vec<&&str> = OUTSIDE.iter().filter(|name| names(&code, name)).collect();
        assert!(found.is_empty(), "{} uses {found:?}; pass it in instead", file.path);
    }
}

#[test]
fn core_uses_the_words_of_the_glossary() {
    for file in files("crates/core/src", "rs").iter().filter(|file| !file.is_test()) {
        let words = Source::read(&file.text).without_tests().words();
        let found: Vec<&&str> = OTHER_WORDS.iter().filter(|word| words.contains(**word)).collect();
        assert!(found.is_empty(), "{} has names with {found:?}; docs/glossary.md has better ones", file.path);
    }
}

#[test]
fn every_code_has_its_paragraph_and_every_paragraph_its_code() {
    let documented = headings_of_codes(&text_of("docs/errors.md"));
    let given: BTreeSet<String> = codes_by_file().into_keys().collect();
    let missing: Vec<&String> = given.difference(&documented).collect();
    let stale: Vec<&String> = documented.difference(&given).collect();
    assert!(missing.is_empty(), "docs/errors.md has no heading for {missing:#?}");
    assert!(stale.is_empty(), "docs/errors.md explains codes that are never reported: {stale:#?}");
}

#[test]
fn every_listed_refusal_is_given_somewhere() {
    let codes = codes_by_file();
    let unused: Vec<&&str> = CODES.iter().filter(|code| codes[**code].len() == 1).collect();
    assert!(unused.is_empty(), "listed in execution::input::CODES but never used: {unused:?}");
}

#[test]
fn every_refusal_given_is_listed() {
    let unlisted: Vec<String> = codes_by_file()
        .into_keys()
        .filter(|code| code.starts_with("execution.") || code.starts_with("replan."))
        .filter(|code| !CODES.contains(&code.as_str()))
        .collect();
    assert!(unlisted.is_empty(), "execution::input::CODES does not have {unlisted:?}");
}

#[test]
fn every_code_of_a_store_is_listed_and_given() {
    let text = text_of("crates/core/src/port/error.rs");
    let literals = Source::read(&text).literals.into_iter().filter(|literal| literal.starts_with("store."));
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    literals.for_each(|code| *times.entry(code).or_default() += 1);
    let listed: BTreeSet<&str> = STORE_CODES.iter().copied().collect();
    assert_eq!(listed, times.keys().map(String::as_str).collect(), "port::error::CODES");
    let once: Vec<&String> = times.iter().filter(|(_, times)| **times < 2).map(|(code, _)| code).collect();
    assert!(once.is_empty(), "listed but never used, or used but not listed: {once:?}");
}

#[test]
fn files_are_short_enough_to_be_read() {
    let long: Vec<String> = files("crates", "rs")
        .iter()
        .filter(|file| !file.is_test())
        .map(|file| (Source::read(&file.text).without_tests().lines(), &file.path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert!(long.is_empty(), "split these files, they are too long: {long:#?}");
}

#[test]
fn every_file_says_first_what_it_is_about() {
    for file in files("crates", "rs") {
        assert!(file.text.starts_with("//! "), "{} does not begin with a line of `//! `", file.path);
    }
}

#[test]
fn nothing_is_left_unfinished() {
    for file in files("crates", "rs") {
        let found: Vec<&&str> = UNFINISHED.iter().filter(|word| file.text.contains(**word)).collect();
        assert!(found.is_empty(), "{} has {found:?}", file.path);
    }
}

#[test]
fn no_file_is_forgotten_by_its_parent() {
    let all: BTreeMap<String, String> = files("crates", "rs").into_iter().map(|file| (file.path, file.text)).collect();
    for path in all.keys() {
        let Some((parents, name)) = tree::parents_of(path) else { continue };
        let declared = |parent: &String| all.get(parent).is_some_and(|text| tree::declares(text, &name));
        assert!(parents.iter().any(declared), "{path} is a module of none of {parents:?}");
    }
}

/// Each test program is linked with everything once more; a module costs nothing.
#[test]
fn a_crate_has_one_test_program() {
    for file in files("crates", "rs").iter().filter(|file| tree::is_test_target(&file.path)) {
        assert!(file.path.ends_with("/tests/all/main.rs"), "{} should be a module of tests/all", file.path);
    }
}

#[test]
fn every_test_file_has_a_test() {
    let all = files("crates", "rs");
    for module in all.iter().filter(|file| tree::is_test_module(&file.path)) {
        let folder = module.path.replace(".rs", "/");
        let mut own = all.iter().filter(|file| file.path == module.path || file.path.starts_with(&folder));
        let has_test = |file: &TextFile| {
            let code = Source::read(&file.text).code;
            code.contains("#[test]") || code.contains("#[tokio::test")
        };
        assert!(own.any(has_test), "{} has no test", module.path);
    }
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    for file in tree::all_files() {
        let found = machine_paths(&file.text);
        assert!(found.is_empty(), "{} has {found:?}", file.path);
    }
}

#[test]
fn dependencies_come_from_the_public_registry() {
    let lock = text_of("Cargo.lock");
    let elsewhere: Vec<&str> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("source = "))
        .filter(|source| *source != "\"registry+https://github.com/rust-lang/crates.io-index\"")
        .collect();
    assert!(elsewhere.is_empty(), "Cargo.lock has {elsewhere:?}");
}

#[test]
fn decisions_are_numbered_without_gaps() {
    let names: Vec<String> = files("docs/decisions", "md").into_iter().map(|file| file.path).collect();
    assert!(!names.is_empty());
    assert_eq!(gaps_in_numbers(&names), Vec::<String>::new());
}

#[test]
fn links_between_documents_lead_somewhere() {
    for file in files("", "md") {
        let broken = broken_links(&file.text, |target| tree::exists_beside(&file.path, target));
        assert!(broken.is_empty(), "{} links to {broken:?}", file.path);
    }
}

/// The names under `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// Whether code uses a name as a whole identifier.
fn names(code: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let goes_on_before = name.starts_with(is_word) && code[..at].ends_with(is_word);
        let goes_on_after = name.ends_with(is_word) && code[at + name.len()..].starts_with(is_word);
        !goes_on_before && !goes_on_after
    })
}

/// Every code in the sources, with the files that have it.
fn codes_by_file() -> BTreeMap<String, BTreeSet<String>> {
    let mut codes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files("crates", "rs").into_iter().filter(|file| !file.is_test()) {
        for literal in Source::read(&file.text).without_tests().literals {
            assert!(!literal.starts_with("plan.{"), "{}: a code must be written out, to be found", file.path);
            // Pages are named by their templates.
            if is_code(&literal) && !literal.ends_with(".html") {
                codes.entry(literal).or_default().insert(file.path.clone());
            }
        }
    }
    codes
}

/// Absolute paths of a developer's machine.
fn machine_paths(text: &str) -> Vec<&'static str> {
    let roots = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];
    let is_path = |c: char| c.is_alphanumeric() || "_-.}".contains(c);
    let found =
        |root: &&str| text.match_indices(root).any(|(at, _)| !text[..at].chars().next_back().is_some_and(is_path));
    roots.into_iter().filter(found).collect()
}

#[test]
fn dependencies_are_read_from_a_manifest() {
    let manifest = "[package]\nname = \"x\"\n\n[dependencies]\n# why\nserde.workspace = true\n\
                    tokio = { version = \"1\" }\n\n[dev-dependencies]\nrand = \"1\"\n";
    assert_eq!(dependencies(manifest), ["serde", "tokio"]);
}

#[test]
fn names_are_found_whole() {
    assert!(names("use std::time::Duration;", "std::time"));
    assert!(names("let now = Instant::now();", "Instant"));
    assert!(!names("struct InstantNoodle;", "Instant"));
    assert!(!names("operand::x", "rand::"));
    assert!(names("rand::random()", "rand::"));
    assert!(names("use std::{fs, io};", "std::{"));
}

#[test]
fn machine_paths_are_found() {
    assert_eq!(machine_paths(concat!("see /ho", "me/ann/x")), [concat!("/ho", "me/")]);
    assert_eq!(machine_paths(concat!("docs/wo", "rk/x and {base}/ro", "ot/y")), Vec::<&str>::new());
}
