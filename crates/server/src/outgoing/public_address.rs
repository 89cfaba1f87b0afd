//! Classifies IP addresses as public or not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns `true` for addresses outside of this machine and its networks.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = matches!(
        (a, b, c),
        // "This network", loopback, private, link-local; multicast, reserved, broadcast.
        (0 | 10 | 127 | 224.., ..) | (172, 16..=31, _) | (192, 168, _) | (169, 254, _)
        // Carrier-grade NAT; protocol assignments, documentation and benchmarks.
        | (100, 64..=127, _) | (192, 0, 0 | 2) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113)
    );
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        // IPv4 in IPv6: mapped, NAT64 and 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        // Documentation and Teredo tunnels.
        [0x2001, 0xdb8 | 0, ..] => false,
        // Global unicast is 2000::/3.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_and_its_networks_are_not_public() {
        for (address, public) in [
            ("8.8.8.8", true),
            ("172.15.0.1", true),
            ("100.63.0.1", true),
            ("2606:4700::1111", true),
            ("::ffff:8.8.8.8", true),
            ("127.0.0.1", false),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("172.31.255.1", false),
            ("192.168.0.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("::1", false),
            ("::", false),
            ("fe80::1", false),
            ("fd00::1", false),
            ("ff02::1", false),
            ("::ffff:127.0.0.1", false),
            ("64:ff9b::a00:1", false),
            ("2002:7f00:1::", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
        }
    }
}
