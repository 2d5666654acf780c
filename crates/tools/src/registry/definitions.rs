//! The last known definitions of every server, kept in the register: a server that is down after a restart is still
//! known by its tools. Every change of a definition is an entry in the ledger's own journal.

use super::RegistryClock;
use super::offered_tool::OfferedTools;
use crate::connector::ServedTool;
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::{TenantId, ToolName};
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::limits::{CHANGES_MAX, NOTE_BYTES_MAX};
use rutter_core::port::Error;
use rutter_core::port::query::PageWalk;
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A server that changes more tools than this at once gets one entry for the rest of them.
const CHANGES_RECORDED_MAX: usize = 100;
const PAGE_SIZE: u32 = 500;

pub(crate) struct DefinitionStore {
    register: Arc<dyn Register>,
    clock: RegistryClock,
    /// Servers belong to the installation, not to one of its tenants.
    tenant: TenantId,
}

#[derive(Serialize, Deserialize)]
struct StoredDefinition {
    definition: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

impl DefinitionStore {
    pub(crate) fn new(register: Arc<dyn Register>, clock: RegistryClock) -> DefinitionStore {
        DefinitionStore { register, clock, tenant: TenantId::new("default") }
    }

    /// The definitions of all servers, by the name of the server. An unreadable one is left out: it is listed again.
    pub(crate) async fn load(&self) -> Result<BTreeMap<String, Vec<ServedTool>>, Error> {
        let mut servers: BTreeMap<String, Vec<ServedTool>> = BTreeMap::new();
        let mut walk = PageWalk::new(PAGE_SIZE);
        while let Some(page) = walk.next_page() {
            for item in walk.take(self.register.list(&self.tenant, RegisterKind::Definition, page).await?) {
                let (Some((server, name)), Ok(StoredDefinition { definition, result })) =
                    (item.id.split_once('.'), StoredDefinition::deserialize(&*item.value))
                else {
                    continue;
                };
                let tool = ServedTool { name: name.to_owned(), definition, result };
                servers.entry(server.to_owned()).or_default().push(tool);
            }
        }
        Ok(servers)
    }

    /// Stores what a server serves now, and records what has changed since `before`. Without a `before` the server is
    /// new, and nothing of it has changed.
    pub(crate) async fn update(
        &self,
        server: &str,
        served: &[ServedTool],
        before: Option<&OfferedTools>,
        now: &OfferedTools,
    ) -> Result<(), Error> {
        let (old, new) = (before.map(hashes).unwrap_or_default(), hashes(now));
        let mut changes = Vec::new();
        for tool in served {
            let name = ToolName::new(&format!("{server}.{}", tool.name));
            let Some(hash) = new.get(&name).filter(|hash| old.get(&name) != Some(hash)) else { continue };
            let stored = StoredDefinition { definition: tool.definition.clone(), result: tool.result.clone() };
            let value = json!(stored);
            if value.to_string().len() > NOTE_BYTES_MAX {
                continue;
            }
            let change = match old.get(&name) {
                Some(old) => format!("definition changed from {old} to {hash}"),
                None => format!("new tool, definition {hash}"),
            };
            changes.push((RegisterChange::put(RegisterKind::Definition, name.as_str(), value), change));
        }
        for (name, hash) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
            let change = format!("no longer offered, definition {hash}");
            changes.push((RegisterChange::remove(RegisterKind::Definition, name.as_str()), change));
        }
        match before {
            None => self.store(changes.into_iter().map(|(change, _)| change).collect(), None).await,
            Some(_) => self.store_recorded(server, changes).await,
        }
    }

    /// Each change with its entry.
    async fn store_recorded(&self, server: &str, mut changes: Vec<(RegisterChange, String)>) -> Result<(), Error> {
        let rest = changes.split_off(changes.len().min(CHANGES_RECORDED_MAX));
        for (change, text) in changes {
            tracing::warn!(tool = change.id, change = text, "a tool has changed");
            let id = change.id.clone();
            self.store(vec![change], Some((&id, text))).await?;
        }
        let text = format!("{} more tools changed", rest.len());
        let rest: Vec<RegisterChange> = rest.into_iter().map(|(change, _)| change).collect();
        for (number, piece) in rest.chunks(CHANGES_MAX).enumerate() {
            let record = (number == 0).then(|| (server, text.clone()));
            self.store(piece.to_vec(), record).await?;
        }
        Ok(())
    }

    async fn store(&self, changes: Vec<RegisterChange>, record: Option<(&str, String)>) -> Result<(), Error> {
        let at = (self.clock)();
        let record = record.map(|(id, change)| EventRecord {
            at,
            actor: Actor::rutter(),
            event: Event::SettingChanged { setting: "tool".to_owned(), id: id.to_owned(), change },
        });
        for piece in changes.chunks(CHANGES_MAX) {
            let write =
                RegisterWrite { tenant: self.tenant.clone(), at, changes: piece.to_vec(), record: record.clone() };
            self.register.write(write).await?;
        }
        Ok(())
    }
}

fn hashes(offers: &OfferedTools) -> BTreeMap<ToolName, Hash> {
    offers.by_name.iter().map(|(name, offer)| (name.clone(), offer.tool.definition)).collect()
}

impl std::fmt::Debug for DefinitionStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DefinitionStore").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}
