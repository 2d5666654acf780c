//! Who did it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What kind of party acted. Only people may approve, and settle doubt by their word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// Rutter itself: consequences, timers, recovery.
    Rutter,
    Agent,
    Person,
}

/// A party and the name it goes by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actor {
    pub party: Party,
    pub name: Arc<str>,
}

impl Actor {
    pub fn rutter() -> Actor {
        Actor { party: Party::Rutter, name: "rutter".into() }
    }

    pub fn agent(name: &str) -> Actor {
        Actor { party: Party::Agent, name: name.into() }
    }

    pub fn person(name: &str) -> Actor {
        Actor { party: Party::Person, name: name.into() }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.party {
            Party::Rutter => f.write_str("rutter"),
            Party::Agent => write!(f, "agent {}", self.name),
            Party::Person => f.write_str(&self.name),
        }
    }
}
