//! Notifies one client of changes to its subscribed resources: promptly, rate-limited, and always of the last change.
#![allow(deprecated, reason = "log messages are for legacy clients")]

use crate::address::ResourceAddress;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, RoleServer, SubscriptionSink};
use rutter_app::app::App;
use rutter_app::executions::{ExecutionUpdate, UpdateContent};
use rutter_app::limits::EXECUTIONS_KNOWN_MAX;
use rutter_app::wording;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{ExecutionId, TenantId};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::Instant;

/// The shortest interval between two notifications about the same resource.
const NOTICE_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct NotificationFeed {
    pub(crate) app: Arc<App>,
    pub(crate) tenant: TenantId,
    pub(crate) interests: Arc<Mutex<ClientInterests>>,
    pub(crate) sink: NotificationSink,
}

pub(crate) enum NotificationSink {
    Legacy(Peer<RoleServer>),
    Modern(SubscriptionSink),
}

/// What a client subscribed to.
#[derive(Debug, Default)]
pub(crate) struct ClientInterests {
    /// By address, with the execution and the permit.
    pub(crate) resources: BTreeMap<String, (ExecutionId, Option<OwnedSemaphorePermit>)>,
    /// Notify of new resources.
    lists: bool,
    /// Send a log message when one of `known` starts waiting for a person.
    pub(crate) wants_lines: bool,
    known: VecDeque<ExecutionId>,
    /// Executions already reported as waiting, until they continue.
    waiting: BTreeSet<ExecutionId>,
}

impl ClientInterests {
    pub(crate) fn new(lists: bool) -> ClientInterests {
        ClientInterests { lists, ..ClientInterests::default() }
    }

    pub(crate) fn know(&mut self, execution: ExecutionId) {
        if self.known.contains(&execution) {
            return;
        }
        self.known.push_back(execution);
        while self.known.len() > EXECUTIONS_KNOWN_MAX {
            if let Some(oldest) = self.known.pop_front() {
                self.waiting.remove(&oldest);
            }
        }
    }

