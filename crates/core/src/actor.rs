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

/// An actor: its kind and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    pub party: ActorKind,
    pub name: Arc<str>,
}

impl Actor {
    pub fn rutter() -> Actor {
        Actor { party: ActorKind::Rutter, name: "rutter".into() }
    }

    pub fn agent(name: &str) -> Actor {
        Actor { party: ActorKind::Agent, name: name.into() }
    }

    pub fn person(name: &str) -> Actor {
        Actor { party: ActorKind::Person, name: name.into() }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.party {
            ActorKind::Rutter => f.write_str("rutter"),
            ActorKind::Agent => write!(f, "agent {}", self.name),
            ActorKind::Person => f.write_str(&self.name),
        }
    }
}
