//! Name resolution by the system, of which the client gets only checked addresses.

use super::AddressGuard;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rutter_core::port::tools::PortFuture;
use std::io;
use std::net::{IpAddr, SocketAddr};

pub trait Resolver: Send + Sync {
    fn resolve(&self, host: &str) -> PortFuture<'_, io::Result<Vec<IpAddr>>>;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str) -> PortFuture<'_, io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

impl Resolve for AddressGuard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let addresses = guard.addresses(name.as_str()).await?;
            // The port is that of the URL.
            let addresses = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}
