//! Applies a fix: the add, remove, replace and test of JSON Patch (RFC 6902).

use crate::diagnostic::PatchOperation;
use crate::pointer;
use serde_json::Value;
use std::collections::HashSet;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("{path:?} is not a JSON Pointer")]
    BadPointer { path: String },
    #[error("there is nothing at {path:?}")]
    Missing { path: String },
    #[error("{path:?} is not in an object or a list")]
    NoContainer { path: String },
    #[error("the whole document cannot be removed")]
    RemovesRoot,
    #[error("{path:?} has another value than the patch was made for")]
    Changed { path: String },
}

/// Returns the value with all operations applied, in order; the given one is unchanged.
pub fn apply_patch(value: &Value, patch: &[PatchOperation]) -> Result<Value, PatchError> {
    let mut patched = value.clone();
    for op in patch {
        match op {
            PatchOperation::Add { path, value } => add(&mut patched, path, value.clone())?,
            PatchOperation::Remove { path } => remove(&mut patched, path)?,
            PatchOperation::Replace { path, value } => {
                *find(&mut patched, path)? = value.clone();
            }
            PatchOperation::Test { path, value } => {
                if find(&mut patched, path)? != value {
                    return Err(PatchError::Changed { path: path.clone() });
                }
            }
        }
    }
    Ok(patched)
}

/// Puts a test before every change of an item in a list from which one of the patches removes an item: applied one after
/// the other, each moves the items of those after it, and none may change another item than it was made for.
pub fn guard<'p>(value: &Value, patches: impl Iterator<Item = &'p mut Vec<PatchOperation>>) {
    let patches: Vec<_> = patches.collect();
    let removed = patches.iter().flat_map(|patch| patch.iter()).filter_map(|operation| match operation {
        PatchOperation::Remove { path } => list_of(value, path).map(str::to_owned),
        _ => None,
    });
    let shrinking: HashSet<String> = removed.collect();
    if shrinking.is_empty() {
        return;
    }
    for patch in patches {
        // No patch removes an item before another of the same list.
        let tested = std::mem::take(patch).into_iter().flat_map(|operation| {
            let test = match &operation {
                PatchOperation::Remove { path } | PatchOperation::Replace { path, .. } => list_of(value, path)
                    .filter(|list| shrinking.contains(*list))
                    .and_then(|_| value.pointer(path))
                    .map(|value| PatchOperation::Test { path: path.clone(), value: value.clone() }),
                _ => None,
            };
            test.into_iter().chain([operation])
        });
        *patch = tested.collect();
    }
}

/// The list of which a path names an item.
fn list_of<'p>(value: &Value, path: &'p str) -> Option<&'p str> {
    let list = &path[..path.rfind('/')?];
    value.pointer(list).is_some_and(Value::is_array).then_some(list)
}

fn add(root: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    let Some((parent, name)) = split(path)? else {
        *root = value;
        return Ok(());
    };
    match find(root, parent)? {
        Value::Object(fields) => {
            fields.insert(name, value);
        }
        Value::Array(items) => {
            let at = if name == "-" { Some(items.len()) } else { pointer::index(&name) };
            let at = at.filter(|&at| at <= items.len()).ok_or_else(|| missing(path))?;
            items.insert(at, value);
        }
        _ => return Err(PatchError::NoContainer { path: path.to_owned() }),
    }
    Ok(())
}

fn remove(root: &mut Value, path: &str) -> Result<(), PatchError> {
    let (parent, name) = split(path)?.ok_or(PatchError::RemovesRoot)?;
    match find(root, parent)? {
        // Shifting preserves the order of the other fields.
        Value::Object(fields) => fields.shift_remove(&name).map(drop).ok_or_else(|| missing(path)),
        Value::Array(items) => {
            let at = pointer::index(&name).filter(|&at| at < items.len()).ok_or_else(|| missing(path))?;
            items.remove(at);
            Ok(())
        }
        _ => Err(PatchError::NoContainer { path: path.to_owned() }),
    }
}

/// Splits a pointer into its parent and its last name; `None` for the root.
fn split(path: &str) -> Result<Option<(&str, String)>, PatchError> {
    let bad = || PatchError::BadPointer { path: path.to_owned() };
    let mut names = pointer::names(path).ok_or_else(bad)?;
    let Some(name) = names.pop() else { return Ok(None) };
    let parent = path.rfind('/').map(|at| &path[..at]).ok_or_else(bad)?;
    Ok(Some((parent, name)))
}

