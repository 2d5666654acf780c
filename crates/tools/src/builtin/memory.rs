//! `memory`: texts that an agent stores for later and finds by their words.
//!
//! Memories are notes. Those of a tenant are read once, when they are first needed, and searched in memory.

mod rank;
mod tenant;

pub(super) use tenant::MemoryRecord;

use super::builtin_tools::{
    BuiltinEffect, BuiltinTools, invalid, limit, not_done, on_a_thread, read, served, store_failed, text, unknown,
};
use super::moment;
use super::notes::NoteStore;
use crate::connector::{ConnectorRequest, ServedTool};
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::port::Error;
use rutter_core::port::register::{RegisterChange, RegisterKind};
use rutter_core::port::tools::PortFuture;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{CallOutcome, FailureCategory};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenant::{MemoryLimits, TenantMemories};

const TEXT_CHARACTERS_MAX: usize = 20_000;
const WORD_CHARACTERS_MAX: usize = 64;
const TAGS_MAX: usize = 20;
const QUERY_CHARACTERS_MAX: usize = 1_000;

pub(super) struct MemoryTools {
    notes: NoteStore,
    limits: MemoryLimits,
    /// The tenants that were loaded so far.
    loaded: Mutex<HashMap<TenantId, Arc<Mutex<TenantMemories>>>>,
}

impl MemoryTools {
    pub fn new(notes: NoteStore) -> MemoryTools {
        MemoryTools { notes, limits: MemoryLimits::DEFAULT, loaded: Mutex::default() }
    }

    async fn store(
        &self,
        asked: StoreArguments,
        tenant: &TenantId,
        key: &str,
        now: Timestamp,
    ) -> Result<Value, CallOutcome> {
        let memory = asked.check(now)?;
        let memories = self.of(tenant).await?;
        let id = memory_id(tenant, key);
        if let Some(found) = lock(&memories).find(&id) {
            return Ok(stored_json(&id, found));
        }
        self.make_room(tenant, &memories, now).await?;
        let change = RegisterChange::put(RegisterKind::Memory, &id, json!(memory)).expecting(0);
        let memory = match self.notes.write(tenant, now, vec![change]).await {
            Ok(()) => memory,
            // Another call with this key was faster, or this is a retry of one whose answer was lost.
            Err(Error::Conflict { .. }) => {
                let found = self.notes.find(tenant, RegisterKind::Memory, &id).await.map_err(store_failed)?;
                found.map_or(memory, |note| note.value)
            }
            Err(error) => return Err(store_failed(error)),
        };
        let answer = stored_json(&id, &memory);
        lock(&memories).add(id, memory);
        Ok(answer)
    }

    async fn search(&self, asked: SearchArguments, tenant: &TenantId, now: Timestamp) -> Result<Value, CallOutcome> {
        text("query", &asked.query, QUERY_CHARACTERS_MAX)?;
        let limit = limit(asked.limit)? as usize;
        let memories = self.of(tenant).await?;
        let search = move || {
            let memories = lock(&memories);
            let found = memories.search(&asked.query, limit, now).into_iter();
            let found: Vec<Value> = found.map(|(score, id, memory)| memory_json(id, memory, Some(score))).collect();
            Ok(json!({ "memories": found }))
        };
        on_a_thread(search).await
    }

    async fn recent(&self, asked: RecentArguments, tenant: &TenantId, now: Timestamp) -> Result<Value, CallOutcome> {
        let limit = limit(asked.limit)? as usize;
        let memories = self.of(tenant).await?;
        let memories = lock(&memories);
        let newest = memories.recent(asked.kind.as_deref(), now).take(limit);
        let newest: Vec<Value> = newest.map(|(id, memory)| memory_json(id, memory, None)).collect();
        Ok(json!({ "memories": newest }))
    }

    /// The memories of a tenant, read from the store the first time.
    async fn of(&self, tenant: &TenantId) -> Result<Arc<Mutex<TenantMemories>>, CallOutcome> {
        if let Some(memories) = lock(&self.loaded).get(tenant) {
            return Ok(Arc::clone(memories));
        }
        let mut found: Vec<(String, MemoryRecord)> = Vec::new();
        let read = self.notes.for_each(tenant, RegisterKind::Memory, |note| found.push((note.id, note.value)));
        read.await.map_err(store_failed)?;
        let memories = on_a_thread(move || Ok(TenantMemories::new(found))).await?;
        // Of two calls that read at once the first wins: later calls may have added to its memories already.
        let mut loaded = lock(&self.loaded);
        let memories = loaded.entry(tenant.clone()).or_insert_with(|| Arc::new(Mutex::new(memories)));
        Ok(Arc::clone(memories))
    }

