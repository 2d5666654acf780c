//! Browser sessions, and the sign-in links that begin one.
//!
//! A session ends with the key or token it was begun with, when it is idle for long, after half a day, and on sign-out.
//! Only the owner of the database can create a link, and each link works once.

use super::key::KeyStatus;
use super::{Authenticator, SecretRejection, lock, secret, token};
use crate::error::AppError;
use crate::limits::{LINKS_MAX, SESSIONS_MAX};
use crate::principal::{Credential, Principal};
use crate::rights::Operation;
use crate::scope::AccessScopes;
use rutter_core::hash::Hash;
use rutter_core::port::query::Pagination;
use rutter_core::port::register::{RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::IpAddr;

/// A session that is not used for this long has ended.
pub const IDLE_MAX: Millis = Millis::seconds(30 * 60);
/// The longest a session lasts.
pub const AGE_MAX: Millis = Millis::hours(12);
/// How long a link is valid.
pub const LINK_AGE_MAX: Millis = Millis::seconds(10 * 60);

/// What pages need to know about the browser session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserContext {
    /// Sent with every form as `csrf`, or in the header `X-CSRF-Token`: only our own pages know it.
    pub csrf: String,
}

/// A session as administrators see it. It does not contain the cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// The hash of its cookie.
    pub id: String,
    pub name: String,
    pub scopes: AccessScopes,
    pub source: Credential,
    pub created_at: Timestamp,
    pub used_at: Timestamp,
}

/// A session as it is stored, under the hash of its cookie.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredSession {
    name: String,
    scopes: AccessScopes,
    source: Credential,
    /// Binds the session to the token it was begun with. The cookie is hashed into it, so that it reveals no token.
    tie: Option<Hash>,
    created_at: Timestamp,
    used_at: Timestamp,
    /// Used since it was last written.
    #[serde(skip)]
    pub is_touched: bool,
}

/// A link as it is stored, under the hash of its code.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SignInLink {
    person: String,
    scopes: AccessScopes,
    expires_at: Timestamp,
}

impl StoredSession {
    pub fn has_ended(&self, now: Timestamp) -> bool {
        now >= self.used_at.plus(IDLE_MAX) || now >= self.created_at.plus(AGE_MAX)
    }
}

impl Authenticator {
    /// Returns the principal of a cookie.
    pub fn session(&self, cookie: &str) -> Option<(Principal, BrowserContext)> {
        let now = self.now();
        let mut sessions = lock(&self.sessions);
        let session = sessions.get_mut(&id_of(cookie)).filter(|session| !session.has_ended(now))?;
        let scopes = match &session.source {
            Credential::Key { id } => {
                let keys = lock(&self.keys);
                let key = keys.get(id).filter(|key| key.status(now) == KeyStatus::Active)?;
                session.scopes.intersection(&key.scopes).copied().collect()
            }
            Credential::Token { name } => {
                let mut tokens = self.tokens.iter().filter(|token| token.name == *name);
                let token = tokens.find(|token| session.tie == Some(token_binding(cookie, &token.hash)))?;
                session.scopes.intersection(&token.role.scopes()).copied().collect()
            }
            Credential::Link {} => session.scopes.clone(),
            // None of them can sign in to the dashboard.
            Credential::Socket {} | Credential::Client {} | Credential::Anonymous {} => return None,
        };
        (session.used_at, session.is_touched) = (now, true);
        let principal = Principal::new(self.tenant.clone(), &session.name, scopes, session.source.clone());
        Some((principal, BrowserContext { csrf: csrf_of(cookie) }))
    }

    /// Creates a link's code: the first to open it signs in as the person who created it, with the same scopes.
    pub async fn create_sign_in_link(&self, by: &Principal) -> Result<String, AppError> {
        self.require(by, Operation::ManageKeys)?;
        let _pen = self.write_lock.lock().await;
        let now = self.now();
        let mut changes = self.spent_links(now).await?;
        let code = secret::fresh();
        let (person, scopes, expires_at) = (by.person.clone(), by.scopes.clone(), now.plus(LINK_AGE_MAX));
        let link = SignInLink { person, scopes, expires_at };
        changes.push(RegisterChange::put(RegisterKind::Link, &id_of_link(&code), json!(link)).expecting(0));
        self.write(changes, now).await?;
        Ok(code)
    }

    /// Begins a session with a link that was not used yet, and returns its cookie.
    pub async fn sign_in_by_link(&self, code: &str, peer: IpAddr) -> Result<Result<String, SecretRejection>, AppError> {
        let _pen = self.write_lock.lock().await;
        let (now, id) = (self.now(), id_of_link(code));
        if let Some(retry_after_seconds) = lock(&self.failures).wait_seconds(peer, now)
            && !secret::is_fresh(code)
        {
            return Ok(Err(SecretRejection::TooMany { retry_after_seconds }));
        }
        let note = self.register.find(&self.tenant, RegisterKind::Link, &id).await?;
        let link = note.as_ref().and_then(|note| SignInLink::deserialize(&*note.value).ok());
        let (Some(link), Some(note)) = (link.filter(|link| now < link.expires_at), note) else {
            let failed = lock(&self.failures).failed(peer, now);
            return Ok(Err(match failed {
                Some(retry_after_seconds) => SecretRejection::TooMany { retry_after_seconds },
                None => SecretRejection::Unrecognised,
            }));
        };
        let principal = Principal::new(self.tenant.clone(), &link.person, link.scopes, Credential::Link {});
        let used = RegisterChange::remove(RegisterKind::Link, &id).expecting(note.version);
        self.begin_session(principal, None, vec![used], now).await.map(Ok)
    }

