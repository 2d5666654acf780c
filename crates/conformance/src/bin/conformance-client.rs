//! A client for the conformance suite, which passes the scenario in the environment and the URL as the last argument.

use anyhow::Context;
use rutter_conformance::client::{ClientScenario, context, play};
use std::env;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = env::args().next_back().context("expected the URL of the server")?;
    let scenario = ClientScenario {
        name: env::var("MCP_CONFORMANCE_SCENARIO").context("expected MCP_CONFORMANCE_SCENARIO")?,
        url: url.parse().with_context(|| format!("{url} is not a URL"))?,
        context: context(env::var("MCP_CONFORMANCE_CONTEXT").ok().as_deref())?,
    };
    play(&scenario).await
}
