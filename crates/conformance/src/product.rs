//! The real surface over a real database in a temporary directory, with the built-in tools.

use anyhow::Context;
use rutter_core::id::WorkerId;
use rutter_engine::{Clock, Engine, Options};
use rutter_server::desk::{Desk, Parts, Settings};
use rutter_server::mcp::Surface;
use rutter_store::Store;
use rutter_tools::assemble::{World, assemble};
use rutter_tools::child::Launcher;
use rutter_tools::guard::SystemResolver;
use rutter_tools::post::Carrier;
use std::path::Path;
use std::sync::Arc;

pub async fn surface(folder: &Path) -> anyhow::Result<Surface> {
    let clock = Clock::system();
    let options = rutter_store::Options {
        reserve_bytes: 0,
        ..rutter_store::Options::new(folder, Arc::new(move || clock.now()))
    };
    let store = Arc::new(Store::open(options).context("the database could not be opened")?);
    let world = World {
        folder: folder.to_owned(),
        launcher: Launcher { program: "/bin/false".into(), arguments: Vec::new() },
        environment: std::env::vars().collect(),
        query: store.clone(),
        clock: Arc::new(move || clock.now()),
    };
    let tooling = assemble(&Default::default(), world).context("the tools could not be assembled")?;
    let registry = tooling.registry;
    let options = Options::new(WorkerId::new("conformance"));
    let engine = Engine::run(store.clone(), store.clone(), registry.clone(), clock, options)
        .await
        .context("the engine did not start")?;
    let settings = Settings { ask_at_client: true };
    let desk = Desk::open(Parts {
        engine,
        store,
        tools: registry,
        post: Arc::new(Carrier::new(&[], Arc::new(SystemResolver)).context("no carrier")?),
        bell: tooling.bells,
        collector: None,
        clock,
        tokens: Vec::new(),
        settings,
        seal: [7; 32],
    })
    .await;
    Ok(Surface::at_the_door(desk.context("the desk did not open")?))
}
