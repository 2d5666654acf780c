//! A client for the conformance suite, which says what to play in the environment and where in the last argument.

use anyhow::Context;
use rutter_conformance::client::{Scenario, context, play};
use std::env;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = env::args().next_back().context("expected the address of the server")?;
    let scenario = Scenario {
        name: env::var("MCP_CONFORMANCE_SCENARIO").context("expected MCP_CONFORMANCE_SCENARIO")?,
        url: url.parse().with_context(|| format!("{url} is no address"))?,
        context: context(env::var("MCP_CONFORMANCE_CONTEXT").ok().as_deref())?,
    };
    play(&scenario).await
}
