//! Tokens: secrets in the configuration, or in files beside the database.

use crate::principal::{Credential, Principal, PrincipalRole};
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;

/// A token and the principal it stands for. Only its hash is held in memory.
#[derive(Clone, Debug)]
pub struct AccessToken {
    pub hash: Hash,
    pub name: String,
    pub role: PrincipalRole,
}

impl AccessToken {
    pub fn new(name: &str, role: PrincipalRole, secret: &str) -> AccessToken {
        AccessToken { hash: digest(secret), name: name.to_owned(), role }
    }

    pub fn principal(&self, tenant: &TenantId) -> Principal {
        let credential = Credential::Token { name: self.name.clone() };
        Principal::new(tenant.clone(), &self.name, self.role.scopes(), credential)
    }
}

pub fn digest(secret: &str) -> Hash {
    Hash::of_fields("rutter/token/v1", &[secret.as_bytes()])
}
