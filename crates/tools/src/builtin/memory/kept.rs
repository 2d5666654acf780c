//! The memories as they are kept: in the order they came, each once, until they expire.

use super::rank::Index;
use crate::builtin::log::Log;
use crate::builtin::offer::not_done;
use rutter_core::time::Timestamp;
use rutter_core::tool::{Category, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;
use std::path::Path;

const MEMORIES_MAX: usize = 100_000;
const BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remembered {
    /// Made of the tenant and the key of the call, so that a repeated call finds what it stored.
    pub id: String,
    pub tenant: String,
    pub text: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub importance: f64,
    pub tags: Vec<String>,
    pub stored_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

impl Remembered {
    fn is_known_at(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| expires_at > now)
    }

    fn words(&self) -> String {
        format!("{} {} {}", self.text, self.kind, self.tags.join(" "))
    }
}

#[derive(Debug)]
pub(super) struct Kept {
    log: Log<Remembered>,
    memories: Vec<Remembered>,
    by_id: HashMap<String, usize>,
    /// By tenant, over positions in `memories`: nobody's words count for anybody else.
    words: HashMap<String, Index>,
}

impl Kept {
    pub fn open(path: &Path) -> io::Result<Kept> {
        let (log, memories) = Log::open(path)?;
        let mut kept = Kept { log, memories: Vec::new(), by_id: HashMap::new(), words: HashMap::new() };
        memories.into_iter().for_each(|remembered| kept.add(remembered));
        Ok(kept)
    }

    /// Answers what is kept: this, or what an earlier call with the same key stored.
    pub fn store(&mut self, remembered: Remembered) -> Result<Remembered, Outcome> {
        if let Some(at) = self.by_id.get(&remembered.id) {
            return Ok(self.memories[*at].clone());
        }
        if self.is_full() {
            self.forget_expired(remembered.stored_at);
        }
        if self.is_full() {
            let limits = format!("{MEMORIES_MAX} memories or {} MiB", BYTES_MAX / (1024 * 1024));
            let message =
                format!("the memory is full at {limits}; what has `expires_after` makes room in time");
            return Err(not_done(Category::Conflict, message));
        }
        self.log.append(&remembered)?;
        self.add(remembered.clone());
        Ok(remembered)
    }

    pub fn search(&self, tenant: &str, query: &str, limit: usize, now: Timestamp) -> Vec<(f64, Remembered)> {
        let Some(words) = self.words.get(tenant) else { return Vec::new() };
        let ranked = words.search(query).into_iter().map(|(at, score)| {
            let remembered = &self.memories[at];
            // Between an unimportant and an important memory of equal fit lies a factor of three.
            (score * (0.5 + remembered.importance), remembered)
        });
        let mut found: Vec<(f64, &Remembered)> =
            ranked.filter(|(_, remembered)| remembered.is_known_at(now)).collect();
        found.sort_by(|(score, one), (other_score, other)| {
            other_score.total_cmp(score).then(other.stored_at.cmp(&one.stored_at)).then(one.id.cmp(&other.id))
        });
        found.into_iter().take(limit).map(|(score, remembered)| (score, remembered.clone())).collect()
    }

    /// Newest first.
    pub fn recent<'a>(
        &'a self,
        tenant: &'a str,
        kind: Option<&'a str>,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a Remembered> {
        let own = self.memories.iter().rev().filter(move |remembered| remembered.tenant == tenant);
        own.filter(move |remembered| {
            kind.is_none_or(|kind| remembered.kind == kind) && remembered.is_known_at(now)
        })
    }

    fn is_full(&self) -> bool {
        self.memories.len() >= MEMORIES_MAX || self.log.bytes() >= BYTES_MAX
    }

    fn add(&mut self, remembered: Remembered) {
        let at = self.memories.len();
        self.words.entry(remembered.tenant.clone()).or_default().add(at, &remembered.words());
        self.by_id.insert(remembered.id.clone(), at);
        self.memories.push(remembered);
    }

    fn forget_expired(&mut self, now: Timestamp) {
        if self.memories.iter().all(|remembered| remembered.is_known_at(now)) {
            return;
        }
        let mut known = std::mem::take(&mut self.memories);
        known.retain(|remembered| remembered.is_known_at(now));
        if let Err(error) = self.log.rewrite(known.iter()) {
            tracing::warn!(%error, "expired memories could not be removed from memories.log");
        }
        self.by_id.clear();
        self.words.clear();
        known.into_iter().for_each(|remembered| self.add(remembered));
    }
}
