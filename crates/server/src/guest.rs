//! Who comes in, and what they may do.

use crate::auth::scope::{self, Scope, Scopes};
use rutter_core::actor::Actor;
use rutter_core::id::TenantId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Somebody at the door, before anything is known of the program they use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    pub tenant: TenantId,
    /// No two have the same: by it is known which session is whose, and whose requests are counted.
    pub id: String,
    /// The name of the token or key, or how they came in.
    pub name: String,
    pub scopes: Scopes,
    /// Whose word it is when the person at the client answers a question.
    pub person: String,
    pub toolsets: BTreeSet<Toolset>,
    /// Came over the socket: whoever started the program chose its toolsets, and could as well use the command line.
    pub is_local: bool,
}

impl Guest {
    /// Whoever can open a socket only its owner may open.
    pub fn local(tenant: TenantId, person: &str, toolsets: BTreeSet<Toolset>) -> Guest {
        let (id, name, person) = ("local".to_owned(), "local".to_owned(), person.to_owned());
        Guest { tenant, id, name, scopes: scope::of_agent(), person, toolsets, is_local: true }
    }

    /// The one who has the database, at the command line.
    pub fn owner(tenant: TenantId, person: &str) -> Guest {
        let guest = Guest::local(tenant, person, BTreeSet::new());
        Guest { name: person.to_owned(), scopes: scope::of_operator(), ..guest }
    }

    /// May look after what is kept, if the toolset is chosen.
    pub fn may_administer(&self) -> bool {
        self.may(Scope::Admin) || self.is_local
    }

    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// The one who acts over HTTP: a person if theirs is a person's word.
    pub fn actor(&self) -> Actor {
        match self.may(Scope::Approve) {
            true => Actor::person(&self.person),
            false => Actor::agent(&self.name),
        }
    }

    /// The one who acts, by the name of the program that connected.
    pub fn agent(&self, client: Option<&str>) -> Actor {
        Actor::agent(&client.map(plain).filter(|name| !name.is_empty()).unwrap_or_else(|| self.name.clone()))
    }

    /// The person who uses that program.
    pub fn person(&self, client: Option<&str>) -> Actor {
        match client {
            Some(client) => Actor::person(&format!("{} at {}", self.person, plain(client))),
            None => Actor::person(&self.person),
        }
    }
}

/// Programs name themselves; what stands in journals is short and of one line.
fn plain(name: &str) -> String {
    const NAME_CHARS_MAX: usize = 64;
    name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect::<String>().trim().to_owned()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Plans, executes, records. Cannot approve, nor settle doubt by its word.
    Agent,
    /// A person: also approves, settles, and looks after what is kept.
    Operator,
}

impl Role {
    pub fn scopes(self) -> Scopes {
        match self {
            Role::Agent => scope::of_agent(),
            Role::Operator => scope::of_operator(),
        }
    }
}

/// Tools that are offered together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Toolset {
    /// Plan, execute, steer, look.
    Default,
    /// Only record what the agent does with tools of its own.
    Journal,
    /// Look after what is kept, and try tools out.
    Admin,
}

impl Toolset {
    pub const ALL: [Toolset; 3] = [Toolset::Default, Toolset::Journal, Toolset::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Toolset::Default => "default",
            Toolset::Journal => "journal",
            Toolset::Admin => "admin",
        }
    }
}

impl fmt::Display for Toolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Toolset {
    type Err = String;

    fn from_str(text: &str) -> Result<Toolset, String> {
        let found = Toolset::ALL.into_iter().find(|toolset| toolset.as_str() == text);
        found.ok_or_else(|| format!("there is no toolset {text:?}; there are default, journal and admin"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_go_by_a_short_name_of_one_line() {
        let guest = Guest::local(TenantId::new("default"), "operator", BTreeSet::new());
        assert_eq!(&*guest.agent(Some(" a\nb\u{7} ")).name, "ab");
        assert_eq!(guest.agent(Some(&"x".repeat(500))).name.len(), 64);
        assert_eq!(&*guest.agent(Some("\n")).name, "local");
        assert_eq!(&*guest.person(Some("claude-code")).name, "operator at claude-code");
    }
}
