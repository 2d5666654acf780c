//! Fuzzing of every input that the core reads as bytes: it must never panic.
//!
//! Each target is tried on the seeds in `__fuzz__/<target>/corpus`, on random bytes, and on seeds damaged at random.
//! `cargo bolero` runs the same targets for longer and guided by coverage: see docs/testing.md.

use bolero::{TypeGenerator, check};
use rutter_core::diagnostic::DiagnosticSeverity;
use rutter_core::journal::checkpoint::Checkpoint;
use rutter_core::journal::codec;
use rutter_core::journal::note::{SignedNote, SigningKey};
use rutter_core::journal::verify::{TrustAnchors, verify_export};
use rutter_core::plan::Driver;
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::expression::{Expression, ExpressionScope};
use rutter_core::plan::patch::apply_patch;
use rutter_core::preview::preview;
use rutter_core::tool::ToolCatalog;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

type Target = fn(&[u8]);

/// The targets by the name of their folder.
const TARGETS: [(&str, Target); 6] = [
    ("plan_json", plan_json),
    ("plan_yaml", plan_yaml),
    ("expression", expression),
    ("entry", entry),
    ("export", export),
    ("checkpoint", checkpoint),
];

const ITERATIONS: usize = 1000;

#[test]
fn a_plan_in_json_never_panics() {
    check!(name = "plan_json").with_iterations(ITERATIONS).for_each(plan_json);
}

#[test]
fn a_plan_in_yaml_never_panics() {
    check!(name = "plan_yaml").with_iterations(ITERATIONS).for_each(plan_yaml);
}

#[test]
fn an_expression_never_panics() {
    check!(name = "expression").with_iterations(ITERATIONS).for_each(expression);
}

#[test]
fn a_journal_entry_never_panics() {
    check!(name = "entry").with_iterations(ITERATIONS).for_each(entry);
}

#[test]
fn an_export_never_panics() {
    check!(name = "export").with_iterations(ITERATIONS).for_each(export);
}

#[test]
fn a_checkpoint_never_panics() {
    check!(name = "checkpoint").with_iterations(ITERATIONS).for_each(checkpoint);
}

/// Random bytes rarely get past the first character; damaged valid inputs reach all code.
#[test]
fn a_damaged_seed_never_panics() {
    check!().with_iterations(2 * ITERATIONS).with_type::<(u8, u16, Vec<Damage>)>().for_each(
        |(target, seed, damages)| {
            let (name, target) = TARGETS[usize::from(*target) % TARGETS.len()];
            let seeds = seeds(name);
            let mut bytes = seeds[usize::from(*seed) % seeds.len()].clone();
            damages.iter().for_each(|damage| damage.apply(&mut bytes, seeds));
            target(&bytes);
        },
    );
}

#[test]
fn every_target_has_seeds() {
    for (name, _) in TARGETS {
        assert!(seeds(name).len() >= 5, "{name} has only {} seeds", seeds(name).len());
    }
}

fn plan_json(bytes: &[u8]) {
    plan(bytes, DocumentFormat::Json);
}

fn plan_yaml(bytes: &[u8]) {
    plan(bytes, DocumentFormat::Yaml);
}

fn plan(bytes: &[u8], format: DocumentFormat) {
    for driver in [Driver::Server, Driver::Agent] {
        let checked = read_and_check(bytes, format, &CATALOG, driver, None);
        let has_error = checked.diagnostics.iter().any(|found| found.severity == DiagnosticSeverity::Error);
        assert_eq!(checked.plan.is_none(), has_error, "a plan if and only if there is no error");
        if let Ok(document) = PlanDocument::read(bytes, format) {
            for fix in checked.diagnostics.iter().filter_map(|found| found.fix.as_ref()) {
                apply_patch(&document.value, fix).expect("a fix can be applied to its document");
            }
        }
        if let Some(plan) = checked.plan {
            let preview = preview(&plan);
            assert_eq!((preview.steps.len(), preview.what_if.len()), (plan.steps.len(), plan.steps.len()));
        }
    }
}

fn expression(bytes: &[u8]) {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    match Expression::compile(source) {
        Err(error) => {
            let quotable = error.range.is_none_or(|range| source.get(range).is_some());
            assert!(quotable, "{:?} is no part of the source", error.message);
        }
        Ok(expression) => {
            let value = expression.evaluate(&Everything);
            // Failing is fine, but a second evaluation must give the same result.
            assert_eq!(value, expression.evaluate(&Everything));
            let condition = expression.evaluate_bool(&Everything);
            assert_eq!(condition.ok(), value.ok().and_then(|value| value.as_bool()));
        }
    }
}

fn entry(bytes: &[u8]) {
    if let Ok(stored) = codec::decode(bytes) {
        let again = codec::decode(&stored.encode());
        assert_eq!(again.as_ref(), Ok(&stored), "a decoded record can be encoded and decoded again");
        stored.commitments();
    }
}

