//! An HTTP client that connects only where the guard allows it, sends each request once, and knows whether anything
//! can have been sent.
//!
//! Every request has a connection of its own. A pooled one could have been closed by the server in the meantime,
//! and then it would be unknown whether a request got through.

use super::{AddressGuard, AddressRefusal};
use crate::tls;
use reqwest::{Client, redirect, retry};
use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    static CONNECTED: Cell<bool>;
}

/// The client takes nothing from the environment, follows no redirects and retries nothing.
pub fn client(guard: &AddressGuard, connect_timeout: Duration) -> Result<Client, reqwest::Error> {
    tls::client_builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .http1_only()
        .pool_max_idle_per_host(0)
        .no_gzip()
        .connect_timeout(connect_timeout)
        .dns_resolver(guard.clone())
        .connector_layer(ConnectLayer)
        .user_agent(concat!("rutter/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Runs requests so that [`connected`] can be asked within.
pub async fn while_connecting<T>(requests: impl Future<Output = T>) -> T {
    CONNECTED.scope(Cell::new(false), requests).await
}

/// Whether a connection was ready, TLS included, since [`while_connecting`] began. Until then not a byte of a request
/// can have left; from then on it may have.
pub fn connected() -> bool {
    CONNECTED.try_with(Cell::get).unwrap_or(true)
}

/// The guard's refusal, if that is why a request failed.
pub fn refused(error: &reqwest::Error) -> Option<&AddressRefusal> {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(refused) = error.downcast_ref() {
            return Some(refused);
        }
        source = error.source();
    }
    None
}

#[derive(Clone, Copy)]
struct ConnectLayer;

#[derive(Clone)]
struct ConnectService<S>(S);

impl<S> Layer<S> for ConnectLayer {
    type Service = ConnectService<S>;

    fn layer(&self, connector: S) -> ConnectService<S> {
        ConnectService(connector)
    }
}

impl<S, Target> Service<Target> for ConnectService<S>
where
    S: Service<Target>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: Target) -> Self::Future {
        let connecting = self.0.call(target);
        Box::pin(async move {
            let connection = connecting.await?;
            // Outside [`while_connecting`] there is nothing to record.
            let _ = CONNECTED.try_with(|connected| connected.set(true));
            Ok(connection)
        })
    }
}
