//! The six scenes. Each describes what it shows, runs it, and checks that its promises hold.

mod agent_driver;
mod approval;
mod doubt;
pub(super) mod journal;
mod mistakes;
mod undoing;

use super::directory::DemoDirectory;
use super::ending::SceneEnding;
use super::output::DemoOutput;
use super::watch::DemoWatch;
use rutter_core::execution::ExecutionIdentity;
use serde_json::{Value, json};

const ORDER: &str = include_str!("../../../../examples/demo/order.yaml");

/// What the scenes work with.
#[derive(Debug)]
pub(crate) struct SceneContext<'a> {
    pub(crate) output: &'a DemoOutput,
    pub(crate) directory: &'a DemoDirectory,
}

pub(crate) struct DemoScene {
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) play: fn(&SceneContext<'_>) -> anyhow::Result<SceneEnding>,
}

pub(crate) const SCENES: [DemoScene; 6] = [
    DemoScene {
        title: "A plan with mistakes",
        description: "An agent sends its plan over MCP. Rutter checks it like a compiler: it reports every \
                mistake before anything happens, each with a fix.",
        play: mistakes::play,
    },
    DemoScene {
        title: "A carrier that refuses",
        description: "Completed steps are undone in reverse order, with arguments from what actually happened.",
        play: undoing::play,
    },
    DemoScene {
        title: "A lost response and a killed server",
        description: "This payment service charges again when it is called again. The server is killed with -9 \
                after the card was charged and before the response arrived.",
        play: doubt::play,
    },
    DemoScene {
        title: "Approval of one exact call",
        description: "A charge of 1290 EUR needs a person's approval, which is valid only for the call they saw.",
        play: approval::play,
    },
    DemoScene {
        title: "An agent as the driver",
        description: "An agent calls the tools itself and records each call. Then it dies, and Rutter finishes.",
        play: agent_driver::play,
    },
    DemoScene { title: "The journal", description: "A journal cannot be changed unnoticed.", play: journal::play },
];

impl<'a> SceneContext<'a> {
    /// Follows an execution.
    fn watch(&self, identity: ExecutionIdentity) -> DemoWatch<'a> {
        DemoWatch::of(self.directory, self.output, identity)
    }
}

fn order(number: &str, amount: u32) -> Value {
    json!({ "order": number, "sku": "lamp", "amount": amount })
}
