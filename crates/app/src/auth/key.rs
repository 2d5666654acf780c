//! API keys: secrets created for a client, with chosen scopes. The secret is returned once; only its hash is stored.

use super::{Authenticator, SecretRejection, lock, secret};
use crate::error::AppError;
use crate::limits::{KEY_NAME_CHARS_MAX, KEYS_MAX};
use crate::principal::{Credential, Principal};
use crate::rights::Operation;
use crate::scope::AccessScopes;
use rutter_core::hash::Hash;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::port::register::{RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::time::calendar::utc;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A request for a new key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewApiKey {
    /// The name of the principal in journals.
    pub name: String,
    pub scopes: AccessScopes,
    /// `None`: valid until revoked.
    pub expires_in: Option<Millis>,
}

/// A key without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApiKeyView {
    pub id: String,
    pub name: String,
    pub scopes: AccessScopes,
    pub status: KeyStatus,
    pub created_at: String,
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// Accurate to a few minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

/// A new key.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CreatedKeyJson")]
pub struct CreatedKeyView {
    #[serde(flatten)]
    pub key: ApiKeyView,
    /// Returned once, and not again for the same Idempotency-Key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    Active,
    Expired,
    Revoked,
}

/// A key as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredApiKey {
    pub name: String,
    hash: Hash,
    pub scopes: AccessScopes,
    created_at: Timestamp,
    created_by: String,
    expires_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    /// Seen after its time: it stays expired, whatever the clock says later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    was_expired: bool,
    /// Used since it was last written.
    #[serde(skip)]
    pub is_touched: bool,
}

impl StoredApiKey {
    pub fn status(&self, now: Timestamp) -> KeyStatus {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => KeyStatus::Revoked,
            (None, Some(at)) if self.was_expired || at <= now => KeyStatus::Expired,
            _ => KeyStatus::Active,
        }
    }

    /// Notes that it has expired; true if that is new.
    pub fn latch(&mut self, now: Timestamp) -> bool {
        let is_new = !self.was_expired && self.status(now) == KeyStatus::Expired;
        self.was_expired |= is_new;
        self.is_touched |= is_new;
        is_new
    }

    fn view(&self, id: &str, now: Timestamp) -> ApiKeyView {
        ApiKeyView {
            id: id.to_owned(),
            name: self.name.clone(),
            scopes: self.scopes.clone(),
            status: self.status(now),
            created_at: utc(self.created_at),
            created_by: self.created_by.clone(),
            expires_at: self.expires_at.map(utc),
            last_used_at: self.last_used_at.map(utc),
            revoked_at: self.revoked_at.map(utc),
        }
    }
}

/// An administrative request about keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyRequest {
    Create(NewApiKey),
    List,
    Revoke(String),
}

impl Authenticator {
    /// Performs a [`KeyRequest`] and returns the result as JSON.
    pub async fn grant(&self, by: &Principal, wish: KeyRequest) -> Result<Value, AppError> {
        Ok(match wish {
            KeyRequest::Create(new) => {
                let (key, secret) = self.create(by, new).await?;
                json!(CreatedKeyView { key, secret: Some(secret) })
            }
            KeyRequest::List => json!({ "keys": self.list(by)? }),
            KeyRequest::Revoke(id) => json!(self.revoke(by, &id).await?),
        })
    }

    /// Creates a key and returns its secret, this one time. A caller cannot grant scopes it does not have.
    pub async fn create(&self, by: &Principal, new: NewApiKey) -> Result<(ApiKeyView, String), AppError> {
        self.require(by, Operation::ManageKeys)?;
        for scope in &new.scopes {
            self.require_scope(by, *scope)?;
        }
        let name = new.name.trim().to_owned();
        check(&name, &new)?;
        let _pen = self.write_lock.lock().await;
        let now = self.now();
        self.check_room(&name, now)?;
        let (id, chance) = (secret::id(), secret::fresh());
        let secret = secret::named(&id, &chance);
        let key = StoredApiKey {
            name,
            hash: digest(&secret),
            scopes: new.scopes,
            created_at: now,
            created_by: by.actor().to_string(),
            expires_at: new.expires_in.map(|span| now.plus(span)),
            last_used_at: None,
            revoked_at: None,
            was_expired: false,
            is_touched: false,
        };
        // If the id is taken by chance, the expected version makes the write fail.
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        let until = key.expires_at.map(|at| format!(" until {}", utc(at))).unwrap_or_default();
        let change = format!("created for {:?} with {}{until}", key.name, scopes.join(", "));
        self.write_key(by, &id, &key, Some(0), change).await?;
        let view = key.view(&id, now);
        lock(&self.keys).insert(id, key);
        Ok((view, secret))
    }

