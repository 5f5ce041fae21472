//! Which pages and hosts a request may come from.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method};
use std::net::IpAddr;

/// Which pages and names of hosts are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceptedOrigins {
    /// `server.cors`: origins whose pages may use the service.
    pub pages: Vec<String>,
    /// Accepted values of `Host` besides `names`.
    pub hosts: AcceptedHosts,
    /// `server.hosts`: names by which clients know the service.
    pub names: Vec<String>,
}

/// Accepted values of `Host`. A web page can point a name of its own at an address that only the browser reaches (DNS
/// rebinding), so a service without keys must know its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptedHosts {
    /// Anything: there are keys, which such a page does not have.
    #[default]
    All,
    /// An address, `localhost`, or a name without a dot, as containers have: none that is registered by anybody.
    Private,
    Local,
}

pub fn fault(
    origins: &AcceptedOrigins,
    method: &Method,
    headers: &HeaderMap,
    host: Option<&str>,
) -> Option<&'static str> {
    if !origins.accepts(host) {
        return Some(
            "the header `host` has a name that the service does not know; list it in `server.hosts`, or give the service keys",
        );
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let (origin, site) = (text("origin"), text("sec-fetch-site"));
    let is_listed = origin.is_some_and(|origin| origins.pages.iter().any(|page| page == origin));
    // A page cannot forge what its browser says of the site, and a proxy may give the service another `Host`.
    if method.is_safe() || is_listed || site == Some("same-origin") {
        return None;
    }
    let is_foreign = match origin {
        Some(origin) => host.is_none_or(|host| authority(origin) != Some(host)),
        None => site.is_some_and(|site| site != "none"),
    };
    is_foreign.then_some("the request comes from a page of another origin, and `server.cors` does not list that")
}

impl AcceptedOrigins {
    fn accepts(&self, host: Option<&str>) -> bool {
        let name = host.and_then(|host| host.parse::<Authority>().ok());
        let name = name.as_ref().map(|authority| authority.host().trim_start_matches('[').trim_end_matches(']'));
        let is_known = |name: &str| self.names.iter().any(|known| known.eq_ignore_ascii_case(name));
        match self.hosts {
            AcceptedHosts::All => true,
            AcceptedHosts::Private => name.is_some_and(|name| is_known(name) || is_private(name)),
            AcceptedHosts::Local => name.is_some_and(|name| is_known(name) || is_local(name)),
        }
    }
}

fn authority(origin: &str) -> Option<&str> {
    origin.split_once("://").map(|(_, authority)| authority)
}

/// True if the name or address is that of this machine.
fn is_local(name: &str) -> bool {
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// True if it is an address or a name that nobody can register.
fn is_private(name: &str) -> bool {
    is_local(name) || name.parse::<IpAddr>().is_ok() || (!name.is_empty() && !name.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::{AcceptedHosts, AcceptedOrigins, fault};
    use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};

    fn refused(method: Method, headers: &[(&'static str, &'static str)]) -> bool {
        let accepted = AcceptedOrigins { pages: vec!["https://dash.example".to_owned()], ..AcceptedOrigins::default() };
        let header = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        let headers: HeaderMap = headers.iter().map(header).collect();
        fault(&accepted, &method, &headers, Some("audit.example:8080")).is_some()
    }

    #[test]
    fn foreign_pages_change_nothing() {
        // Programs that are no browsers send neither header.
        assert!(!refused(Method::POST, &[]));
        assert!(!refused(Method::POST, &[("origin", "https://audit.example:8080"), ("sec-fetch-site", "same-origin")]));
        assert!(!refused(Method::POST, &[("origin", "https://dash.example"), ("sec-fetch-site", "cross-site")]));
        assert!(!refused(Method::POST, &[("sec-fetch-site", "none")]));
        // Behind a proxy `Host` may be another name.
        assert!(!refused(Method::POST, &[("origin", "https://public.example"), ("sec-fetch-site", "same-origin")]));
        assert!(refused(Method::POST, &[("origin", "https://evil.example")]));
        assert!(refused(Method::DELETE, &[("origin", "null")]));
        assert!(refused(Method::POST, &[("origin", "https://audit.example")]), "another port is another origin");
        for site in ["cross-site", "same-site", "something new"] {
            assert!(refused(Method::POST, &[("sec-fetch-site", site)]), "{site}");
        }
        // A page cannot read the answer unless the service allows it, so that looking does no harm.
        assert!(!refused(Method::GET, &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")]));
    }

    #[test]
    fn names_that_lead_to_this_machine_are_not_this_machine() {
        let accepts = |hosts, host: &str| {
            AcceptedOrigins { hosts, names: vec!["audit.example".to_owned()], pages: Vec::new() }.accepts(Some(host))
        };
        let local = [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:80",
            "127.3.2.1",
            "[::1]:8080",
            "a.localhost:1",
            "audit.example",
        ];
        let private = ["10.0.0.1:8080", "[::2]", "pdr-audit:8080"];
        let foreign = ["evil.example:8080", "localhost.evil.example", "", "a b"];
        for host in local {
            assert!(accepts(AcceptedHosts::Local, host) && accepts(AcceptedHosts::Private, host), "{host}");
        }
        for host in private {
            assert!(!accepts(AcceptedHosts::Local, host) && accepts(AcceptedHosts::Private, host), "{host}");
        }
        for host in foreign {
            assert!(!accepts(AcceptedHosts::Local, host) && !accepts(AcceptedHosts::Private, host), "{host}");
            assert!(accepts(AcceptedHosts::All, host), "{host}");
        }
        let origins = AcceptedOrigins { hosts: AcceptedHosts::Local, ..AcceptedOrigins::default() };
        assert!(fault(&origins, &Method::GET, &HeaderMap::new(), None).is_some());
        assert!(fault(&origins, &Method::GET, &HeaderMap::new(), Some("localhost")).is_none());
    }
}