    /// Removes expired memories when the limit is reached; refuses another one if that is not enough.
    async fn make_room(
        &self,
        tenant: &TenantId,
        memories: &Arc<Mutex<TenantMemories>>,
        now: Timestamp,
    ) -> Result<(), CallOutcome> {
        let expired = {
            let memories = lock(memories);
            if !memories.is_full(&self.limits) {
                return Ok(());
            }
            memories.expired(now)
        };
        let removals = expired.iter().map(|id| RegisterChange::remove(RegisterKind::Memory, id)).collect();
        self.notes.write_many(tenant, now, removals).await.map_err(store_failed)?;
        let (memories, limits) = (Arc::clone(memories), self.limits);
        on_a_thread(move || {
            let mut memories = lock(&memories);
            memories.remove(&expired);
            match memories.is_full(&limits) {
                true => Err(full(&limits)),
                false => Ok(()),
            }
        })
        .await
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // A memory is stored before it is added, so a panic in between leaves nothing half done.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Made of the tenant and the key of the call, so that a repeated call finds what it stored.
fn memory_id(tenant: &TenantId, key: &str) -> String {
    let hash = Hash::of_fields("memory", &[tenant.as_str().as_bytes(), key.as_bytes()]).to_string();
    format!("memory_{}", &hash[..26])
}

fn full(limits: &MemoryLimits) -> CallOutcome {
    let MemoryLimits { memories_max, text_mib_max } = limits;
    let message = format!(
        "the memory is full at {memories_max} memories or {text_mib_max} MiB of text; memories with `expires_after` \
                 are removed in time"
    );
    not_done(FailureCategory::Conflict, message)
}

fn stored_json(id: &str, memory: &MemoryRecord) -> Value {
    json!({ "id": id, "expires_at": memory.expires_at.map(moment::write) })
}

fn memory_json(id: &str, memory: &MemoryRecord, score: Option<f64>) -> Value {
    let mut json = json!({
        "id": id,
        "text": memory.text,
        "type": memory.kind,
        "importance": memory.importance,
        "tags": memory.tags,
        "stored_at": moment::write(memory.stored_at),
    });
    if let Some(score) = score {
        json["score"] = json!((score * 1_000.0).round() / 1_000.0);
    }
    json
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreArguments {
    text: String,
    #[serde(rename = "type", default = "fact")]
    kind: String,
    #[serde(default = "middling")]
    importance: f64,
    #[serde(default)]
    tags: Vec<String>,
    expires_after: Option<String>,
}

impl StoreArguments {
    fn check(self, now: Timestamp) -> Result<MemoryRecord, CallOutcome> {
        text("text", &self.text, TEXT_CHARACTERS_MAX)?;
        text("type", &self.kind, WORD_CHARACTERS_MAX)?;
        self.tags.iter().try_for_each(|tag| text("a tag", tag, WORD_CHARACTERS_MAX))?;
        if self.tags.len() > TAGS_MAX {
            return Err(invalid(format!("there are {} tags, {TAGS_MAX} are allowed", self.tags.len())));
        }
        if !(0.0..=1.0).contains(&self.importance) {
            return Err(invalid(format!("importance is {}, 0 to 1 was expected", self.importance)));
        }
        let span = |text: String| {
            Millis::parse(&text).ok_or_else(|| invalid(format!("expected a span such as 12h or 30d, got {text:?}")))
        };
        let expires_at = self.expires_after.map(span).transpose()?.map(|span| now.plus(span));
        let StoreArguments { text, kind, importance, tags, .. } = self;
        Ok(MemoryRecord { text, kind, importance, tags, stored_at: now, expires_at })
    }
}

fn fact() -> String {
    "fact".to_owned()
}

fn middling() -> f64 {
    0.5
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
    limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecentArguments {
    limit: Option<u32>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl BuiltinTools for MemoryTools {
    fn tools(&self) -> Vec<ServedTool> {
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 10 });
        let memories = json!({ "memories": { "type": "array", "items": { "type": "object" } } });
        let kind =
            json!({ "type": "string", "maxLength": WORD_CHARACTERS_MAX, "description": "fact, preference, event…" });
        vec![
            served(
                "store",
                "Keeps a text for later, across executions and restarts. Use it for what will be worth knowing again: \
                 preferences, decisions, what was learned from a failure. Not for secrets.",
                BuiltinEffect::Idempotent,
                json!({
                    "text": { "type": "string", "maxLength": TEXT_CHARACTERS_MAX },
                    "type": kind,
                    "importance": { "type": "number", "minimum": 0, "maximum": 1, "default": 0.5 },
                    "tags": { "type": "array", "items": { "type": "string" }, "maxItems": TAGS_MAX },
                    "expires_after": { "type": "string", "description": "a span such as 12h or 30d; for ever without it" },
                }),
                &["text"],
                json!({ "id": { "type": "string" }, "expires_at": { "type": ["string", "null"] } }),
            ),
            served(
                "search",
                "Finds what was kept by its words, the best match first. Use it before asking a person something they may \
                 have said already.",
                BuiltinEffect::None,
                json!({ "query": { "type": "string", "maxLength": QUERY_CHARACTERS_MAX }, "limit": limit }),
                &["query"],
                memories.clone(),
            ),
            served(
                "recent",
                "Lists what was kept last, the newest first.",
                BuiltinEffect::None,
                json!({ "limit": limit, "type": kind }),
                &[],
                memories,
            ),
        ]
    }

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, Result<Value, CallOutcome>> {
        Box::pin(async move {
            let tenant = &request.id.identity.tenant;
            match request.tool.as_str() {
                "store" => self.store(read(&request.parameters)?, tenant, &request.key, request.now).await,
                "search" => self.search(read(&request.parameters)?, tenant, request.now).await,
                "recent" => self.recent(read(&request.parameters)?, tenant, request.now).await,
                other => Err(unknown(other)),
            }
        })
    }
}

#[cfg(test)]
mod tests;
