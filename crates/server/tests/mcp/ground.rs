//! What every installation stands on: a database in a folder, the tools of a configuration, an engine.

use rutter_core::id::WorkerId;
use rutter_engine::{Clock, Engine, Options};
use rutter_store::Store;
use rutter_tools::assemble::{Tooling, World, assemble};
use rutter_tools::child::Launcher;
use rutter_tools::guard::SystemResolver;
use rutter_tools::post::Carrier;
use std::path::Path;
use std::sync::Arc;

pub struct Ground {
    pub clock: Clock,
    pub store: Arc<Store>,
    pub tooling: Tooling,
    pub engine: Engine,
    /// May carry letters to loopback.
    pub post: Arc<Carrier>,
}

impl Ground {
    /// With the tools that some lines of rutter.toml name.
    pub async fn lay(folder: &Path, config: &str) -> Ground {
        let clock = Clock::system();
        let options = rutter_store::Options {
            reserve_bytes: 0,
            ..rutter_store::Options::new(folder, Arc::new(move || clock.now()))
        };
        let store = Arc::new(Store::open(options).unwrap());
        let world = World {
            folder: folder.to_owned(),
            launcher: Launcher { program: "/bin/false".into(), arguments: Vec::new() },
            environment: std::env::vars().collect(),
            query: store.clone(),
            clock: Arc::new(move || clock.now()),
        };
        let tooling = assemble(&toml_edit::de::from_str(config).unwrap(), world).unwrap();
        let (options, tools) = (Options::new(WorkerId::new("worker")), tooling.registry.clone());
        let engine = Engine::run(store.clone(), store.clone(), tools, clock, options).await.unwrap();
        let post = Carrier::new(&["127.0.0.1".to_owned()], Arc::new(SystemResolver)).unwrap();
        Ground { clock, store, tooling, engine, post: Arc::new(post) }
    }
}
