//! Whoever a secret belongs to.

use super::scope::Scopes;
use crate::guest::{Guest, Toolset};
use rutter_core::id::TenantId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Somebody who was recognised.
///
/// An access token of an identity provider will be one more [`Source`]: its subject becomes the name, a claim of it the
/// tenant, and of its scopes those that we know stay. Everything behind this type takes tenant and rights from it, so
/// that nothing else changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub tenant: TenantId,
    /// How journals call them.
    pub name: String,
    pub scopes: Scopes,
    pub source: Source,
}

/// How somebody was recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Token {
        name: String,
    },
    Key {
        id: String,
    },
    /// A one-time link, which only the owner of the database can have made.
    Link {},
}

impl Principal {
    /// As a guest who comes with a secret.
    pub fn guest(self, toolsets: BTreeSet<Toolset>) -> Guest {
        let id = match &self.source {
            Source::Token { name } => format!("token:{name}"),
            Source::Key { id } => format!("key:{id}"),
            Source::Link {} => format!("person:{}", self.name),
        };
        let Principal { tenant, name, scopes, .. } = self;
        Guest { tenant, id, person: name.clone(), name, scopes, toolsets, is_local: false }
    }
}
