//! Tells one client what happens to what it watches: soon, seldom enough, and always the last word.
#![allow(deprecated, reason = "lines of log are for clients of the older era, which has them")]

use crate::desk::Desk;
use crate::limits::EXECUTIONS_KNOWN_MAX;
use crate::mcp::address::Address;
use crate::words;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, RoleServer, SubscriptionSink};
use rutter_core::execution::Identity;
use rutter_core::execution::view::Status;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_engine::{Happening, Live};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::time::Instant;

/// The same notice is not given more often.
const NOTICE_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Feed {
    pub(crate) desk: Arc<Desk>,
    pub(crate) tenant: TenantId,
    pub(crate) interests: Arc<Mutex<Interests>>,
    pub(crate) sink: Sink,
}

pub(crate) enum Sink {
    Legacy(Peer<RoleServer>),
    Modern(SubscriptionSink),
}

/// What a client wants to hear of.
#[derive(Debug, Default)]
pub(crate) struct Interests {
    /// By address, with the execution it is about and the place it takes.
    pub(crate) resources: BTreeMap<String, (ExecutionId, Option<OwnedSemaphorePermit>)>,
    /// That there are new resources.
    lists: bool,
    /// A line when one of `known` needs somebody.
    pub(crate) wants_lines: bool,
    known: VecDeque<ExecutionId>,
    /// Those of which it was said, until they go on.
    needy: BTreeSet<ExecutionId>,
}

impl Interests {
    pub(crate) fn new(lists: bool) -> Interests {
        Interests { lists, ..Interests::default() }
    }

    pub(crate) fn know(&mut self, execution: ExecutionId) {
        if self.known.contains(&execution) {
            return;
        }
        self.known.push_back(execution);
        while self.known.len() > EXECUTIONS_KNOWN_MAX {
            if let Some(oldest) = self.known.pop_front() {
                self.needy.remove(&oldest);
            }
        }
    }

