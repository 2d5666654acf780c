//! What somebody may do: four rights, none of which includes another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look at plans, executions, journals, tools and figures.
    Read,
    /// Save and execute plans, steer executions, record what was done.
    Operate,
    /// Say a person's word: approve, settle doubt, accept a changed tool. Whoever has this counts as a person.
    Approve,
    /// Look after the installation: keys, webhooks, alerts, what is kept, trying tools out.
    Admin,
}

impl Scope {
    pub const ALL: [Scope; 4] = [Scope::Read, Scope::Operate, Scope::Approve, Scope::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Operate => "operate",
            Scope::Approve => "approve",
            Scope::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Scope, String> {
        let found = Scope::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| format!("there is no scope {text:?}; there are read, operate, approve and admin"))
    }
}

pub type Scopes = BTreeSet<Scope>;

/// What a program that acts for somebody may do.
pub fn of_agent() -> Scopes {
    Scopes::from([Scope::Read, Scope::Operate])
}

/// What the person who answers for the installation may do.
pub fn of_operator() -> Scopes {
    Scopes::from(Scope::ALL)
}
