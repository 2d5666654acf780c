//! Counts wrong secrets per peer.

use rutter_core::time::{Millis, Timestamp};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

/// Wrong secrets that one peer may send within [`SPAN`]; further ones are not checked.
pub const FAILURES_MAX: usize = 10;
pub const SPAN: Millis = Millis::seconds(60);
/// Peers that are remembered; the one that failed longest ago is forgotten first.
const PEERS_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub struct SecretFailures {
    /// The times of each peer's recent failures, oldest first.
    peers: HashMap<IpAddr, VecDeque<Timestamp>>,
}

impl SecretFailures {
    /// Returns how long a peer has to wait, if it has failed too often.
    pub fn wait_seconds(&mut self, peer: IpAddr, now: Timestamp) -> Option<u64> {
        let times = self.peers.get_mut(&network(peer))?;
        while times.front().is_some_and(|at| at.plus(SPAN) <= now) {
            times.pop_front();
        }
        let oldest = times.front().filter(|_| times.len() >= FAILURES_MAX)?;
        Some(oldest.plus(SPAN).since(now).0.div_ceil(1_000))
    }

    /// Counts a failure, unless there were too many already.
    pub fn failed(&mut self, peer: IpAddr, now: Timestamp) -> Option<u64> {
        if let Some(seconds) = self.wait_seconds(peer, now) {
            return Some(seconds);
        }
        if self.peers.len() >= PEERS_MAX && !self.peers.contains_key(&network(peer)) {
            let last = |times: &VecDeque<Timestamp>| times.back().copied().unwrap_or_default();
            let oldest = self.peers.iter().min_by_key(|(_, times)| last(times)).map(|(peer, _)| *peer);
            oldest.map(|peer| self.peers.remove(&peer));
        }
        self.peers.entry(network(peer)).or_default().push_back(now);
        None
    }
}

/// One IPv6 customer has a whole network of addresses, so these are counted together.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn at(ms: i64) -> Timestamp {
        Timestamp(1_000_000 + ms)
    }

    #[test]
    fn ten_failures_a_minute_are_counted_and_the_eleventh_has_to_wait() {
        let mut failures = SecretFailures::default();
        for number in 0..FAILURES_MAX as i64 {
            assert_eq!(failures.failed(PEER, at(number)), None, "{number}");
        }
        assert_eq!(failures.failed(PEER, at(10)), Some(60));
        assert_eq!(failures.wait_seconds(PEER, at(59_999)), Some(1));
        assert_eq!(failures.wait_seconds(PEER, at(60_000)), None, "the first is a minute old");
        assert_eq!(failures.failed(PEER, at(60_000)), None);
        assert_eq!(failures.failed(PEER, at(60_000)), Some(1), "the second is not");
    }

    #[test]
    fn one_peer_does_not_wait_for_another_and_a_network_counts_as_one() {
        let mut failures = SecretFailures::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for number in 0..FAILURES_MAX {
            assert_eq!(failures.failed(address(&format!("2001:db8::{number}")), at(0)), None);
        }
        assert_eq!(failures.failed(address("2001:db8::ffff:1"), at(0)), Some(60));
        assert_eq!(failures.failed(address("2001:db8:0:1::1"), at(0)), None);
        assert_eq!(failures.wait_seconds(PEER, at(0)), None);
        assert_eq!(network(address("::ffff:127.0.0.1")), PEER);
    }

    #[test]
    fn the_number_of_remembered_peers_is_bounded() {
        let mut failures = SecretFailures::default();
        for number in 0..PEERS_MAX as u32 + 10 {
            assert_eq!(failures.failed(IpAddr::V4(number.into()), at(i64::from(number))), None);
        }
        assert_eq!(failures.peers.len(), PEERS_MAX);
        assert!(!failures.peers.contains_key(&IpAddr::V4(9.into())), "the oldest is dropped first");
        assert!(failures.peers.contains_key(&IpAddr::V4(10.into())));
    }
}