fn export(bytes: &[u8]) {
    let key = key();
    for keys in [Vec::new(), vec![key.verifier()]] {
        let trust = TrustAnchors { keys, ..TrustAnchors::default() };
        let verdict = verify_export(bytes.split(|byte| *byte == b'\n'), trust);
        assert!(!verdict.to_string().is_empty());
    }
}

fn checkpoint(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(note) = SignedNote::parse(text) {
        assert_eq!(SignedNote::parse(&note.to_string()).as_ref(), Ok(&note));
    }
    if let Ok(checkpoint) = Checkpoint::parse(text) {
        assert_eq!(checkpoint.to_string(), text, "a checkpoint has one canonical form");
    }
    if let Ok(checkpoint) = Checkpoint::open(text, ORIGIN, &[key().verifier()]) {
        assert!(text.starts_with(&checkpoint.to_string()), "the parsed checkpoint is the signed one");
    }
}

const ORIGIN: &str = "rutter.example/acme";

/// The key that signed the seeds.
fn key() -> SigningKey {
    SigningKey::new("rutter.example", [3; 32]).unwrap()
}

static CATALOG: LazyLock<ToolCatalog> = LazyLock::new(|| {
    let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_plans/catalog.json")).unwrap();
    ToolCatalog::from_json(&serde_json::from_slice(&text).unwrap()).unwrap()
});

/// A scope in which every name has a value.
struct Everything;

static DATA: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "text": "Ærø \u{0}\u{1f9ed}", "empty": "", "whole": 9_007_199_254_740_991_i64, "part": -0.5, "big": 1e300,
        "yes": true, "none": null, "list": [3, 1, 2, "b", null, [1], {"a": 1}], "object": {"b": 2, "a": {"b": []}},
    })
});

impl ExpressionScope for Everything {
    fn inputs(&self) -> Option<&Value> {
        Some(&DATA)
    }

    fn step_result(&self, _: &str) -> Option<&Value> {
        Some(&DATA)
    }

    fn step_status(&self, _: &str) -> Option<&'static str> {
        Some("completed")
    }

    fn key(&self) -> Option<&str> {
        Some("key_1")
    }

    fn result(&self) -> Option<&Value> {
        Some(&DATA)
    }

    fn parameters(&self) -> Option<&Value> {
        Some(&DATA)
    }

    fn item(&self) -> Option<(&Value, u32)> {
        Some((&DATA, 7))
    }
}

static SEEDS: LazyLock<Vec<Vec<Vec<u8>>>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/__fuzz__");
    let of_target = |(name, _)| {
        let corpus = fs::read_dir(folder.join(name).join("corpus")).unwrap();
        let mut paths: Vec<_> = corpus.map(|file| file.unwrap().path()).collect();
        // A random seed of bolero's must choose the same files on every machine.
        paths.sort();
        paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
    };
    TARGETS.into_iter().map(of_target).collect()
});

fn seeds(name: &str) -> &'static [Vec<u8>] {
    &SEEDS[TARGETS.iter().position(|(other, _)| *other == name).unwrap()]
}

#[derive(Debug, TypeGenerator)]
enum Damage {
    Flip { at: u16, mask: u8 },
    Cut { at: u16, length: u8 },
    Insert { at: u16, which: u8 },
    Graft { at: u16, seed: u16, from: u16, length: u8 },
}

/// Fragments that are difficult for parsers.
const STUMBLES: [&[u8]; 26] = [
    b"{{",
    b"}}",
    b"{%",
    b"\"",
    b"'",
    b"\\",
    b"\\ud800",
    b"\\u0000",
    b"\n",
    b"\n  - ",
    b": ",
    b"&a *a",
    b"!!str ",
    b"[[[[[[[[",
    b"(((((((((((((((((",
    b"-",
    b"9007199254740993",
    b"1e999",
    b"0.1",
    b"null",
    b"true",
    b"\xef\xbb\xbf",
    b"\xff",
    "\u{2028}".as_bytes(),
    "é".as_bytes(),
    b" | tojson | length ** ",
];

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let place = |at: u16, length: usize| usize::from(at) % (length + 1);
        match *self {
            Damage::Flip { at, mask } => {
                let at = place(at, bytes.len());
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= mask);
            }
            Damage::Cut { at, length } => {
                let at = place(at, bytes.len());
                bytes.drain(at..(at + usize::from(length)).min(bytes.len()));
            }
            Damage::Insert { at, which } => {
                let at = place(at, bytes.len());
                let stumble = STUMBLES[usize::from(which) % STUMBLES.len()];
                bytes.splice(at..at, stumble.iter().copied());
            }
            Damage::Graft { at, seed, from, length } => {
                let other = &seeds[usize::from(seed) % seeds.len()];
                let from = place(from, other.len());
                let part = &other[from..(from + usize::from(length)).min(other.len())];
                let at = place(at, bytes.len());
                bytes.splice(at..at, part.iter().copied());
            }
        }
    }
}