    /// Whether the execution has just started waiting and this client wants to know.
    fn starts_waiting(&mut self, execution: &ExecutionId, status: ExecutionStatus) -> bool {
        if status != ExecutionStatus::Waiting {
            self.waiting.remove(execution);
            return false;
        }
        self.wants_lines && self.known.contains(execution) && self.waiting.insert(execution.clone())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ClientNotice {
    List,
    Resource(String),
}

/// The client disconnected.
struct ClientGone;

impl NotificationFeed {
    /// Runs until the client disconnects or the engine stops.
    pub(crate) async fn run(self, mut updates: Receiver<ExecutionUpdate>) {
        let mut pace = NoticePacer::default();
        if let NotificationSink::Modern(_) = &self.sink {
            // Updates between the acknowledgement and now were missed.
            self.notify_all(&mut pace);
        }
        loop {
            let answer = tokio::select! {
                heard = updates.recv() => match heard {
                    Ok(update) => self.on_update(&mut pace, update).await,
                    Err(RecvError::Lagged(_)) => {
                        self.notify_all(&mut pace);
                        Ok(())
                    }
                    Err(RecvError::Closed) => return,
                },
                () = pace.until_due() => self.send_due(&mut pace).await,
            };
            if let Err(ClientGone) = answer {
                return;
            }
        }
    }

    async fn on_update(&self, pace: &mut NoticePacer, update: ExecutionUpdate) -> Result<(), ClientGone> {
        let ExecutionUpdate { identity, content: UpdateContent::Recorded { first, status, .. } } = update else {
            return Ok(());
        };
        if identity.tenant != self.tenant {
            return Ok(());
        }
        let now = Instant::now();
        let needs_attention = {
            let mut interests = self.interests.lock().unwrap_or_else(PoisonError::into_inner);
            let about = interests.resources.iter().filter(|(_, (execution, _))| *execution == identity.execution);
            for (uri, _) in about {
                pace.note(ClientNotice::Resource(uri.clone()), now);
            }
            if first == 1 && interests.lists {
                pace.note(ClientNotice::List, now);
            }
            interests.starts_waiting(&identity.execution, status)
        };
        if needs_attention { self.line(&identity).await } else { Ok(()) }
    }

    /// After missed updates every subscribed resource may have changed.
    fn notify_all(&self, pace: &mut NoticePacer) {
        let now = Instant::now();
        let interests = self.interests.lock().unwrap_or_else(PoisonError::into_inner);
        interests.resources.keys().for_each(|uri| pace.note(ClientNotice::Resource(uri.clone()), now));
        if interests.lists {
            pace.note(ClientNotice::List, now);
        }
    }

    async fn send_due(&self, pace: &mut NoticePacer) -> Result<(), ClientGone> {
        for notice in pace.take(Instant::now()) {
            let is_reported = match (&self.sink, notice) {
                (NotificationSink::Legacy(peer), ClientNotice::List) => {
                    peer.notify_resource_list_changed().await.is_ok()
                }
                (NotificationSink::Legacy(peer), ClientNotice::Resource(uri)) => {
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
                }
                (NotificationSink::Modern(sink), ClientNotice::List) => {
                    sink.notify_resource_list_changed().await.is_ok()
                }
                (NotificationSink::Modern(sink), ClientNotice::Resource(uri)) => {
                    sink.notify_resource_updated(uri).await.is_ok()
                }
            };
            if !is_reported {
                return Err(ClientGone);
            }
        }
        Ok(())
    }

    async fn line(&self, identity: &ExecutionIdentity) -> Result<(), ClientGone> {
        let (NotificationSink::Legacy(peer), Ok(view)) = (&self.sink, self.app.view(identity).await) else {
            return Ok(());
        };
        let line = attention_message(&identity.execution, &wording::summary(&view));
        peer.notify_logging_message(line).await.map_err(|_| ClientGone)
    }
}

/// The log message about an execution that waits for a person.
pub(crate) fn attention_message(execution: &ExecutionId, summary: &str) -> LoggingMessageNotificationParam {
    let uri = ResourceAddress::Execution(execution.clone()).to_string();
    let data = json!({ "message": format!("{execution}: {summary}"), "execution_id": execution, "resource_uri": uri });
    LoggingMessageNotificationParam::new(LoggingLevel::Info, data).with_logger("rutter")
}

/// When each notification is due.
#[derive(Debug, Default)]
struct NoticePacer {
    due: HashMap<ClientNotice, Instant>,
    given: HashMap<ClientNotice, Instant>,
}

impl NoticePacer {
    fn note(&mut self, notice: ClientNotice, now: Instant) {
        let at = self.given.get(&notice).map_or(now, |given| now.max(*given + NOTICE_EVERY));
        self.due.entry(notice).or_insert(at);
    }

    fn take(&mut self, now: Instant) -> Vec<ClientNotice> {
        self.given.retain(|_, given| *given + NOTICE_EVERY > now);
        let taken: Vec<ClientNotice> = self.due.extract_if(|_, at| *at <= now).map(|(notice, _)| notice).collect();
        self.given.extend(taken.iter().map(|notice| (notice.clone(), now)));
        taken
    }

    /// Waits for the next notification that is due; for ever when there is none.
    async fn until_due(&self) {
        match self.due.values().min() {
            Some(at) => tokio::time::sleep_until(*at).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_changes_give_few_notices_including_the_last_change() {
        let start = Instant::now();
        let (mut pace, mut items) = (NoticePacer::default(), Vec::new());
        // A change every 10 ms for a second; due notices are taken at once.
        for ms in 0..1_000 {
            let now = start + Duration::from_millis(ms);
            if ms % 10 == 0 {
                pace.note(ClientNotice::List, now);
            }
            items.extend(pace.take(now).iter().map(|_| ms));
        }
        assert_eq!(items, [0, 200, 400, 600, 800]);
        // The last change is still to be notified, once.
        let later = start + Duration::from_secs(5);
        assert_eq!((pace.take(later).len(), pace.take(later).len()), (1, 0));
        assert_eq!(pace.due.len(), 0);
    }

    #[test]
    fn one_resource_does_not_delay_another() {
        let now = Instant::now();
        let mut pace = NoticePacer::default();
        pace.note(ClientNotice::Resource("a".to_owned()), now);
        assert_eq!(pace.take(now).len(), 1);
        pace.note(ClientNotice::Resource("a".to_owned()), now);
        pace.note(ClientNotice::Resource("b".to_owned()), now);
        assert_eq!(pace.take(now), [ClientNotice::Resource("b".to_owned())]);
    }

    #[test]
    fn an_execution_that_continued_is_reported_when_it_waits_again() {
        let id = ExecutionId::new("exec_1");
        let mut interests = ClientInterests { wants_lines: true, ..ClientInterests::default() };
        assert!(!interests.starts_waiting(&id, ExecutionStatus::Waiting), "the client does not use it");
        interests.know(id.clone());
        let items: Vec<bool> =
            [ExecutionStatus::Waiting, ExecutionStatus::Waiting, ExecutionStatus::Running, ExecutionStatus::Waiting]
                .into_iter()
                .map(|status| interests.starts_waiting(&id, status))
                .collect();
        assert_eq!(items, [true, false, false, true]);
    }
}
