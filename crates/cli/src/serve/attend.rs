//! What a server does beside answering: it counts what happens, and tells those outside who want to hear of it.

use crate::helm::Helm;
use rutter_core::id::TenantId;
use rutter_engine::Clock;
use rutter_server::insight::Insight;
use rutter_server::watch::{Options, Ports, Watch};
use rutter_tools::guard::SystemResolver;
use rutter_tools::post::Carrier;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Goes on until the server ends. Whoever asks at the desk hears of it from now on.
pub(crate) async fn attend(helm: &Helm, closing: &CancellationToken) -> anyhow::Result<JoinSet<()>> {
    let (desk, tenant, clock) = (&helm.desk, TenantId::new("default"), Clock::system());
    let mut work = JoinSet::new();
    work.spawn(Arc::clone(&helm.auth).run(closing.clone()));
    let (feed, query, register) = (desk.feed.clone(), desk.query.clone(), desk.register.clone());
    let insight = Insight::open(tenant.clone(), feed, query, register, clock).await?;
    work.spawn(Arc::clone(&insight).run(closing.clone()));
    let post = Arc::new(Carrier::new(&[], Arc::new(SystemResolver))?);
    let ports = Ports {
        feed: desk.feed.clone(),
        register: desk.register.clone(),
        outbox: desk.outbox.clone(),
        query: desk.query.clone(),
        post,
    };
    let watch = Watch::new(ports, Arc::new(move || clock.now()), Options::new(vec![tenant]));
    work.spawn(Arc::clone(&watch).run(closing.clone()));
    // There is one server in a process, which comes here once.
    let _ = (desk.auth.set(Arc::clone(&helm.auth)), desk.insight.set(insight), desk.watch.set(watch));
    Ok(work)
}