    /// Begins a session with a token or key, and returns its cookie.
    pub async fn sign_in_by_secret(
        &self,
        secret: &str,
        peer: IpAddr,
    ) -> Result<Result<String, SecretRejection>, AppError> {
        let principal = match self.recognise(secret, peer) {
            Ok(principal) => principal,
            Err(unknown) => return Ok(Err(unknown)),
        };
        let _pen = self.write_lock.lock().await;
        let hash = matches!(principal.credential, Credential::Token { .. }).then(|| token::digest(secret));
        self.begin_session(principal, hash, Vec::new(), self.now()).await.map(Ok)
    }

    /// Ends a session.
    pub async fn sign_out(&self, cookie: &str) -> Result<(), AppError> {
        self.remove_session(id_of(cookie)).await
    }

    async fn remove_session(&self, id: Hash) -> Result<(), AppError> {
        let _pen = self.write_lock.lock().await;
        // Remove it from the store first: it must not be valid again after a restart.
        self.write(vec![RegisterChange::remove(RegisterKind::Session, &id.to_string())], self.now()).await?;
        lock(&self.sessions).remove(&id);
        Ok(())
    }

    /// Returns every session that has not ended, the newest first.
    pub fn sessions(&self, by: &Principal) -> Result<Vec<SessionView>, AppError> {
        self.require(by, Operation::ManageKeys)?;
        let now = self.now();
        let sessions = lock(&self.sessions);
        let open = sessions.iter().filter(|(_, session)| !session.has_ended(now));
        let view = |(id, session): (&Hash, &StoredSession)| SessionView {
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

    /// Ends any user's session. Ending it again changes nothing.
    pub async fn end_session(&self, by: &Principal, id: &str) -> Result<(), AppError> {
        self.require(by, Operation::ManageKeys)?;
        let id = Hash::parse(id).ok_or_else(|| AppError::missing("session", id))?;
        self.remove_session(id).await
    }

    /// The caller holds the write lock.
    async fn begin_session(
        &self,
        principal: Principal,
        token: Option<Hash>,
        mut changes: Vec<RegisterChange>,
        now: Timestamp,
    ) -> Result<String, AppError> {
        let cookie = secret::fresh();
        let id = id_of(&cookie);
        let Principal { name, scopes, credential: source, .. } = principal;
        let tie = token.map(|hash| token_binding(&cookie, &hash));
        let session = StoredSession { name, scopes, source, tie, created_at: now, used_at: now, is_touched: false };
        let forgotten = self.oldest_session_of_too_many();
        changes.extend(forgotten.map(|id| RegisterChange::remove(RegisterKind::Session, &id.to_string())));
        changes.push(RegisterChange::put(RegisterKind::Session, &id.to_string(), json!(session)));
        self.write(changes, now).await?;
        let mut sessions = lock(&self.sessions);
        forgotten.map(|id| sessions.remove(&id));
        sessions.insert(id, session);
        Ok(cookie)
    }

    fn oldest_session_of_too_many(&self) -> Option<Hash> {
        let sessions = lock(&self.sessions);
        let oldest = sessions.iter().min_by_key(|(_, session)| session.used_at);
        oldest.filter(|_| sessions.len() >= SESSIONS_MAX).map(|(id, _)| *id)
    }

    /// Returns the changes that remove expired links, or all links if there are too many.
    async fn spent_links(&self, now: Timestamp) -> Result<Vec<RegisterChange>, AppError> {
        let listing = self.register.list(&self.tenant, RegisterKind::Link, Pagination::first(LINKS_MAX)).await?;
        let is_full = listing.items.len() as u32 >= LINKS_MAX;
        let spent = listing.items.into_iter().filter(|note| {
            is_full || SignInLink::deserialize(&*note.value).map_or(true, |link| link.expires_at <= now)
        });
        Ok(spent.map(|note| RegisterChange::remove(RegisterKind::Link, &note.id)).collect())
    }

    pub async fn write(&self, changes: Vec<RegisterChange>, at: Timestamp) -> Result<(), AppError> {
        let tenant = self.tenant.clone();
        Ok(self.register.write(RegisterWrite { tenant, at, changes, record: None }).await?)
    }
}

/// The id under which a session is stored and listed.
pub fn id_of(cookie: &str) -> Hash {
    Hash::of_fields("rutter/session/v1", &[cookie.as_bytes()])
}

fn id_of_link(code: &str) -> String {
    Hash::of_fields("rutter/link/v1", &[code.as_bytes()]).to_string()
}

fn csrf_of(cookie: &str) -> String {
    Hash::of_fields("rutter/csrf/v1", &[cookie.as_bytes()]).to_string()
}

fn token_binding(cookie: &str, token: &Hash) -> Hash {
    Hash::of_fields("rutter/session-token/v1", &[cookie.as_bytes(), &token.0])
}
/// The URL a person opens to sign in; `address` is where the server listens.
pub fn link(address: &str, code: &str) -> String {
    format!("{address}/enter?code={code}")
}
