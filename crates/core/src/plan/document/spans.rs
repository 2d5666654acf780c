//! The source ranges of the parts of a document.

use crate::pointer;
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;

/// The source ranges of all values and keys of a document.
#[derive(Clone, Debug)]
pub struct SourceSpans {
    value: Arc<Value>,
    /// One per value, in the order of the document; the names are those of the value.
    nodes: Vec<ValueSpan>,
}

/// The source ranges of one value. Positions fit 32 bits because documents are bounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueSpan {
    /// Empty where there is no key: the root, and items of lists.
    pub key: (u32, u32),
    pub value: (u32, u32),
    /// The node after this one and its descendants.
    pub next: u32,
}

impl SourceSpans {
    pub(super) fn new(value: Arc<Value>, nodes: Vec<ValueSpan>) -> SourceSpans {
        SourceSpans { value, nodes }
    }

    /// Returns the bytes of the value at a pointer.
    pub fn value(&self, pointer: &str) -> Option<Range<usize>> {
        match self.walk(pointer) {
            (Some(node), true) => Some(range(node.value)),
            _ => None,
        }
    }

    /// Returns the bytes of the key of the value at a pointer.
    pub fn key(&self, pointer: &str) -> Option<Range<usize>> {
        match self.walk(pointer) {
            (Some(node), true) if node.key.0 < node.key.1 => Some(range(node.key)),
            _ => None,
        }
    }

    /// Returns the bytes of the value at a pointer, or of the nearest parent that exists.
    pub fn nearest(&self, pointer: &str) -> Range<usize> {
        self.walk(pointer).0.map_or(0..0, |node| range(node.value))
    }

    /// Follows a pointer as far as it resolves; the flag says whether it resolved completely.
    fn walk(&self, pointer: &str) -> (Option<&ValueSpan>, bool) {
        let Some(names) = pointer::names(pointer) else { return (self.nodes.first(), false) };
        let (mut at, mut value) = (0, &*self.value);
        for name in names {
            let position = match value {
                Value::Object(fields) => fields.keys().position(|key| *key == name),
                Value::Array(items) => pointer::index(&name).filter(|&index| index < items.len()),
                _ => None,
            };
            let child = match value {
                Value::Object(fields) => fields.get(&name),
                Value::Array(items) => position.and_then(|index| items.get(index)),
                _ => None,
            };
            let (Some(position), Some(child)) = (position, child) else { return (self.nodes.get(at), false) };
            at += 1;
            for _ in 0..position {
                at = self.nodes.get(at).map_or(self.nodes.len(), |node| node.next as usize);
            }
            value = child;
        }
        (self.nodes.get(at), true)
    }
}

fn range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}
