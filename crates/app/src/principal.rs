//! Who sends a request, and what they may do.

use crate::scope::{self, AccessScope, AccessScopes};
use rutter_core::actor::{Actor, ActorKind};
use rutter_core::id::TenantId;
use rutter_core::text::is_hidden;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Who sends a request: a person, an agent or a service, with its tenant, its rights and how it proved itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub tenant: TenantId,
    /// The name of the token or key, or "local".
    pub name: String,
    pub scopes: AccessScopes,
    pub credential: Credential,
    /// The person who answers when the client asks its user.
    pub person: String,
    pub toolsets: BTreeSet<McpToolset>,
    /// The program that acts in the name of this principal, as it calls itself.
    pub client: Option<String>,
}

/// How a principal proved who it is.
///
/// An access token of an identity provider would be one more variant: its subject becomes the name, a claim of it the
/// tenant. Everything behind this type takes tenant and rights from the [`Principal`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credential {
    Token {
        name: String,
    },
    Key {
        id: String,
    },
    /// A one-time sign-in link, which only the owner of the database can create.
    Link {},
    /// The user who may open the socket beside the database, and could as well use the command line.
    Socket {},
    /// The person at a program that came over the socket: only the program says that a person answered.
    Client {},
    Anonymous {},
}

impl Principal {
    pub fn new(tenant: TenantId, name: &str, scopes: AccessScopes, credential: Credential) -> Principal {
        let (name, person) = (name.to_owned(), name.to_owned());
        Principal { tenant, name, scopes, credential, person, toolsets: BTreeSet::new(), client: None }
    }

    /// Unique among credentials: sessions, refusals and rate limits are counted by it. A program chooses its name, so
    /// that is no part of it.
    pub fn id(&self) -> String {
        match &self.credential {
            Credential::Token { name } => format!("token:{name}"),
            Credential::Key { id } => format!("key:{id}"),
            Credential::Link {} => format!("person:{}", self.name),
            Credential::Socket {} | Credential::Client {} => "local".to_owned(),
            Credential::Anonymous {} => "anonymous".to_owned(),
        }
    }

    /// Whose request keys are apart from those of others. Everybody at the socket has the same credential: there people
    /// are told apart by name, and from programs. Programs share their keys, since they choose their names anew with
    /// every request: a repeated start under another name would be a second execution.
    pub fn key_owner(&self) -> String {
        let (Credential::Socket {} | Credential::Client {}) = &self.credential else { return self.id() };
        let actor = self.actor();
        match actor.party {
            ActorKind::Person => format!("{}:person:{}", self.id(), actor.name),
            _ => format!("{}:agents", self.id()),
        }
    }

    /// Any user who can open the socket, which only its owner can. The program they use says who they are.
    pub fn local(tenant: TenantId, person: &str, toolsets: BTreeSet<McpToolset>) -> Principal {
        Principal {
            person: plain(person),
            toolsets,
            ..Principal::new(tenant, "local", scope::of_agent(), Credential::Socket {})
        }
    }

    /// The owner of the database, at the command line.
    pub fn owner(tenant: TenantId, person: &str) -> Principal {
        let principal = Principal::local(tenant, person, BTreeSet::new());
        Principal { name: principal.person.clone(), scopes: scope::of_operator(), ..principal }
    }

    /// Whether it may use the admin toolset: with the admin scope, or over the socket, where the operator chose it.
    pub fn may_administer(&self) -> bool {
        self.may(AccessScope::Admin) || self.credential == Credential::Socket {}
    }