fn find<'a>(root: &'a mut Value, path: &str) -> Result<&'a mut Value, PatchError> {
    if pointer::names(path).is_none() {
        return Err(PatchError::BadPointer { path: path.to_owned() });
    }
    root.pointer_mut(path).ok_or_else(|| missing(path))
}

fn missing(path: &str) -> PatchError {
    PatchError::Missing { path: path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_apply_in_order_and_keep_the_rest() {
        let patch: Vec<PatchOperation> = serde_json::from_value(json!([
            {"op": "remove", "path": "/a"},
            {"op": "add", "path": "/x~1y", "value": 1},
            {"op": "add", "path": "/list/1", "value": "b"},
            {"op": "add", "path": "/list/-", "value": "d"},
            {"op": "remove", "path": "/list/0"},
            {"op": "replace", "path": "/list/0", "value": "B"},
        ]))
        .unwrap();
        let before = json!({"a": 0, "k": 1, "list": ["a", "c"], "z": 2});
        let after = apply_patch(&before, &patch).unwrap();
        assert_eq!(after.to_string(), r#"{"k":1,"list":["B","c","d"],"z":2,"x/y":1}"#);
        assert_eq!(before["a"], 0);
    }

    #[test]
    fn operations_on_nothing_are_refused() {
        let add = |path: &str| PatchOperation::Add { path: path.into(), value: json!(0) };
        let remove = |path: &str| PatchOperation::Remove { path: path.into() };
        let replace = |path: &str| PatchOperation::Replace { path: path.into(), value: json!(0) };
        let test = |path: &str| PatchOperation::Test { path: path.into(), value: json!(0) };
        for (op, error) in [
            (add("a"), "\"a\" is not a JSON Pointer"),
            (add("/n/x"), "\"/n/x\" is not in an object or a list"),
            (add("/l/2"), "there is nothing at \"/l/2\""),
            (add("/no/x"), "there is nothing at \"/no\""),
            (remove(""), "the whole document cannot be removed"),
            (remove("/no"), "there is nothing at \"/no\""),
            (remove("/l/-"), "there is nothing at \"/l/-\""),
            (remove("/l/01"), "there is nothing at \"/l/01\""),
            (remove("/n/x"), "\"/n/x\" is not in an object or a list"),
            (replace("/no"), "there is nothing at \"/no\""),
            (replace("/~2"), "\"/~2\" is not a JSON Pointer"),
            (test("/n"), "\"/n\" has another value than the patch was made for"),
            (test("/no"), "there is nothing at \"/no\""),
        ] {
            let refused = apply_patch(&json!({"n": 1, "l": [1]}), std::slice::from_ref(&op)).unwrap_err();
            assert_eq!(refused.to_string(), error, "{op:?}");
        }
        assert_eq!(apply_patch(&json!(1), &[add("")]).unwrap(), json!(0));
    }

    #[test]
    fn patches_that_shorten_one_list_are_tested_for_the_item_they_were_made_for() {
        let read = |patch: Value| serde_json::from_value::<Vec<PatchOperation>>(patch).unwrap();
        let document = json!({"short": ["a", "b"], "stays": ["s"]});
        let mut patches = [
            read(json!([{"op": "remove", "path": "/short/0"}])),
            read(json!([{"op": "replace", "path": "/short/1", "value": "B"}])),
            read(json!([{"op": "replace", "path": "/stays/0", "value": "S"}, {"op": "remove", "path": "/gone"}])),
        ];
        let stays = patches[2].clone();
        guard(&document, patches.iter_mut());
        assert_eq!(json!(patches[0][0]), json!({"op": "test", "path": "/short/0", "value": "a"}));
        assert_eq!(json!(patches[1][0]), json!({"op": "test", "path": "/short/1", "value": "b"}));
        assert_eq!(patches[2], stays);
        let shortened = apply_patch(&document, &patches[0]).unwrap();
        assert!(apply_patch(&shortened, &patches[1]).is_err() && apply_patch(&shortened, &patches[0]).is_err());
    }
}
