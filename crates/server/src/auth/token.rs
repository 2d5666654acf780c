//! Tokens: secrets that stand in the configuration, or in files beside the database.

use super::principal::{Principal, Source};
use crate::guest::Role;
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;

/// A token and who comes with it. Only its hash is kept in memory.
#[derive(Clone, Debug)]
pub struct Token {
    pub(super) hash: Hash,
    pub name: String,
    pub role: Role,
}

impl Token {
    pub fn new(name: &str, role: Role, secret: &str) -> Token {
        Token { hash: digest(secret), name: name.to_owned(), role }
    }

    pub(super) fn principal(&self, tenant: &TenantId) -> Principal {
        let (tenant, name, scopes) = (tenant.clone(), self.name.clone(), self.role.scopes());
        Principal { tenant, source: Source::Token { name: name.clone() }, name, scopes }
    }
}

pub(super) fn digest(secret: &str) -> Hash {
    Hash::of_fields("rutter/token/v1", &[secret.as_bytes()])
}
