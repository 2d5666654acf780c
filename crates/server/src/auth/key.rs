//! Keys: secrets that somebody made for somebody else, with the rights they need. Shown once, kept as a hash.

use super::scope::{Scope, Scopes};
use super::{Auth, Principal, Source, Unknown, held, require, secret};
use crate::fault::Fault;
use crate::guest::Guest;
use crate::limits::{KEY_NAME_CHARS_MAX, KEYS_MAX};
use rutter_core::hash::Hash;
use rutter_core::journal::event::{Event, Record};
use rutter_core::port::register::{Change, Changes, Kind};
use rutter_core::time::calendar::utc;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a key is to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// How journals call whoever comes with it.
    pub name: String,
    pub scopes: Scopes,
    /// `None`: it is good until it is revoked.
    pub expires_in: Option<Millis>,
}

/// A key as anybody may see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeyView {
    pub id: String,
    pub name: String,
    pub scopes: Scopes,
    pub status: KeyStatus,
    pub created_at: String,
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// To within a few minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyStatus {
    Active,
    Expired,
    Revoked,
}

/// A key as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Key {
    pub(super) name: String,
    hash: Hash,
    pub(super) scopes: Scopes,
    created_at: Timestamp,
    created_by: String,
    expires_at: Option<Timestamp>,
    pub(super) last_used_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    /// Was used since it was last written.
    #[serde(skip)]
    pub(super) is_touched: bool,
}

