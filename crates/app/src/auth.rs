//! Authentication: recognises the secret of a request and returns its [`Principal`].
//!
//! A secret is a token of the configuration, a [`key`], or the cookie of a browser [`session`].

pub mod failures;
pub mod key;
mod persistence;
pub mod secret;
pub mod session;
pub mod token;

pub use crate::scope::{AccessScope, AccessScopes};
pub use session::BrowserContext;
pub use token::AccessToken;

use crate::error::AppError;
use crate::principal::Principal;
use crate::refusals::RefusalLog;
use crate::rights::{self, Operation};
use failures::SecretFailures;
use key::StoredApiKey;
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::register::Register;
use rutter_core::time::Timestamp;
use session::StoredSession;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub type AuthClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Knows every secret by its hash. One per server, and the only writer of keys and sessions.
pub struct Authenticator {
    register: Arc<dyn Register>,
    /// The tenant of every principal, as long as there is only one.
    tenant: TenantId,
    clock: AuthClock,
    tokens: Vec<AccessToken>,
    keys: Mutex<BTreeMap<String, StoredApiKey>>,
    sessions: Mutex<HashMap<Hash, StoredSession>>,
    failures: Mutex<SecretFailures>,
    /// Where refusals are recorded; a command that owns the database without a server has none.
    refusals: OnceLock<Arc<RefusalLog>>,
    /// A key was seen expired for the first time: that is written at once.
    expired: tokio::sync::Notify,
    /// Held while keys or sessions are changed, so that what was checked still holds when it is written.
    write_lock: tokio::sync::Mutex<()>,
}

/// Why a secret is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretRejection {
    Unrecognised,
    /// Returned only to a client that sent the right secret.
    Revoked,
    Expired,
    /// Too many wrong secrets came from this peer; this one was not checked.
    TooMany {
        retry_after_seconds: u64,
    },
}

impl SecretRejection {
    pub fn fault(self) -> AppError {
        let hint = "`rutter key list` shows which keys are valid";
        match self {
            SecretRejection::Unrecognised => {
                let hint = "tokens are beside the database (agent.token); `rutter key create` creates keys";
                AppError::new("server.unauthorized", "unknown token or key").hint(hint)
            }
            SecretRejection::Revoked => AppError::new("server.unauthorized", "this key was revoked").hint(hint),
            SecretRejection::Expired => AppError::new("server.unauthorized", "this key has expired").hint(hint),
            SecretRejection::TooMany { .. } => {
                let message = format!("more than {} wrong tokens or keys a minute", failures::FAILURES_MAX);
                AppError { retryable: true, ..AppError::new("server.busy", message) }
            }
        }
    }
}

impl Authenticator {
    /// Loads the keys and sessions. `tokens` come from the configuration and from the files beside the database.
    pub async fn open(
        register: Arc<dyn Register>,
        tenant: TenantId,
        clock: AuthClock,
        tokens: Vec<AccessToken>,
    ) -> Result<Arc<Authenticator>, port::Error> {
        let auth = Authenticator {
            register,
            tenant,
            clock,
            tokens,
            keys: Mutex::default(),
            sessions: Mutex::default(),
            failures: Mutex::default(),
            refusals: OnceLock::new(),
            expired: tokio::sync::Notify::new(),
            write_lock: tokio::sync::Mutex::default(),
        };
        auth.read().await?;
        // A key that expired while no process ran stays expired, whatever the clock says later.
        auth.latch_expired().await;
        Ok(Arc::new(auth))
    }

    pub(crate) fn record_refusals(&self, refusals: Arc<RefusalLog>) {
        // It is set once, when the application opens.
        let _ = self.refusals.set(refusals);
    }

    /// Returns an error that names the missing scope unless the principal may do this; the refusal is recorded.
    pub fn require(&self, by: &Principal, operation: Operation) -> Result<(), AppError> {
        match self.refusals.get() {
            Some(refusals) => refusals.require(by, operation),
            None => rights::check(by, operation),
        }
    }

    fn require_scope(&self, by: &Principal, scope: AccessScope) -> Result<(), AppError> {
        match self.refusals.get() {
            Some(refusals) => refusals.require_scope(by, Operation::ManageKeys.row().name, scope),
            None => rights::check_scope(by, scope),
        }
    }

    /// Records that a request was refused because of its secret, or because it had none.
    pub fn note_stranger(&self, peer: IpAddr, error: &AppError) {
        if let Some(refusals) = self.refusals.get() {
            refusals.note_stranger(&self.tenant, peer, error);
        }
    }

    /// Records that a principal used the session of another one.
    pub fn note_foreign_session(&self, by: &Principal, error: &AppError) {
        if let Some(refusals) = self.refusals.get() {
            refusals.note_foreign_session(by, error);
        }
    }

    /// Returns the principal of a token or key. Failures are counted per peer.
    pub fn recognise(&self, secret: &str, peer: IpAddr) -> Result<Principal, SecretRejection> {
        let now = self.now();
        // A generated secret cannot be guessed, so it is always checked. A chosen one could be, so it is not checked
        // after too many failures; a broken client thus locks out no valid client that shares its address.
        if !secret::is_made_here(secret)
            && let Some(retry_after_seconds) = lock(&self.failures).wait_seconds(peer, now)
        {
            return Err(SecretRejection::TooMany { retry_after_seconds });
        }
        let found = self.principal_of(secret, now);
        // A client with a revoked or expired key is not guessing.
        if found == Err(SecretRejection::Unrecognised)
            && let Some(retry_after_seconds) = lock(&self.failures).failed(peer, now)
        {
            return Err(SecretRejection::TooMany { retry_after_seconds });
        }
        found
    }

    fn principal_of(&self, secret: &str, now: Timestamp) -> Result<Principal, SecretRejection> {
        if let Some(found) = self.key_of(secret, now) {
            return found;
        }
        let hash = token::digest(secret);
        let token = self.tokens.iter().find(|token| secret::same(&token.hash, &hash));
        token.map(|token| token.principal(&self.tenant)).ok_or(SecretRejection::Unrecognised)
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authenticator").field("tenant", &self.tenant).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
