//! Which addresses are not on the public internet, and what they are instead.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not public; `None` when it is. Takes addresses in their canonical form.
pub(super) fn inside(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => inside_v4(address),
        IpAddr::V6(address) => inside_v6(address),
    }
}

fn inside_v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("unspecified"),
        [127, ..] => Some("loopback"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("private"),
        [169, 254, ..] => Some("link-local"),
        [100, 64..=127, ..] => Some("shared by a carrier"),
        [192, 0, 0, _] => Some("reserved for protocols"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("for documentation"),
        [192, 88, 99, _] => Some("a 6to4 relay"),
        [198, 18..=19, ..] => Some("for benchmarks"),
        [224..=239, ..] => Some("multicast"),
        [255, 255, 255, 255] => Some("broadcast"),
        [240..=255, ..] => Some("reserved"),
        _ => None,
    }
}

/// Only 2000::/3 is assigned to the public internet, and parts of it are special again.
fn inside_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("unspecified");
    }
    if address.is_loopback() {
        return Some("loopback");
    }
    match address.segments() {
        [0x64, 0xff9b, ..] => Some("translated to IPv4"),
        [0xfc00..=0xfdff, ..] => Some("unique-local"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("for documentation"),
        [0x2001, 0, ..] => Some("a Teredo tunnel"),
        [0x2001, 0..=0x1ff, ..] => Some("reserved for protocols"),
        [0x2002, ..] => Some("a 6to4 tunnel"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("reserved"),
    }
}
