//! The files of the repository, and the parents of modules.

use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct TextFile {
    /// Relative to the root of the repository, with forward slashes.
    pub path: String,
    pub text: String,
}

impl TextFile {
    /// Whether only tests and benchmarks use this file.
    pub fn is_test(&self) -> bool {
        let test_folder = ["/tests/", "/benches/"].iter().any(|folder| self.path.contains(folder));
        test_folder || self.path.ends_with("/tests.rs")
    }
}

/// Every text file under a folder whose name has this ending.
pub fn files(folder: &str, extension: &str) -> Vec<TextFile> {
    let wanted = |file: &TextFile| file.path.rsplit_once('.').is_some_and(|(_, found)| found == extension);
    walk(&root().join(folder)).into_iter().filter(wanted).collect()
}

pub fn all_files() -> Vec<TextFile> {
    walk(&root())
}

pub fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub fn exists_beside(path: &str, target: &str) -> bool {
    root().join(path).parent().is_some_and(|folder| folder.join(target).exists())
}

/// The files that could declare the module in this one, and its name. Crate roots have no parent.
pub fn parents_of(path: &str) -> Option<(Vec<String>, String)> {
    let (folder, file) = path.rsplit_once('/')?;
    let name = file.strip_suffix(".rs")?;
    let is_root = is_test_target(path)
        || ["/benches", "/examples", "/src/bin"].iter().any(|roots| folder.ends_with(roots))
        || (folder.ends_with("/src") && name == "lib")
        || ["main.rs", "build.rs"].contains(&file);
    if is_root {
        return None;
    }
    let parents = if folder.ends_with("/src") {
        vec![format!("{folder}/lib.rs"), format!("{folder}/main.rs")]
    } else {
        // Several benchmarks include the same folder, by path.
        let (above, shared) = folder.rsplit_once('/')?;
        let mut parents = vec![format!("{folder}.rs")];
        if above.ends_with("/tests") {
            // The folder of a test program contains its root file.
            parents = vec![format!("{folder}/main.rs")];
        }
        if above.ends_with("/benches") {
            parents = walk(&root().join(above)).into_iter().map(|file| file.path).collect();
        }
        parents.retain(|parent| !parent.contains(&format!("/benches/{shared}/")));
        parents
    };
    Some((parents, name.to_owned()))
}

/// Whether a file is the root of a test program: `tests/name.rs` or `tests/name/main.rs` of a crate.
pub fn is_test_target(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    matches!(names[..], ["crates", _, "tests", _] | ["crates", _, "tests", _, "main.rs"])
}

/// Whether a file is a module of a test program: `tests/all/name.rs`. Shared helpers are in `fixture.rs`.
pub fn is_test_module(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    matches!(names[..], ["crates", _, "tests", "all", name] if !["main.rs", "fixture.rs"].contains(&name))
}

/// Whether a file declares a module of this name, or by a path that ends in it.
pub fn declares(text: &str, name: &str) -> bool {
    let ends = [format!("mod {name};"), format!("/{name}.rs\"]")];
    text.lines().any(|line| ends.iter().any(|end| line.ends_with(end)))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn walk(folder: &Path) -> Vec<TextFile> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(path) = open.pop() {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if name.is_some_and(|name| ["target", ".git"].contains(&name.as_str())) {
            continue;
        }
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            open.extend(entries.map(|entry| entry.expect("the folder can be read").path()));
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path = path.strip_prefix(root()).expect("everything is under the root");
            found.push(TextFile { path: path.to_string_lossy().replace('\\', "/"), text });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

#[test]
fn modules_have_the_parents_that_rust_gives_them() {
    let parents = |path: &str| parents_of(path).map(|(parents, _)| parents);
    assert_eq!(parents("crates/core/src/lib.rs"), None);
    assert_eq!(parents("crates/core/tests/all/main.rs"), None);
    assert_eq!(parents("crates/core/src/plan/check.rs"), Some(vec!["crates/core/src/plan.rs".into()]));
    assert_eq!(
        parents("crates/core/src/plan.rs"),
        Some(vec!["crates/core/src/lib.rs".into(), "crates/core/src/main.rs".into()])
    );
    assert_eq!(parents("crates/core/tests/all/tidy.rs"), Some(vec!["crates/core/tests/all/main.rs".into()]));
    assert_eq!(parents("crates/core/tests/all/tidy/tree.rs"), Some(vec!["crates/core/tests/all/tidy.rs".into()]));
}

#[test]
fn declarations_are_seen() {
    assert!(declares("pub mod check;\n", "check"));
    assert!(declares("#[path = \"shape/plan.rs\"]\nmod shape;\n", "plan"));
    assert!(!declares("mod checked;\n// check\n", "check"));
}