    /// Returns all keys, also revoked and expired ones.
    pub fn list(&self, by: &Principal) -> Result<Vec<ApiKeyView>, AppError> {
        self.require(by, Operation::ManageKeys)?;
        let now = self.now();
        Ok(lock(&self.keys).iter().map(|(id, key)| key.view(id, now)).collect())
    }

    /// Revokes a key and every session begun with it, at once. Revoking it again changes nothing.
    pub async fn revoke(&self, by: &Principal, id: &str) -> Result<ApiKeyView, AppError> {
        self.require(by, Operation::ManageKeys)?;
        let _pen = self.write_lock.lock().await;
        let now = self.now();
        let mut key = lock(&self.keys).get(id).cloned().ok_or_else(|| {
            let hint = "`rutter key list` shows the keys";
            AppError::missing("key", id).hint(hint)
        })?;
        if key.revoked_at.is_none() {
            key.revoked_at = Some(now);
            self.write_key(by, id, &key, None, format!("revoked; it was {:?}", key.name)).await?;
            // The key may have been used during the write.
            lock(&self.keys).entry(id.to_owned()).and_modify(|stored| stored.revoked_at = Some(now));
        }
        Ok(key.view(id, now))
    }

    /// Returns the principal of a key; `None` if the secret is no key at all.
    pub fn key_of(&self, secret: &str, now: Timestamp) -> Option<Result<Principal, SecretRejection>> {
        let id = secret::name_of(secret)?;
        let mut keys = lock(&self.keys);
        let key = keys.get_mut(id).filter(|key| secret::same(&key.hash, &digest(secret)))?;
        Some(match key.status(now) {
            KeyStatus::Revoked => Err(SecretRejection::Revoked),
            KeyStatus::Expired => {
                if key.latch(now) {
                    self.expired.notify_one();
                }
                Err(SecretRejection::Expired)
            }
            KeyStatus::Active => {
                (key.last_used_at, key.is_touched) = (Some(now), true);
                let credential = Credential::Key { id: id.to_owned() };
                Ok(Principal::new(self.tenant.clone(), &key.name, key.scopes.clone(), credential))
            }
        })
    }

    /// Two principals of the same name could not be distinguished in a journal.
    fn check_room(&self, name: &str, now: Timestamp) -> Result<(), AppError> {
        let keys = lock(&self.keys);
        if keys.len() >= KEYS_MAX {
            let message = format!("there may be {KEYS_MAX} keys, including revoked ones");
            return Err(AppError::new("server.arguments", message));
        }
        let is_token = self.tokens.iter().any(|token| token.name == name) || name == "local";
        let is_key = keys.values().any(|key| key.name == name && key.status(now) == KeyStatus::Active);
        if is_token || is_key {
            let message = format!("the name {name:?} is already in use");
            return Err(AppError::new("server.arguments", message).hint("choose another name, or revoke that key"));
        }
        Ok(())
    }

    /// Writes a key, and the change to the ledger's own journal.
    async fn write_key(
        &self,
        by: &Principal,
        id: &str,
        key: &StoredApiKey,
        expected: Option<u64>,
        change: String,
    ) -> Result<(), AppError> {
        let at = self.now();
        let event = Event::SettingChanged { setting: "key".to_owned(), id: id.to_owned(), change };
        let record = Some(EventRecord { at, actor: by.actor(), event });
        let changes = vec![RegisterChange { expected, ..RegisterChange::put(RegisterKind::Key, id, json!(key)) }];
        let tenant = self.tenant.clone();
        Ok(self.register.write(RegisterWrite { tenant, at, changes, record }).await?)
    }
}

fn check(name: &str, new: &NewApiKey) -> Result<(), AppError> {
    let wrong = |message: String| Err(AppError::new("server.arguments", message));
    let chars = name.chars().count();
    if chars == 0 || chars > KEY_NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return wrong(format!("a key has a name of one line and 1 to {KEY_NAME_CHARS_MAX} characters"));
    }
    if new.scopes.is_empty() {
        return wrong("a key needs a scope: read, operate, approve or admin".to_owned());
    }
    if new.expires_in == Some(Millis(0)) {
        return wrong("the lifetime of a key must be longer than zero".to_owned());
    }
    Ok(())
}

fn digest(secret: &str) -> Hash {
    Hash::of_fields("rutter/key/v1", &[secret.as_bytes()])
}
