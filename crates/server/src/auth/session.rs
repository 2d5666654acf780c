//! Sessions of browsers, and the links that begin one.
//!
//! A cookie is worth as much as what it was given for: it ends with the key or token, after some silence, after half a
//! day, and when somebody leaves. Links are made by whoever has the database, and are good once.

use super::key::KeyStatus;
use super::principal::{Principal, Source};
use super::scope::Scopes;
use super::{Auth, Scope, Unknown, held, require, secret, token};
use crate::fault::Fault;
use crate::guest::Guest;
use crate::limits::{LINKS_MAX, SESSIONS_MAX};
use rutter_core::hash::Hash;
use rutter_core::port::query::Page;
use rutter_core::port::register::{Change, Changes, Kind};
use rutter_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::IpAddr;

/// A session that nobody uses for so long has ended.
pub const IDLE_MAX: Millis = Millis::seconds(30 * 60);
/// A session ends after so long in any case.
pub const AGE_MAX: Millis = Millis::hours(12);
/// How long a link may wait to be opened.
pub const LINK_AGE_MAX: Millis = Millis::seconds(10 * 60);

/// What pages need to know of the browser they go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Browser {
    /// Goes with every form, as `csrf`, or in the header `X-CSRF-Token`: only our own pages know it.
    pub csrf: String,
}

/// A session as whoever looks after the installation sees it. Nobody can come in with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// The hash of its cookie.
    pub id: String,
    pub name: String,
    pub scopes: Scopes,
    pub source: Source,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
}

/// A session as it is kept, under the hash of its cookie.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Session {
    name: String,
    scopes: Scopes,
    source: Source,
    /// Ties the session to the very token it was begun with. The cookie is in it, so that it tells nothing of the token.
    tie: Option<Hash>,
    created_at: Timestamp,
    used_at: Timestamp,
    /// Was used since it was last written.
    #[serde(skip)]
    pub(super) is_touched: bool,
}

/// A link as it is kept, under the hash of its code.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Link {
    person: String,
    scopes: Scopes,
    expires_at: Timestamp,
}

impl Session {
    pub(super) fn has_ended(&self, now: Timestamp) -> bool {
        now >= self.used_at.plus(IDLE_MAX) || now >= self.created_at.plus(AGE_MAX)
    }
}

impl Auth {
    /// Whose cookie this is.
    pub fn session(&self, cookie: &str) -> Option<(Principal, Browser)> {
        let now = self.now();
        let mut sessions = held(&self.sessions);
        let session = sessions.get_mut(&id_of(cookie)).filter(|session| !session.has_ended(now))?;
        let scopes = match &session.source {
            Source::Key { id } => {
                let keys = held(&self.keys);
                let key = keys.get(id).filter(|key| key.status(now) == KeyStatus::Active)?;
                session.scopes.intersection(&key.scopes).copied().collect()
            }
            Source::Token { name } => {
                let mut tokens = self.tokens.iter().filter(|token| token.name == *name);
                let token = tokens.find(|token| session.tie == Some(tie(cookie, &token.hash)))?;
                session.scopes.intersection(&token.role.scopes()).copied().collect()
            }
            Source::Link {} => session.scopes.clone(),
        };
        (session.used_at, session.is_touched) = (now, true);
        let (tenant, name, source) = (self.tenant.clone(), session.name.clone(), session.source.clone());
        let browser = Browser { csrf: csrf_of(cookie) };
        Some((Principal { tenant, name, scopes, source }, browser))
    }

    /// Makes a link's code: whoever opens it first comes in as the person who had it made, with the same rights.
    pub async fn link(&self, by: &Guest) -> Result<String, Fault> {
        require(by, Scope::Admin)?;
        let _pen = self.pen.lock().await;
        let now = self.now();
        let mut changes = self.spent_links(now).await?;
        let code = secret::fresh();
        let (person, scopes, expires_at) = (by.person.clone(), by.scopes.clone(), now.plus(LINK_AGE_MAX));
        let link = Link { person, scopes, expires_at };
        changes.push(Change::put(Kind::Link, &id_of_link(&code), json!(link)).expecting(0));
        self.write(changes, now).await?;
        Ok(code)
    }

    /// Begins a session for whoever has a link that was not opened yet, and returns its cookie.
    pub async fn enter_by_link(&self, code: &str, peer: IpAddr) -> Result<Result<String, Unknown>, Fault> {
        let _pen = self.pen.lock().await;
        let (now, id) = (self.now(), id_of_link(code));
        if let Some(retry_after_seconds) = held(&self.failures).wait_seconds(peer, now)
            && !secret::is_fresh(code)
        {
            return Ok(Err(Unknown::TooMany { retry_after_seconds }));
        }
        let note = self.register.find(&self.tenant, Kind::Link, &id).await?;
        let link = note.as_ref().and_then(|note| Link::deserialize(&*note.value).ok());
        let (Some(link), Some(note)) = (link.filter(|link| now < link.expires_at), note) else {
            let failed = held(&self.failures).failed(peer, now);
            return Ok(Err(match failed {
                Some(retry_after_seconds) => Unknown::TooMany { retry_after_seconds },
                None => Unknown::Nobodys,
            }));
        };
        let (tenant, source) = (self.tenant.clone(), Source::Link {});
        let principal = Principal { tenant, name: link.person, scopes: link.scopes, source };
        let used = Change::remove(Kind::Link, &id).expecting(note.version);
        self.begin(principal, None, vec![used], now).await.map(Ok)
    }

