//! Scopes: four rights, none of which includes another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessScope {
    /// Read plans, executions, journals, tools and statistics.
    Read,
    /// Save and execute plans, control executions, record actions.
    Operate,
    /// Approve, settle doubt, accept a changed tool. A principal with this scope counts as a person.
    Approve,
    /// Administer the installation: keys, webhooks, alerts, retention, trying tools out.
    Admin,
}

impl AccessScope {
    pub const ALL: [AccessScope; 4] =
        [AccessScope::Read, AccessScope::Operate, AccessScope::Approve, AccessScope::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            AccessScope::Read => "read",
            AccessScope::Operate => "operate",
            AccessScope::Approve => "approve",
            AccessScope::Admin => "admin",
        }
    }
}

impl fmt::Display for AccessScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AccessScope {
    type Err = String;

    fn from_str(text: &str) -> Result<AccessScope, String> {
        let found = AccessScope::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| format!("there is no scope {text:?}; there are read, operate, approve and admin"))
    }
}

pub type AccessScopes = BTreeSet<AccessScope>;

/// The scopes of a program.
pub fn of_agent() -> AccessScopes {
    AccessScopes::from([AccessScope::Read, AccessScope::Operate])
}

/// The scopes of the operator.
pub fn of_operator() -> AccessScopes {
    AccessScopes::from(AccessScope::ALL)
}
