//! `memory`: what an agent wants to know again later, found by its words.

mod kept;
mod rank;

use super::moment;
use super::offer::{Effect, Offer, invalid, limit, on_a_thread, read, served, text, unknown};
use crate::connector::{Request, Served};
use kept::{Kept, Remembered};
use rutter_core::hash::Hash;
use rutter_core::port::tools::Reply;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::Outcome;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const TEXT_CHARACTERS_MAX: usize = 20_000;
const WORD_CHARACTERS_MAX: usize = 64;
const TAGS_MAX: usize = 20;
const QUERY_CHARACTERS_MAX: usize = 1_000;

pub(super) struct Memories {
    kept: Arc<Mutex<Kept>>,
}

impl Memories {
    pub fn open(folder: &Path) -> io::Result<Memories> {
        let kept = Kept::open(&folder.join("memories.log"))?;
        Ok(Memories { kept: Arc::new(Mutex::new(kept)) })
    }

    async fn store(
        &self,
        asked: Store,
        tenant: String,
        key: String,
        now: Timestamp,
    ) -> Result<Value, Outcome> {
        text("text", &asked.text, TEXT_CHARACTERS_MAX)?;
        text("type", &asked.kind, WORD_CHARACTERS_MAX)?;
        asked.tags.iter().try_for_each(|tag| text("a tag", tag, WORD_CHARACTERS_MAX))?;
        if asked.tags.len() > TAGS_MAX {
            return Err(invalid(format!("there are {} tags, {TAGS_MAX} are allowed", asked.tags.len())));
        }
        if !(0.0..=1.0).contains(&asked.importance) {
            return Err(invalid(format!("importance is {}, 0 to 1 was expected", asked.importance)));
        }
        let span = |text: String| {
            Millis::parse(&text)
                .ok_or_else(|| invalid(format!("expected a span such as 12h or 30d, got {text:?}")))
        };
        let expires_at = asked.expires_after.map(span).transpose()?.map(|span| now.plus(span));
        let hash = Hash::of_fields("memory", &[tenant.as_bytes(), key.as_bytes()]).to_string();
        let remembered = Remembered {
            id: format!("memory_{}", &hash[..26]),
            tenant,
            text: asked.text,
            kind: asked.kind,
            importance: asked.importance,
            tags: asked.tags,
            stored_at: now,
            expires_at,
        };
        let kept = Arc::clone(&self.kept);
        on_a_thread(move || lock(&kept).store(remembered).map(|kept| stored(&kept))).await
    }

    async fn search(&self, asked: Search, tenant: String, now: Timestamp) -> Result<Value, Outcome> {
        text("query", &asked.query, QUERY_CHARACTERS_MAX)?;
        let limit = limit(asked.limit)? as usize;
        let kept = Arc::clone(&self.kept);
        let search = move || {
            let found = lock(&kept).search(&tenant, &asked.query, limit, now);
            let memories: Vec<Value> =
                found.iter().map(|(score, remembered)| shown(remembered, Some(*score))).collect();
            Ok(json!({ "memories": memories }))
        };
        on_a_thread(search).await
    }

    fn recent(&self, asked: &Recent, tenant: &str, now: Timestamp) -> Result<Value, Outcome> {
        let limit = limit(asked.limit)? as usize;
        let kept = lock(&self.kept);
        let newest = kept.recent(tenant, asked.kind.as_deref(), now).take(limit);
        let memories: Vec<Value> = newest.map(|remembered| shown(remembered, None)).collect();
        Ok(json!({ "memories": memories }))
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    // A line is written before what it says is remembered, so a panic in between leaves nothing half done.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stored(remembered: &Remembered) -> Value {
    json!({ "id": remembered.id, "expires_at": remembered.expires_at.map(moment::write) })
}

fn shown(remembered: &Remembered, score: Option<f64>) -> Value {
    let mut shown = json!({
        "id": remembered.id,
        "text": remembered.text,
        "type": remembered.kind,
        "importance": remembered.importance,
        "tags": remembered.tags,
        "stored_at": moment::write(remembered.stored_at),
    });
    if let Some(score) = score {
        shown["score"] = json!((score * 1_000.0).round() / 1_000.0);
    }
    shown
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Store {
    text: String,
    #[serde(rename = "type", default = "fact")]
    kind: String,
    #[serde(default = "middling")]
    importance: f64,
    #[serde(default)]
    tags: Vec<String>,
    expires_after: Option<String>,
}

fn fact() -> String {
    "fact".to_owned()
}

fn middling() -> f64 {
    0.5
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
    limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recent {
    limit: Option<u32>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Offer for Memories {
    fn tools(&self) -> Vec<Served> {
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 10 });
        let memories = json!({ "memories": { "type": "array", "items": { "type": "object" } } });
        let kind = json!({ "type": "string", "maxLength": WORD_CHARACTERS_MAX, "description": "fact, preference, event…" });
        vec![
            served(
                "store",
                "Keeps a text for later, across executions and restarts. Use it for what will be worth knowing again: \
                 preferences, decisions, what was learned from a failure. Not for secrets.",
                Effect::Idempotent,
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
                Effect::None,
                json!({ "query": { "type": "string", "maxLength": QUERY_CHARACTERS_MAX }, "limit": limit }),
                &["query"],
                memories.clone(),
            ),
            served(
                "recent",
                "Lists what was kept last, the newest first.",
                Effect::None,
                json!({ "limit": limit, "type": kind }),
                &[],
                memories,
            ),
        ]
    }

    fn call(&self, request: Request) -> Reply<'_, Result<Value, Outcome>> {
        Box::pin(async move {
            let tenant = request.id.identity.tenant.as_str().to_owned();
            match request.tool.as_str() {
                "store" => self.store(read(&request.parameters)?, tenant, request.key, request.now).await,
                "search" => self.search(read(&request.parameters)?, tenant, request.now).await,
                "recent" => self.recent(&read(&request.parameters)?, &tenant, request.now),
                other => Err(unknown(other)),
            }
        })
    }
}