    pub fn may(&self, scope: AccessScope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Whether it acts as a person. A client program never does, nor a principal that may not approve.
    pub fn is_person(&self) -> bool {
        self.client.is_none() && self.may(AccessScope::Approve)
    }

    /// The actor in the journal.
    pub fn actor(&self) -> Actor {
        match &self.client {
            // Programs choose their names, the operator those of keys.
            Some(client) if matches!(self.credential, Credential::Key { .. }) && *client != self.name => {
                Actor::agent(&format!("{} at {client}", self.name))
            }
            Some(client) => Actor::agent(client),
            None if !self.is_person() => Actor::agent(&self.name),
            None if self.credential == Credential::Client {} => Actor::person(&self.person).unproven(),
            None => Actor::person(&self.person),
        }
    }

    /// This principal acting through a program, which never has a person's rights.
    pub fn through(&self, client: Option<&str>) -> Principal {
        let client = client.map(plain).filter(|name| !name.is_empty()).unwrap_or_else(|| self.name.clone());
        let scopes = self.scopes.iter().copied().filter(|scope| *scope != AccessScope::Approve).collect();
        Principal { client: Some(client), scopes, ..self.clone() }
    }

    /// Who administers through a program: the person with the admin scope, or else the program.
    pub fn administrator_at(&self, client: Option<&str>) -> Principal {
        let person = self.person_at(client).filter(|_| self.may(AccessScope::Admin));
        person.unwrap_or_else(|| self.through(client))
    }

    /// The person who uses that program and answers a question in it, if their answer counts: the credential has the
    /// scope approve, or the program came over the socket. Then only the program says that there is a person, and the
    /// journal says that.
    pub fn person_at(&self, client: Option<&str>) -> Option<Principal> {
        let (scopes, credential) = match self.may(AccessScope::Approve) {
            true => (self.scopes.clone(), self.credential.clone()),
            false if self.credential == Credential::Socket {} => {
                (self.scopes.iter().copied().chain([AccessScope::Approve]).collect(), Credential::Client {})
            }
            false => return None,
        };
        let person = match client {
            Some(client) => format!("{} at {}", self.person, plain(client)),
            None => self.person.clone(),
        };
        Some(Principal { client: None, person, scopes, credential, ..self.clone() })
    }
}

/// Programs choose their names, and those of the people who use the socket; the journal gets a short one on one line. What
/// stands before ` at ` is the name of a credential, so that such a name cannot have the word in it.
fn plain(name: &str) -> String {
    const NAME_CHARS_MAX: usize = 64;
    let name: String = name.chars().filter(|c| !c.is_control() && !is_hidden(*c)).take(NAME_CHARS_MAX).collect();
    let words = name.split_whitespace().map(|word| if word == "at" { "@" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrincipalRole {
    /// Plans, executes, records. Cannot approve or settle doubt.
    Agent,
    /// A person: also approves, settles doubt and administers.
    Operator,
}

impl PrincipalRole {
    pub fn scopes(self) -> AccessScopes {
        match self {
            PrincipalRole::Agent => scope::of_agent(),
            PrincipalRole::Operator => scope::of_operator(),
        }
    }
}

/// Tools that MCP clients are offered together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpToolset {
    /// Plan, execute, control, read.
    Default,
    /// Only record what the agent does with its own tools.
    Journal,
    /// Administer, and try tools out.
    Admin,
}

impl McpToolset {
    pub const ALL: [McpToolset; 3] = [McpToolset::Default, McpToolset::Journal, McpToolset::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            McpToolset::Default => "default",
            McpToolset::Journal => "journal",
            McpToolset::Admin => "admin",
        }
    }
}

impl fmt::Display for McpToolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for McpToolset {
    type Err = String;

    fn from_str(text: &str) -> Result<McpToolset, String> {
        let found = McpToolset::ALL.into_iter().find(|toolset| toolset.as_str() == text);
        found.ok_or_else(|| format!("there is no toolset {text:?}; there are default, journal and admin"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_go_by_a_short_name_of_one_line() {
        let principal = Principal::local(TenantId::new("default"), "operator", BTreeSet::new());
        assert_eq!(&*principal.through(Some(" a\nb\u{7}\u{202e} ")).actor().name, "ab");
        assert_eq!(principal.through(Some(&"x".repeat(500))).actor().name.len(), 64);
        assert_eq!(&*principal.through(Some("\n")).actor().name, "local");
    }

    #[test]
    fn an_agent_with_a_key_goes_by_its_name_whatever_its_program_says() {
        let (tenant, credential) = (TenantId::new("default"), Credential::Key { id: "key_1".to_owned() });
        let bot = Principal::new(tenant.clone(), "bot", scope::of_agent(), credential);
        let actor = bot.through(Some("claude")).actor();
        assert_eq!((&actor, actor.proven_name()), (&Actor::agent("bot at claude"), Some("bot")));
        assert_eq!(bot.through(Some("ada at at x")).actor(), Actor::agent("bot at ada @ @ x"));
        assert_eq!(bot.through(None).actor(), Actor::agent("bot"));
        let local = Principal::local(tenant, "operator", BTreeSet::new());
        assert_eq!(local.through(Some("ada at x")).actor().proven_name(), None);
        assert_eq!(local.person_at(Some("x")).unwrap().actor().proven_name(), None, "only the program says so");
        let named = Principal::owner(TenantId::new("default"), "ada at evil").actor();
        assert_eq!((&named, named.proven_name()), (&Actor::person("ada @ evil"), None), "a program named this person");
    }

    #[test]
    fn a_person_at_a_client_is_proven_by_a_scope_and_otherwise_only_named_over_the_socket() {
        let local = Principal::local(TenantId::new("default"), "operator", BTreeSet::new());
        let person = local.person_at(Some("claude-code")).unwrap().actor();
        assert_eq!(person, Actor::person("operator at claude-code").unproven());
        assert_eq!(person.to_string(), "operator at claude-code (unproven)");
        let credential = Credential::Token { name: "remote".to_owned() };
        let remote = |scopes| Principal::new(TenantId::new("default"), "remote", scopes, credential.clone());
        assert_eq!(remote(scope::of_agent()).person_at(Some("x")), None);
        let person = remote(scope::of_operator()).person_at(Some("x")).unwrap().actor();
        assert_eq!((person.is_proven(), person), (true, Actor::person("remote at x")));
    }
}
