//! The actor of an event: Rutter, an agent or a person.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The kind of actor. Only people may approve, and settle a doubt by their own statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// Rutter itself: consequences, timers, recovery.
    Rutter,
    Agent,
    Person,
}

/// How an actor proved who it is, where that is less than the credential of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActorProof {
    /// Nothing but the program they use says that this person answered.
    Unproven,
}

/// The proof that a rule demands of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequiredProof {
    /// A credential of their own: the page, a key, a token or the command line. An answer for which only a client program
    /// vouches does not count.
    Credential,
}

/// An actor: its kind and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    pub party: ActorKind,
    pub name: Arc<str>,
    /// Absent where the credential of the request was the proof, and in entries of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ActorProof>,
}

impl Actor {
    pub fn new(party: ActorKind, name: &str) -> Actor {
        Actor { party, name: name.into(), proof: None }
    }

    pub fn rutter() -> Actor {
        Actor::new(ActorKind::Rutter, "rutter")
    }

    pub fn agent(name: &str) -> Actor {
        Actor::new(ActorKind::Agent, name)
    }

    pub fn person(name: &str) -> Actor {
        Actor::new(ActorKind::Person, name)
    }

    /// The same, with only the word of the program they use.
    #[must_use]
    pub fn unproven(self) -> Actor {
        Actor { proof: Some(ActorProof::Unproven), ..self }
    }

    /// Whether more than the word of a program says that it was this actor.
    pub fn is_proven(&self) -> bool {
        self.proof != Some(ActorProof::Unproven)
    }

    /// The name of the credential of an actor at a program, if it has one. Programs cannot put ` at ` into their names.
    pub fn proven_name(&self) -> Option<&str> {
        let (name, _) = self.name.rsplit_once(" at ").filter(|_| self.is_proven())?;
        Some(name)
    }

    /// Whether this actor proved as much as is demanded.
    pub fn satisfies(&self, required: Option<RequiredProof>) -> bool {
        match required {
            Some(RequiredProof::Credential) => self.is_proven(),
            None => true,
        }
    }

    /// Whether both have the same kind and name, whatever proved it: what filters compare.
    pub fn is_same(&self, other: &Actor) -> bool {
        (self.party, &self.name) == (other.party, &other.name)
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.party {
            ActorKind::Rutter => f.write_str("rutter"),
            ActorKind::Agent => write!(f, "agent {}", self.name),
            ActorKind::Person => f.write_str(&self.name),
        }?;
        if self.is_proven() { Ok(()) } else { f.write_str(" (unproven)") }
    }
}
