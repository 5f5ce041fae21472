//! Rules for values of the right type; each message about a value ends with the value.

use super::DeviceChoice;
use garde::{Error, Result};
use ipnet::IpNet;
use std::fmt::{Debug, Display};
use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;
use tracing_subscriber::filter::LevelFilter;

/// More would be a mistake, and would keep the sum of now and a timeout from being a time.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

pub(super) const LONGEST_ID: usize = 100;
pub const ID_RULE: &str = "1 to 100 of the characters A-Z a-z 0-9 . _ -";

fn expect<V: Debug + ?Sized>(holds: bool, what: impl Display, value: &V) -> Result {
    if holds { Ok(()) } else { Err(Error::new(format!("expected {what}, got {value:?}"))) }
}

/// For numbers and sizes.
pub(super) fn at_least<T: PartialOrd + Display>(least: T) -> impl FnOnce(&T, &()) -> Result {
    move |value, ()| expect(*value >= least, format_args!("at least {least}"), &format_args!("{value}"))
}

pub(super) fn within<T: PartialOrd + Display>(range: RangeInclusive<T>) -> impl FnOnce(&T, &()) -> Result {
    move |value, ()| {
        let what = format_args!("a number from {} to {}", range.start(), range.end());
        expect(range.contains(value), what, &format_args!("{value}"))
    }
}

pub(super) fn timeout(timeout: &Duration, (): &()) -> Result {
    let holds = !timeout.is_zero() && *timeout <= LONGEST_TIMEOUT;
    expect(holds, "more than 0 and at most 24 hours", timeout)
}

pub(super) fn delay(delay: &Duration, (): &()) -> Result {
    expect(*delay <= LONGEST_TIMEOUT, "at most 24 hours", delay)
}

/// For the time that audits are kept.
pub(super) fn retention(retention: &Duration, (): &()) -> Result {
    expect(*retention >= Duration::from_secs(60), "at least 60 seconds", retention)
}

/// Heartbeats are sent several times a second at most.
pub(super) fn lease(lease: &Duration, (): &()) -> Result {
    let holds = (Duration::from_secs(1)..=LONGEST_TIMEOUT).contains(lease);
    expect(holds, "from 1 second to 24 hours", lease)
}

/// A host name, or an address as it stands in no URL.
pub(super) fn host(host: &str, (): &()) -> Result {
    let is_name = host.chars().all(|character| !character.is_whitespace() && !"/:[]".contains(character));
    let holds = !host.is_empty() && (is_name || host.parse::<Ipv6Addr>().is_ok());
    expect(holds, "a host name or an address without port and brackets", host)
}

/// An id, which requests name in paths of the API, where `.` and `..` mean something else.
pub(super) fn id(id: &str, (): &()) -> Result {
    expect(is_id(id), ID_RULE, id)
}

/// Returns true if this may be the id of a model, or the name of an adapter.
pub fn is_id(id: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(is_legal) && id != "." && id != ".."
}

pub(super) fn path(path: &Path, (): &()) -> Result {
    expect(!path.as_os_str().is_empty(), "a path", path)
}

/// The origin of a page, as browsers send it.
/// A network, or a single address.
pub(super) fn network(text: &str, (): &()) -> Result {
    expect(parse_network(text).is_some(), "an address, or a network as in \"10.0.0.0/8\"", text)
}

/// Reads a network; a single address is a network of one.
pub fn parse_network(text: &str) -> Option<IpNet> {
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()
}

pub(super) fn origin(origin: &str, (): &()) -> Result {
    let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let is_authority = |text: &str| !text.is_empty() && !text.contains(['/', '*', '?', '#']) && text.is_ascii();
    expect(authority.is_some_and(is_authority), "an origin as in \"https://dashboard.example\"", origin)
}

/// Addresses of servers: at least one, and none twice.
pub(super) fn server_urls(urls: &[String], (): &()) -> Result {
    if urls.is_empty() {
        return Err(Error::new("expected at least one URL, got an empty list"));
    }
    for (index, url) in urls.iter().enumerate() {
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let is_host = |rest: &str| {
            let authority = rest.split('/').next().unwrap_or_default();
            !authority.is_empty() && rest.is_ascii() && !rest.contains(['?', '#', '@', '\\', ' '])
        };
        // A refused URL may hold a password, so it is not repeated.
        if !host.is_some_and(is_host) {
            let what = "expected a URL as in \"http://engine-1:8080\", without a user, a query or a fragment";
            return Err(Error::new(format!("{what}, in place {}", index + 1)));
        }
        if urls[..index].iter().any(|other| other.trim_end_matches('/') == url.trim_end_matches('/')) {
            return Err(Error::new(format!("the URL in place {} is listed twice", index + 1)));
        }
    }
    Ok(())
}

pub(super) fn price(price: &f64, (): &()) -> Result {
    expect(price.is_finite() && *price >= 0.0, "a price of 0 or more", price)
}

/// The name of an environment variable.
pub(super) fn variable(name: &str, (): &()) -> Result {
    let is_name = !name.is_empty() && !name.contains(['=', '\0']);
    expect(is_name, "the name of an environment variable", name)
}

pub(super) fn revision(revision: &str, (): &()) -> Result {
    expect(!revision.trim().is_empty(), "a branch, tag or commit", revision)
}

pub(super) fn log_filter(level: &str, (): &()) -> Result {
    let parsed = tracing_subscriber::EnvFilter::builder().parse(level);
    // `EnvFilter` takes a word that is no level for the name of a module, and would log all of it.
    let is_directive = |part: &str| part.contains(['=', '[']) || part.trim().parse::<LevelFilter>().is_ok();
    let holds = parsed.is_ok() && !level.trim().is_empty() && level.split(',').all(is_directive);
    expect(holds, "a filter as in \"info\" or \"warn,pdr_audit=debug\"", level)
}

/// At least one device, and none twice.
pub(super) fn devices(devices: &[DeviceChoice], (): &()) -> Result {
    let repeated = devices.iter().enumerate().find(|(index, device)| devices[..*index].contains(device));
    match repeated {
        Some((_, device)) => Err(Error::new(format!("{device} is listed twice"))),
        None if devices.is_empty() => Err(Error::new("expected at least one device, got an empty list")),
        None => Ok(()),
    }
}
