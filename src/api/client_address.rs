//! Address of the client behind a proxy, from `Forwarded` (RFC 7239) or `X-Forwarded-For`. Pure.

use axum::http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns the address that the nearest proxy which is not one of `proxies` had as its peer; `None` if the peer is no proxy, or if the
/// headers are missing, malformed or of both kinds: a proxy that appends to one of them passes the other on as the client sent it.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, proxies: &[IpNet]) -> Option<IpAddr> {
    let is_proxy = |address: IpAddr| proxies.iter().any(|network| network.contains(&address));
    if !is_proxy(peer.to_canonical()) {
        return None;
    }
    let hops = match (headers.contains_key(header::FORWARDED), headers.contains_key(X_FORWARDED_FOR)) {
        (true, false) => hops(headers, header::FORWARDED, forwarded_for),
        (false, true) => hops(headers, X_FORWARDED_FOR, node_address),
        _ => return None,
    };
    for hop in hops.into_iter().rev() {
        let address = hop?;
        if !is_proxy(address) {
            return Some(address);
        }
    }
    None
}

/// Returns the address of each element of a header in order, `None` for one that has none.
fn hops(headers: &HeaderMap, name: HeaderName, read: fn(&str) -> Option<IpAddr>) -> Vec<Option<IpAddr>> {
    let values = headers.get_all(name).into_iter();
    values.flat_map(|value| value.to_str().unwrap_or_default().split(',')).map(|element| read(element.trim())).collect()
}

/// Reads the parameter `for` of an element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut values = element.split(';').filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        name.eq_ignore_ascii_case("for").then_some(value)
    });
    let value = values.next().filter(|_| values.next().is_none())?;
    node_address(value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value))
}

/// Reads an address with or without a port; one of IPv6 may have brackets.
fn node_address(node: &str) -> Option<IpAddr> {
    let bare = node.strip_prefix('[').and_then(|node| node.strip_suffix(']')).unwrap_or(node);
    let address = bare.parse::<IpAddr>().or_else(|_| node.parse::<SocketAddr>().map(|socket| socket.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn seen(peer: &str, lines: &[(&'static str, &str)]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let proxies = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
        client_address(peer.parse().unwrap(), &headers, &proxies).map(|address| address.to_string())
    }

    #[test]
    fn a_proxy_names_its_peer() {
        let told = |name, value| seen("10.0.0.1", &[(name, value)]);
        let client = Some("192.0.2.7".to_owned());
        for value in ["for=192.0.2.7", "proto=https;For=\"192.0.2.7:4711\"", "for=198.51.100.1, for=192.0.2.7"] {
            assert_eq!(told("forwarded", value), client, "{value}");
        }
        for value in ["192.0.2.7", "203.0.113.9,192.0.2.7:80", "192.0.2.7, 10.9.9.9"] {
            assert_eq!(told("x-forwarded-for", value), client, "{value}");
        }
        assert_eq!(told("forwarded", "for=\"[2001:db8::1]:80\""), Some("2001:db8::1".to_owned()));
        assert_eq!(seen("10.0.0.1", &[("x-forwarded-for", "203.0.113.9"), ("x-forwarded-for", "192.0.2.7")]), client);
        assert_eq!(seen("::ffff:10.0.0.1", &[("x-forwarded-for", "192.0.2.7")]), client);
    }

    #[test]
    fn headers_that_do_not_say_it_are_ignored() {
        assert_eq!(seen("192.0.2.1", &[("x-forwarded-for", "192.0.2.7")]), None, "it is no proxy");
        let told = |name, value| seen("10.0.0.1", &[(name, value)]);
        for value in ["", "unknown", "for=", "for=_hidden", "by=192.0.2.7", "for=192.0.2.7;for=192.0.2.8", "for=1.2.3"]
        {
            assert_eq!(told("forwarded", value), None, "{value}");
        }
        for value in ["", "192.0.2.7, nonsense", "10.0.0.2", "é"] {
            assert_eq!(told("x-forwarded-for", value), None, "{value}");
        }
        assert_eq!(seen("10.0.0.1", &[("forwarded", "for=192.0.2.7"), ("x-forwarded-for", "192.0.2.8")]), None);
        assert_eq!(seen("10.0.0.1", &[]), None);
    }
}
