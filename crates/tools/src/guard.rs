//! Which addresses may be reached: keeps requests away from internal networks.
//!
//! A name is resolved once, every address it has is checked, and the connection goes to a checked one. Hosts that are
//! written as addresses never reach a resolver, so the URL itself is checked too.

mod address;
mod allow;
mod client;
mod resolve;

pub use client::{client, connected, refused, while_connecting};
pub use resolve::{Resolver, SystemResolver};

use allow::AllowList;
use std::net::IpAddr;
use std::sync::Arc;
use url::{Host, Url};

/// Allows every public address over https, and what `allow` names.
#[derive(Clone)]
pub struct AddressGuard {
    allow: Arc<AllowList>,
    resolver: Arc<dyn Resolver>,
}

/// Why nothing was sent. The text names the host, and nothing else of the URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefusal {
    #[error("expected a URL such as `https://api.example.com/v1`: {0}")]
    Url(String),
    #[error("a URL must not hold a user or password; put it in a header with `${{secret:name}}`")]
    UserInfo,
    #[error("{host} is reached without TLS; use https, or name the host under `allow`")]
    Plain { host: String },
    #[error("{host} is at {address}, which is {reason}; name the host or the address under `allow` if intended")]
    Inside { host: String, address: IpAddr, reason: &'static str },
    #[error("{host} has no address")]
    NoAddress { host: String },
    #[error("{host} could not be resolved")]
    Unresolved { host: String },
    #[error("expected a host, an address or a network such as `10.0.0.0/8` under `allow`, got {0:?}")]
    Allow(String),
}

impl AddressGuard {
    /// `allow` lists hosts, addresses and networks.
    pub fn new(allow: &[String], resolver: Arc<dyn Resolver>) -> Result<AddressGuard, AddressRefusal> {
        Ok(AddressGuard { allow: Arc::new(AllowList::read(allow)?), resolver })
    }

    /// Parses a URL and refuses one that is forbidden by its text alone; addresses are checked on resolution.
    pub fn url(&self, text: &str) -> Result<Url, AddressRefusal> {
        // The URL parser tolerates these, but other parsers read them differently.
        if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
            return Err(AddressRefusal::Url(
                "it must not contain spaces, control characters or backslashes".to_owned(),
            ));
        }
        if has_user(text) {
            return Err(AddressRefusal::UserInfo);
        }
        let url = Url::parse(text).map_err(|error| AddressRefusal::Url(error.to_string()))?;
        self.check(&url)?;
        Ok(url)
    }

    pub fn check(&self, url: &Url) -> Result<(), AddressRefusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressRefusal::Url("only https and http are supported".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressRefusal::UserInfo);
        }
        let Some(host) = url.host() else {
            return Err(AddressRefusal::Url("it has no host".to_owned()));
        };
        let named = match host {
            Host::Domain(name) => self.allow.has_name(name),
            Host::Ipv4(address) => self.check_literal(address.into())?,
            Host::Ipv6(address) => self.check_literal(address.into())?,
        };
        if url.scheme() == "http" && !named {
            return Err(AddressRefusal::Plain { host: host.to_string() });
        }
        Ok(())
    }

    /// The addresses of a name, all of them checked. One internal address makes the whole answer untrustworthy.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, AddressRefusal> {
        let unresolved = || AddressRefusal::Unresolved { host: host.to_owned() };
        let found = self.resolver.resolve(host).await.map_err(|_| unresolved())?;
        if found.is_empty() {
            return Err(AddressRefusal::NoAddress { host: host.to_owned() });
        }
        let mut addresses = Vec::with_capacity(found.len());
        for address in found {
            let address = address.to_canonical();
            if !self.allow.has_name(host) && !self.allow.has_address(address) {
                refuse_inside(host, address)?;
            }
            addresses.push(address);
        }
        Ok(addresses)
    }

    /// Whether `allow` names the address; an internal address that it does not name is refused.
    fn check_literal(&self, address: IpAddr) -> Result<bool, AddressRefusal> {
        let address = address.to_canonical();
        let named = self.allow.has_address(address);
        if !named {
            refuse_inside(&address.to_string(), address)?;
        }
        Ok(named)
    }
}

impl std::fmt::Debug for AddressGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressGuard").field("allow", &self.allow).finish_non_exhaustive()
    }
}

fn refuse_inside(host: &str, address: IpAddr) -> Result<(), AddressRefusal> {
    match address::inside(address) {
        None => Ok(()),
        Some(reason) => Err(AddressRefusal::Inside { host: host.to_owned(), address, reason }),
    }
}

/// Whether a URL as written has a user, even an empty one, which the parsed URL does not show.
fn has_user(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}
