//! Deliberate mistakes, to show that the simulator detects them.
//!
//! A mistake is a change of source text. `scripts/mutants` copies the crates of the simulator, builds all mistakes into
//! the copy, each behind a number, and runs the copy's simulator once per number. The sources that are shipped and
//! otherwise tested contain nothing of it.

const MUTATIONS: &str = include_str!("../mutations.txt");

/// The environment variable with the number of the active mistake.
pub const SWITCH: &str = "RUTTER_MUTANT";

/// The module of the copied core that knows the active mistake.
pub const SWITCH_MODULE: &str = "//! The deliberate mistake that is active in this process.

use std::sync::LazyLock;

static ACTIVE: LazyLock<Option<usize>> =
    LazyLock::new(|| std::env::var(\"RUTTER_MUTANT\").ok().and_then(|number| number.parse().ok()));

#[inline]
pub fn is_active(number: usize) -> bool {
    *ACTIVE == Some(number)
}
";

/// A mistake by name, and its changes.
#[derive(Clone, Debug)]
pub struct Mutation {
    pub name: &'static str,
    pub changes: Vec<SourceChange>,
}

/// One change of a mistake.
#[derive(Clone, Debug)]
pub struct SourceChange {
    /// From the root of the repository.
    pub file: &'static str,
    /// Occurs exactly once in the file.
    pub find: &'static str,
    /// The replacement. `MUTATED` in it is true while the mistake is active.
    pub replace: &'static str,
}

/// Every mistake of `mutations.txt`.
pub fn mutations() -> Vec<Mutation> {
    let blocks = MUTATIONS.split("\n# ").skip(1);
    let read = |block: &'static str| {
        let (name, changes) = block.split_once('\n')?;
        let changes = changes.trim_end().strip_prefix("--- ")?.split("\n--- ");
        let change = |text: &'static str| {
            let (file, change) = text.split_once('\n')?;
            let (find, replace) = change.split_once("\n===\n")?;
            Some(SourceChange { file, find, replace })
        };
        Some(Mutation { name, changes: changes.map(change).collect::<Option<_>>()? })
    };
    blocks.map(|block| read(block).unwrap_or_else(|| panic!("not a mistake: {block}"))).collect()
}

/// A file of the repository with all mistakes in it, each behind its number.
pub fn mutate(mutations: &[Mutation], file: &str, source: &str) -> Result<String, String> {
    let mut edits = Vec::new();
    for (number, mutation) in mutations.iter().enumerate() {
        for change in mutation.changes.iter().filter(|change| change.file == file) {
            let wrong = |what: &str| format!("{}: its text {what} in {file}:\n{}", mutation.name, change.find);
            let start = source.find(change.find).ok_or_else(|| wrong("does not occur"))?;
            if source.matches(change.find).count() > 1 {
                return Err(wrong("occurs more than once"));
            }
            let end = start + change.find.len();
            edits.push((start..end, switched(file, number, change.replace), mutation.name));
        }
    }
    edits.sort_by_key(|(place, ..)| place.start);
    let (mut mutated, mut end) = (String::with_capacity(source.len() * 2), 0);
    for (place, replace, name) in edits {
        if place.start < end {
            return Err(format!("{name}: another mistake changes the same text in {file}"));
        }
        mutated += &source[end..place.start];
        mutated += &replace;
        end = place.end;
    }
    mutated += &source[end..];
    Ok(mutated)
}

fn switched(file: &str, number: usize, replace: &str) -> String {
    let core = if file.starts_with("crates/core/") { "crate" } else { "rutter_core" };
    replace.replace("MUTATED", &format!("{core}::mutant::is_active({number})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn one(find: &'static str) -> [Mutation; 1] {
        let change = SourceChange { file: "a.rs", find, replace: "if MUTATED {" };
        [Mutation { name: "one", changes: vec![change] }]
    }

    #[test]
    fn every_change_still_fits_the_source() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mutations = mutations();
        let changes = mutations.iter().flat_map(|mutation| &mutation.changes);
        let files: BTreeSet<&str> = changes.map(|change| change.file).collect();
        for file in files {
            let source = std::fs::read_to_string(root.join(file)).expect(file);
            let mutated = mutate(&mutations, file, &source).unwrap_or_else(|wrong| panic!("{wrong}"));
            assert!(mutated.contains("::mutant::is_active("), "{file}");
        }
    }

    #[test]
    fn a_mistake_has_a_name_of_its_own_and_can_be_turned_off() {
        let mutations = mutations();
        let names: BTreeSet<&str> = mutations.iter().map(|mutation| mutation.name).collect();
        assert_eq!(names.len(), mutations.len());
        assert!(names.len() >= 30, "{names:?}");
        for change in mutations.iter().flat_map(|mutation| &mutation.changes) {
            assert!(change.replace.contains("MUTATED"), "{change:?}");
        }
        assert!(SWITCH_MODULE.contains(SWITCH));
    }

    #[test]
    fn a_text_that_is_missing_or_not_the_only_one_is_refused() {
        let source = "if a {\nif b {\n";
        let expected = "if rutter_core::mutant::is_active(0) {\nif b {\n";
        assert_eq!(mutate(&one("if a {"), "a.rs", source).as_deref(), Ok(expected));
        assert_eq!(mutate(&one("if a {"), "b.rs", source).as_deref(), Ok(source));
        assert!(mutate(&one("if c {"), "a.rs", source).unwrap_err().contains("does not occur"));
        assert!(mutate(&one("if"), "a.rs", source).unwrap_err().contains("more than once"));
        let twice = [one("if a {"), one("a {")].concat();
        assert!(mutate(&twice, "a.rs", source).unwrap_err().contains("the same text"));
    }
}
