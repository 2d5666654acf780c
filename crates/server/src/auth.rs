//! Who somebody is and what they may do, however they come in.
//!
//! A secret that comes with a request is recognised here: a token of the configuration, a [`key`] somebody made, or the
//! cookie of a [`session`] in a browser. Whoever it belongs to is a [`Principal`], and a [`Guest`] from there on.

pub mod admit;
pub mod enter;
pub mod failures;
mod keep;
pub mod key;
pub mod principal;
pub mod scope;
pub mod secret;
pub mod session;
pub mod token;

pub use admit::Peer;
pub use principal::{Principal, Source};
pub use scope::{Scope, Scopes};
pub use session::Browser;
pub use token::Token;

use crate::fault::Fault;
use crate::guest::Guest;
use failures::Failures;
use key::Key;
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::register::Register;
use rutter_core::time::Timestamp;
use session::Session;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Knows every secret by its hash. One per server, which is the only one to write what it reads.
pub struct Auth {
    register: Arc<dyn Register>,
    /// Whose everything is, until a principal can be of another.
    tenant: TenantId,
    clock: Clock,
    tokens: Vec<Token>,
    keys: Mutex<BTreeMap<String, Key>>,
    sessions: Mutex<HashMap<Hash, Session>>,
    failures: Mutex<Failures>,
    /// Held by whoever changes what is kept, so that what was looked at still holds when it is written.
    pen: tokio::sync::Mutex<()>,
}

/// Why a secret is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    Nobodys,
    /// Said only to whoever has the right secret.
    Revoked,
    Expired,
    /// Too many wrong ones came from there; this one was not looked at.
    TooMany {
        retry_after_seconds: u64,
    },
}

impl Auth {
    /// Reads the keys and sessions there are. `tokens` come from the configuration and from the files beside the database.
    pub async fn open(
        register: Arc<dyn Register>,
        tenant: TenantId,
        clock: Clock,
        tokens: Vec<Token>,
    ) -> Result<Arc<Auth>, port::Error> {
        let auth = Auth {
            register,
            tenant,
            clock,
            tokens,
            keys: Mutex::default(),
            sessions: Mutex::default(),
            failures: Mutex::default(),
            pen: tokio::sync::Mutex::default(),
        };
        auth.read().await?;
        Ok(Arc::new(auth))
    }

    /// Whose secret this is: a token's or a key's. Wrong ones are counted where they come from.
    pub fn recognise(&self, secret: &str, peer: IpAddr) -> Result<Principal, Unknown> {
        let now = self.now();
        // Nobody guesses a secret that was made here. One of somebody's choice could be found by trying, so that it is
        // not looked at while too many fail; one broken client locks nobody out who shares its address.
        if !secret::is_made_here(secret)
            && let Some(retry_after_seconds) = held(&self.failures).wait_seconds(peer, now)
        {
            return Err(Unknown::TooMany { retry_after_seconds });
        }
        let found = self.principal_of(secret, now);
        // Whoever has what was a good key does not guess.
        if found == Err(Unknown::Nobodys)
            && let Some(retry_after_seconds) = held(&self.failures).failed(peer, now)
        {
            return Err(Unknown::TooMany { retry_after_seconds });
        }
        found
    }

    fn principal_of(&self, secret: &str, now: Timestamp) -> Result<Principal, Unknown> {
        if let Some(found) = self.key_of(secret, now) {
            return found;
        }
        let hash = token::digest(secret);
        let token = self.tokens.iter().find(|token| secret::same(&token.hash, &hash));
        token.map(|token| token.principal(&self.tenant)).ok_or(Unknown::Nobodys)
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

/// Refuses whoever lacks a scope, by its name.
pub fn require(guest: &Guest, scope: Scope) -> Result<(), Fault> {
    if guest.may(scope) {
        return Ok(());
    }
    let message = format!("this needs the scope {scope}, which {} does not have", guest.name);
    let hint = format!("an operator makes a key that has it: rutter key create --scope {scope}");
    Err(Fault::new("server.not_allowed", message).hint(hint))
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