    /// Whether it has just begun to need somebody, as far as this client cares.
    fn begins_to_need(&mut self, execution: &ExecutionId, status: Status) -> bool {
        if status != Status::Waiting {
            self.needy.remove(execution);
            return false;
        }
        self.wants_lines && self.known.contains(execution) && self.needy.insert(execution.clone())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Notice {
    List,
    Resource(String),
}

/// The client went away.
struct Gone;

impl Feed {
    /// Until the client or the engine goes away.
    pub(crate) async fn run(self, mut happenings: Receiver<Happening>) {
        let mut pace = Pace::default();
        if let Sink::Modern(_) = &self.sink {
            // What happened between the promise to tell and now was not heard.
            self.everything(&mut pace);
        }
        loop {
            let told = tokio::select! {
                heard = happenings.recv() => match heard {
                    Ok(happening) => self.hear(&mut pace, happening).await,
                    Err(RecvError::Lagged(_)) => {
                        self.everything(&mut pace);
                        Ok(())
                    }
                    Err(RecvError::Closed) => return,
                },
                () = pace.turn() => self.tell(&mut pace).await,
            };
            if let Err(Gone) = told {
                return;
            }
        }
    }

    async fn hear(&self, pace: &mut Pace, happening: Happening) -> Result<(), Gone> {
        let Happening { identity, live: Live::Recorded { first, status, .. } } = happening else {
            return Ok(());
        };
        if identity.tenant != self.tenant {
            return Ok(());
        }
        let now = Instant::now();
        let needs_somebody = {
            let mut interests = self.interests.lock().unwrap_or_else(PoisonError::into_inner);
            let about =
                interests.resources.iter().filter(|(_, (execution, _))| *execution == identity.execution);
            for (uri, _) in about {
                pace.note(Notice::Resource(uri.clone()), now);
            }
            if first == 1 && interests.lists {
                pace.note(Notice::List, now);
            }
            interests.begins_to_need(&identity.execution, status)
        };
        if needs_somebody { self.line(&identity).await } else { Ok(()) }
    }

    /// After a gap nobody knows what has changed.
    fn everything(&self, pace: &mut Pace) {
        let now = Instant::now();
        let interests = self.interests.lock().unwrap_or_else(PoisonError::into_inner);
        interests.resources.keys().for_each(|uri| pace.note(Notice::Resource(uri.clone()), now));
        if interests.lists {
            pace.note(Notice::List, now);
        }
    }

    async fn tell(&self, pace: &mut Pace) -> Result<(), Gone> {
        for notice in pace.take(Instant::now()) {
            let told = match (&self.sink, notice) {
                (Sink::Legacy(peer), Notice::List) => peer.notify_resource_list_changed().await.is_ok(),
                (Sink::Legacy(peer), Notice::Resource(uri)) => {
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
                }
                (Sink::Modern(sink), Notice::List) => sink.notify_resource_list_changed().await.is_ok(),
                (Sink::Modern(sink), Notice::Resource(uri)) => {
                    sink.notify_resource_updated(uri).await.is_ok()
                }
            };
            if !told {
                return Err(Gone);
            }
        }
        Ok(())
    }

    async fn line(&self, identity: &Identity) -> Result<(), Gone> {
        let (Sink::Legacy(peer), Ok(view)) = (&self.sink, self.desk.engine.view(identity).await) else {
            return Ok(());
        };
        let line = needs_somebody(&identity.execution, &words::summary(&view));
        peer.notify_logging_message(line).await.map_err(|_| Gone)
    }
}

/// The one line there is.
pub(crate) fn needs_somebody(execution: &ExecutionId, summary: &str) -> LoggingMessageNotificationParam {
    let uri = Address::Execution(execution.clone()).to_string();
    let data = json!({ "message": format!("{execution}: {summary}"), "execution_id": execution, "resource_uri": uri });
    LoggingMessageNotificationParam::new(LoggingLevel::Info, data).with_logger("rutter")
}

/// When which notice may be given.
#[derive(Debug, Default)]
struct Pace {
    due: HashMap<Notice, Instant>,
    given: HashMap<Notice, Instant>,
}

impl Pace {
    fn note(&mut self, notice: Notice, now: Instant) {
        let at = self.given.get(&notice).map_or(now, |given| now.max(*given + NOTICE_EVERY));
        self.due.entry(notice).or_insert(at);
    }

    fn take(&mut self, now: Instant) -> Vec<Notice> {
        self.given.retain(|_, given| *given + NOTICE_EVERY > now);
        let taken: Vec<Notice> = self.due.extract_if(|_, at| *at <= now).map(|(notice, _)| notice).collect();
        self.given.extend(taken.iter().map(|notice| (notice.clone(), now)));
        taken
    }

    /// Waits for the next notice that is due; for ever when there is none.
    async fn turn(&self) {
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
    fn many_changes_are_few_notices_and_the_last_one_is_told() {
        let start = Instant::now();
        let (mut pace, mut told) = (Pace::default(), Vec::new());
        // A change every 10 ms for a second; what is due is told at once.
        for ms in 0..1_000 {
            let now = start + Duration::from_millis(ms);
            if ms % 10 == 0 {
                pace.note(Notice::List, now);
            }
            told.extend(pace.take(now).iter().map(|_| ms));
        }
        assert_eq!(told, [0, 200, 400, 600, 800]);
        // The change of the last moment is still to be told, once.
        let later = start + Duration::from_secs(5);
        assert_eq!((pace.take(later).len(), pace.take(later).len()), (1, 0));
        assert_eq!(pace.due.len(), 0);
    }

    #[test]
    fn one_resource_does_not_hold_up_another() {
        let now = Instant::now();
        let mut pace = Pace::default();
        pace.note(Notice::Resource("a".to_owned()), now);
        assert_eq!(pace.take(now).len(), 1);
        pace.note(Notice::Resource("a".to_owned()), now);
        pace.note(Notice::Resource("b".to_owned()), now);
        assert_eq!(pace.take(now), [Notice::Resource("b".to_owned())]);
    }

    #[test]
    fn an_execution_that_goes_on_may_need_somebody_again() {
        let id = ExecutionId::new("exec_1");
        let mut interests = Interests { wants_lines: true, ..Interests::default() };
        assert!(!interests.begins_to_need(&id, Status::Waiting), "it is not theirs");
        interests.know(id.clone());
        let told: Vec<bool> = [Status::Waiting, Status::Waiting, Status::Running, Status::Waiting]
            .into_iter()
            .map(|status| interests.begins_to_need(&id, status))
            .collect();
        assert_eq!(told, [true, false, false, true]);
    }
}