impl Key {
    pub(super) fn status(&self, now: Timestamp) -> KeyStatus {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => KeyStatus::Revoked,
            (None, Some(at)) if at <= now => KeyStatus::Expired,
            _ => KeyStatus::Active,
        }
    }

    fn view(&self, id: &str, now: Timestamp) -> KeyView {
        KeyView {
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

/// What somebody who has the database wants done with its keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    Create(NewKey),
    List,
    Revoke(String),
}

impl Auth {
    /// Does what is wished, and says what there is to tell of it.
    pub async fn grant(&self, by: &Guest, wish: Wish) -> Result<Value, Fault> {
        Ok(match wish {
            Wish::Create(new) => {
                let (key, secret) = self.create(by, new).await?;
                json!({ "key": key, "secret": secret })
            }
            Wish::List => json!({ "keys": self.list(by)? }),
            Wish::Revoke(id) => json!({ "key": self.revoke(by, &id).await? }),
        })
    }

    /// Makes a key. The secret is told now and never again. Nobody gives rights they do not have.
    pub async fn create(&self, by: &Guest, new: NewKey) -> Result<(KeyView, String), Fault> {
        require(by, Scope::Admin)?;
        for scope in &new.scopes {
            require(by, *scope)?;
        }
        let name = new.name.trim().to_owned();
        check(&name, &new)?;
        let _pen = self.pen.lock().await;
        let now = self.now();
        self.check_room(&name, now)?;
        let (id, chance) = (secret::id(), secret::fresh());
        let secret = secret::named(&id, &chance);
        let key = Key {
            name,
            hash: digest(&secret),
            scopes: new.scopes,
            created_at: now,
            created_by: by.actor().to_string(),
            expires_at: new.expires_in.map(|span| now.plus(span)),
            last_used_at: None,
            revoked_at: None,
            is_touched: false,
        };
        // An id that is taken by chance is refused by its version.
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        let until = key.expires_at.map(|at| format!(" until {}", utc(at))).unwrap_or_default();
        let change = format!("created for {:?} with {}{until}", key.name, scopes.join(", "));
        self.write_key(by, &id, &key, Some(0), change).await?;
        let view = key.view(&id, now);
        held(&self.keys).insert(id, key);
        Ok((view, secret))
    }

    /// All keys, also those that are good no more.
    pub fn list(&self, by: &Guest) -> Result<Vec<KeyView>, Fault> {
        require(by, Scope::Admin)?;
        let now = self.now();
        Ok(held(&self.keys).iter().map(|(id, key)| key.view(id, now)).collect())
    }

    /// Ends a key and every session that was begun with it, from now on. Once more changes nothing.
    pub async fn revoke(&self, by: &Guest, id: &str) -> Result<KeyView, Fault> {
        require(by, Scope::Admin)?;
        let _pen = self.pen.lock().await;
        let now = self.now();
        let mut key = held(&self.keys).get(id).cloned().ok_or_else(|| {
            let hint = "rutter key list says which there are";
            Fault::missing("key", id).hint(hint)
        })?;
        if key.revoked_at.is_none() {
            key.revoked_at = Some(now);
            self.write_key(by, id, &key, None, format!("revoked; it was {:?}", key.name)).await?;
            // It may have been used while this was written.
            held(&self.keys).entry(id.to_owned()).and_modify(|kept| kept.revoked_at = Some(now));
        }
        Ok(key.view(id, now))
    }

    /// Whose key a secret is; `None` if it is no key at all.
    pub(super) fn key_of(&self, secret: &str, now: Timestamp) -> Option<Result<Principal, Unknown>> {
        let id = secret::name_of(secret)?;
        let mut keys = held(&self.keys);
        let key = keys.get_mut(id).filter(|key| secret::same(&key.hash, &digest(secret)))?;
        Some(match key.status(now) {
            KeyStatus::Revoked => Err(Unknown::Revoked),
            KeyStatus::Expired => Err(Unknown::Expired),
            KeyStatus::Active => {
                (key.last_used_at, key.is_touched) = (Some(now), true);
                let (tenant, name, scopes) = (self.tenant.clone(), key.name.clone(), key.scopes.clone());
                Ok(Principal { tenant, name, scopes, source: Source::Key { id: id.to_owned() } })
            }
        })
    }

    /// Two that go by one name could not be told apart in a journal.
    fn check_room(&self, name: &str, now: Timestamp) -> Result<(), Fault> {
        let keys = held(&self.keys);
        if keys.len() >= KEYS_MAX {
            let message = format!("there may be {KEYS_MAX} keys, revoked ones among them");
            return Err(Fault::new("server.arguments", message));
        }
        let is_token = self.tokens.iter().any(|token| token.name == name) || name == "local";
        let is_key = keys.values().any(|key| key.name == name && key.status(now) == KeyStatus::Active);
        if is_token || is_key {
            let message = format!("somebody goes by the name {name:?} already");
            return Err(Fault::new("server.arguments", message).hint("choose another, or revoke that key"));
        }
        Ok(())
    }

    /// With what the ledger's own journal says about it.
    async fn write_key(
        &self,
        by: &Guest,
        id: &str,
        key: &Key,
        expected: Option<u64>,
        change: String,
    ) -> Result<(), Fault> {
        let at = self.now();
        let event = Event::SettingChanged { setting: "key".to_owned(), id: id.to_owned(), change };
        let record = Some(Record { at, actor: by.actor(), event });
        let changes = vec![Change { expected, ..Change::put(Kind::Key, id, json!(key)) }];
        let tenant = self.tenant.clone();
        Ok(self.register.write(Changes { tenant, at, changes, record }).await?)
    }
}

fn check(name: &str, new: &NewKey) -> Result<(), Fault> {
    let wrong = |message: String| Err(Fault::new("server.arguments", message));
    let chars = name.chars().count();
    if chars == 0 || chars > KEY_NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return wrong(format!("a key has a name of one line and 1 to {KEY_NAME_CHARS_MAX} characters"));
    }
    if new.scopes.is_empty() {
        return wrong("a key needs a scope: read, operate, approve or admin".to_owned());
    }
    if new.expires_in == Some(Millis(0)) {
        return wrong("a key that expires is good for a while before".to_owned());
    }
    Ok(())
}

fn digest(secret: &str) -> Hash {
    Hash::of_fields("rutter/key/v1", &[secret.as_bytes()])
}