    /// Begins a session for whoever has a token or key, and returns its cookie.
    pub async fn enter_by_secret(
        &self,
        secret: &str,
        peer: IpAddr,
    ) -> Result<Result<String, Unknown>, Fault> {
        let principal = match self.recognise(secret, peer) {
            Ok(principal) => principal,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let _pen = self.pen.lock().await;
        let hash = matches!(principal.source, Source::Token { .. }).then(|| token::digest(secret));
        self.begin(principal, hash, Vec::new(), self.now()).await.map(Ok)
    }

    /// Ends a session.
    pub async fn leave(&self, cookie: &str) -> Result<(), Fault> {
        self.end(id_of(cookie)).await
    }

    async fn end(&self, id: Hash) -> Result<(), Fault> {
        let _pen = self.pen.lock().await;
        // It must not be good again after a restart, so that it is gone from there first.
        self.write(vec![Change::remove(Kind::Session, &id.to_string())], self.now()).await?;
        held(&self.sessions).remove(&id);
        Ok(())
    }

    /// Every session that has not ended, the newest first.
    pub fn sessions(&self, by: &Guest) -> Result<Vec<SessionView>, Fault> {
        require(by, Scope::Admin)?;
        let now = self.now();
        let sessions = held(&self.sessions);
        let open = sessions.iter().filter(|(_, session)| !session.has_ended(now));
        let view = |(id, session): (&Hash, &Session)| SessionView {
            id: id.to_string(),
            name: session.name.clone(),
            scopes: session.scopes.clone(),
            source: session.source.clone(),
            created_at: session.created_at,
            used_at: session.used_at,
        };
        let mut views: Vec<SessionView> = open.map(view).collect();
        views.sort_by(|one, other| (other.created_at, &other.id).cmp(&(one.created_at, &one.id)));
        Ok(views)
    }

    /// Ends somebody's session. Once more changes nothing.
    pub async fn end_session(&self, by: &Guest, id: &str) -> Result<(), Fault> {
        require(by, Scope::Admin)?;
        let id = Hash::parse(id).ok_or_else(|| Fault::missing("session", id))?;
        self.end(id).await
    }

    /// The caller has the pen.
    async fn begin(
        &self,
        principal: Principal,
        token: Option<Hash>,
        mut changes: Vec<Change>,
        now: Timestamp,
    ) -> Result<String, Fault> {
        let cookie = secret::fresh();
        let id = id_of(&cookie);
        let Principal { name, scopes, source, .. } = principal;
        let tie = token.map(|hash| tie(&cookie, &hash));
        let session = Session { name, scopes, source, tie, created_at: now, used_at: now, is_touched: false };
        let forgotten = self.oldest_session_of_too_many();
        changes.extend(forgotten.map(|id| Change::remove(Kind::Session, &id.to_string())));
        changes.push(Change::put(Kind::Session, &id.to_string(), json!(session)));
        self.write(changes, now).await?;
        let mut sessions = held(&self.sessions);
        forgotten.map(|id| sessions.remove(&id));
        sessions.insert(id, session);
        Ok(cookie)
    }

    fn oldest_session_of_too_many(&self) -> Option<Hash> {
        let sessions = held(&self.sessions);
        let oldest = sessions.iter().min_by_key(|(_, session)| session.used_at);
        oldest.filter(|_| sessions.len() >= SESSIONS_MAX).map(|(id, _)| *id)
    }

    /// Links that are too old; of too many, all.
    async fn spent_links(&self, now: Timestamp) -> Result<Vec<Change>, Fault> {
        let listing = self.register.list(&self.tenant, Kind::Link, Page::first(LINKS_MAX)).await?;
        let is_full = listing.items.len() as u32 >= LINKS_MAX;
        let spent = listing.items.into_iter().filter(|note| {
            is_full || Link::deserialize(&*note.value).map_or(true, |link| link.expires_at <= now)
        });
        Ok(spent.map(|note| Change::remove(Kind::Link, &note.id)).collect())
    }

    pub(super) async fn write(&self, changes: Vec<Change>, at: Timestamp) -> Result<(), Fault> {
        let tenant = self.tenant.clone();
        Ok(self.register.write(Changes { tenant, at, changes, record: None }).await?)
    }
}

/// The name under which a session is listed.
pub fn id_of(cookie: &str) -> Hash {
    Hash::of_fields("rutter/session/v1", &[cookie.as_bytes()])
}

fn id_of_link(code: &str) -> String {
    Hash::of_fields("rutter/link/v1", &[code.as_bytes()]).to_string()
}

fn csrf_of(cookie: &str) -> String {
    Hash::of_fields("rutter/csrf/v1", &[cookie.as_bytes()]).to_string()
}

fn tie(cookie: &str, token: &Hash) -> Hash {
    Hash::of_fields("rutter/session-token/v1", &[cookie.as_bytes(), &token.0])
}
