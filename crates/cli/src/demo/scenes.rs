//! The six scenes. Each says what it shows, lets it happen, and checks that it ended as told.

mod approval;
mod doubt;
pub(super) mod journal;
mod mistakes;
mod undoing;
mod wheel;

use super::ending::Ending;
use super::place::Place;
use super::teller::Teller;
use super::watch::Watch;
use rutter_core::execution::Identity;
use serde_json::{Value, json};

const ORDER: &str = include_str!("order.yaml");

/// Where the scenes are played.
#[derive(Debug)]
pub(crate) struct Theatre<'a> {
    pub(crate) teller: &'a Teller,
    pub(crate) place: &'a Place,
}

pub(crate) struct Scene {
    pub(crate) title: &'static str,
    pub(crate) shown: &'static str,
    pub(crate) play: fn(&Theatre<'_>) -> anyhow::Result<Ending>,
}

pub(crate) const SCENES: [Scene; 6] = [
    Scene {
        title: "A plan with mistakes",
        shown: "An agent sends its plan over MCP. Plans are compiled: every mistake is told before \
                anything happens, each with a fix.",
        play: mistakes::play,
    },
    Scene {
        title: "A carrier that refuses",
        shown: "What was done is undone, the last thing first, with arguments from what really happened.",
        play: undoing::play,
    },
    Scene {
        title: "A lost answer and a dead server",
        shown: "This payment service charges again when it is called again. The server is killed with -9 \
                after the card was charged and before the answer came.",
        play: doubt::play,
    },
    Scene {
        title: "A yes to one exact call",
        shown: "A charge of 1290 EUR needs a person's yes, which holds for the very call they saw.",
        play: approval::play,
    },
    Scene {
        title: "An agent at the wheel",
        shown: "An agent calls the tools itself and records what it does. Then it dies, and Rutter finishes.",
        play: wheel::play,
    },
    Scene {
        title: "The journal",
        shown: "What is in the journal cannot be changed quietly.",
        play: journal::play,
    },
];

impl<'a> Theatre<'a> {
    /// Follows an execution of the order, and makes room for the names of its steps.
    fn watch(&self, identity: Identity) -> Watch<'a> {
        self.teller.set_names("reserve".len());
        Watch::of(self.place, self.teller, identity)
    }
}

fn order(number: &str, amount: u32) -> Value {
    json!({ "order": number, "sku": "lamp", "amount": amount })
}
