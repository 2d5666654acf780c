//! The memories of one tenant as they are searched: oldest first, with an index of their words.

use super::rank::MemoryIndex;
use rutter_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// How much a tenant may store.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryLimits {
    pub memories_max: usize,
    pub text_mib_max: usize,
}

impl MemoryLimits {
    pub const DEFAULT: MemoryLimits = MemoryLimits { memories_max: 100_000, text_mib_max: 64 };
}

/// A memory as it is stored, under its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::builtin) struct MemoryRecord {
    pub text: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub importance: f64,
    pub tags: Vec<String>,
    pub stored_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

impl MemoryRecord {
    fn is_known_at(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| expires_at > now)
    }

    fn words(&self) -> String {
        format!("{} {} {}", self.text, self.kind, self.tags.join(" "))
    }

    fn text_bytes(&self) -> usize {
        self.text.len() + self.kind.len() + self.tags.iter().map(String::len).sum::<usize>()
    }
}

#[derive(Debug, Default)]
pub(super) struct TenantMemories {
    /// With their ids.
    memories: Vec<(String, MemoryRecord)>,
    by_id: HashMap<String, usize>,
    /// Over positions in `memories`.
    words: MemoryIndex,
    text_bytes: usize,
}

impl TenantMemories {
    pub fn new(mut memories: Vec<(String, MemoryRecord)>) -> TenantMemories {
        memories.sort_by_key(|(_, memory)| memory.stored_at);
        let mut all = TenantMemories::default();
        memories.into_iter().for_each(|(id, memory)| all.add(id, memory));
        all
    }

    pub fn find(&self, id: &str) -> Option<&MemoryRecord> {
        self.by_id.get(id).map(|at| &self.memories[*at].1)
    }

    /// Adds a memory, unless it is there already.
    pub fn add(&mut self, id: String, memory: MemoryRecord) {
        if self.by_id.contains_key(&id) {
            return;
        }
        let at = self.memories.len();
        self.words.add(at, &memory.words());
        self.text_bytes += memory.text_bytes();
        self.by_id.insert(id.clone(), at);
        self.memories.push((id, memory));
    }

    pub fn is_full(&self, limits: &MemoryLimits) -> bool {
        self.memories.len() >= limits.memories_max || self.text_bytes >= limits.text_mib_max << 20
    }

    /// The best first, each with its score.
    pub fn search(&self, query: &str, limit: usize, now: Timestamp) -> Vec<(f64, &str, &MemoryRecord)> {
        let ranked = self.words.search(query).into_iter().map(|(at, score)| {
            let (id, memory) = &self.memories[at];
            // Importance changes the score by a factor of up to three.
            (score * (0.5 + memory.importance), id.as_str(), memory)
        });
        let mut found: Vec<(f64, &str, &MemoryRecord)> =
            ranked.filter(|(_, _, memory)| memory.is_known_at(now)).collect();
        found.sort_by(|(score, id, memory), (other_score, other_id, other)| {
            let by_score = other_score.total_cmp(score);
            by_score.then(other.stored_at.cmp(&memory.stored_at)).then(id.cmp(other_id))
        });
        found.truncate(limit);
        found
    }

    /// Newest first.
    pub fn recent<'a>(
        &'a self,
        kind: Option<&'a str>,
        now: Timestamp,
    ) -> impl Iterator<Item = (&'a str, &'a MemoryRecord)> {
        let newest = self.memories.iter().rev().map(|(id, memory)| (id.as_str(), memory));
        newest.filter(move |(_, memory)| kind.is_none_or(|kind| memory.kind == kind) && memory.is_known_at(now))
    }

    /// The ids of memories that have expired.
    pub fn expired(&self, now: Timestamp) -> Vec<String> {
        let expired = self.memories.iter().filter(|(_, memory)| !memory.is_known_at(now));
        expired.map(|(id, _)| id.clone()).collect()
    }

    pub fn remove(&mut self, ids: &[String]) {
        let ids: HashSet<&String> = ids.iter().collect();
        let mut memories = std::mem::take(&mut self.memories);
        memories.retain(|(id, _)| !ids.contains(id));
        *self = TenantMemories::new(memories);
    }
}
