//! What an operator allows beyond the public internet: host names and networks.

use super::AddressRefusal;
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::net::IpAddr;
use url::Host;

#[derive(Debug, Default)]
pub(super) struct AllowList {
    /// As URLs spell them, without a dot at the end.
    names: BTreeSet<String>,
    networks: Vec<IpNet>,
}

impl AllowList {
    pub(super) fn read(entries: &[String]) -> Result<AllowList, AddressRefusal> {
        let mut allow = AllowList::default();
        for entry in entries {
            let refused = || AddressRefusal::Allow(entry.clone());
            if let Ok(network) = entry.parse::<IpNet>() {
                allow.networks.push(network);
            } else if let Ok(address) = entry.parse::<IpAddr>() {
                allow.networks.push(IpNet::from(address.to_canonical()));
            } else {
                match Host::parse(entry).map_err(|_| refused())? {
                    // Patterns are not supported; accepting one would mislead.
                    Host::Domain(name) if name.contains('*') => return Err(refused()),
                    Host::Domain(name) => allow.names.insert(without_last_dot(&name).to_owned()),
                    // Addresses in unusual spellings are refused here, so that the list says what it means.
                    Host::Ipv4(_) | Host::Ipv6(_) => return Err(refused()),
                };
            }
        }
        Ok(allow)
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.contains(without_last_dot(name))
    }

    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }
}

fn without_last_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}
