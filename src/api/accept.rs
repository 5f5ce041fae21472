//! The headers `Accept` and `Accept-Encoding`: what a client takes, by RFC 9110.

use axum::http::{HeaderMap, header};

/// Preference of a client for a media type: its quality, then how specific the matching range of the header is. Larger
/// is preferred.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Preference {
    quality: f32,
    closeness: u8,
}

/// Returns the client's preference for this media type, in lower case, or `None` if it is not acceptable. Without the
/// header everything is.
pub fn preference(headers: &HeaderMap, media: &str) -> Option<Preference> {
    let lines = headers.get_all(header::ACCEPT).into_iter().filter_map(|line| line.to_str().ok());
    let ranges: Vec<&str> = lines.flat_map(|line| line.split(',')).filter(|range| !range.trim().is_empty()).collect();
    if ranges.is_empty() {
        return Some(Preference { quality: 1.0, closeness: 0 });
    }
    // The closest range counts, whatever the quality of wider ones.
    let closest = ranges.into_iter().filter_map(|range| meet(range, media)).max_by_key(|range| range.closeness)?;
    (closest.quality > 0.0).then_some(closest)
}

/// Names by which clients know lines of JSON; the first is ours.
pub const NDJSON: [&str; 3] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];
pub const CSV: &str = "text/csv";
/// The media type of CSV as it is sent.
pub const CSV_UTF8: &str = "text/csv; charset=utf-8";

/// Returns the format that the client prefers, or `None` if it accepts none. Ties go to the first.
pub fn preferred<F>(headers: &HeaderMap, formats: impl IntoIterator<Item = (&'static str, F)>) -> Option<F> {
    let wanted = formats.into_iter().filter_map(|(media, format)| Some((preference(headers, media)?, format)));
    wanted.reduce(|one, other| if other.0 > one.0 { other } else { one }).map(|(_, format)| format)
}

/// True if the header accepts gzip explicitly and does not prefer `identity`.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|line| line.to_str().ok());
    let codings: Vec<(String, f32)> = lines.flat_map(|line| line.split(',')).map(name_and_quality).collect();
    let quality =
        |names: &[&str]| codings.iter().find(|(name, _)| names.contains(&&**name)).map(|(_, quality)| *quality);
    // An element that names gzip takes precedence over `*`.
    let gzip = quality(&["gzip", "x-gzip"]).or_else(|| quality(&["*"])).unwrap_or(0.0);
    gzip > 0.0 && gzip >= quality(&["identity"]).unwrap_or(0.0)
}

/// Returns the preference that a range of the header gives a media type, or `None` if it does not include it.
fn meet(range: &str, media: &str) -> Option<Preference> {
    let (range, quality) = name_and_quality(range);
    let closeness = match range.strip_suffix("/*") {
        _ if range == media => 2,
        Some("*") => 0,
        Some(family) if media.split('/').next() == Some(family) => 1,
        _ => return None,
    };
    Some(Preference { quality, closeness })
}

/// An element of such a header in lower case without its parameters, and its quality: 1 where none is given.
fn name_and_quality(element: &str) -> (String, f32) {
    let mut parts = element.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let quality = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let quality = value.trim().parse().ok().filter(|quality| (0.0..=1.0).contains(quality));
        name.trim().eq_ignore_ascii_case("q").then_some(quality?)
    };
    (name, parts.find_map(quality).unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::{preference, takes_gzip};
    use axum::http::{HeaderMap, HeaderValue, header};

    fn takes(accept: &'static str, media: &str) -> bool {
        preference(&HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]), media).is_some()
    }

    #[test]
    fn ranges_include_what_the_rfc_says() {
        for accept in [
            "",
            "*/*",
            "application/*",
            "application/json",
            "Application/JSON; charset=utf-8",
            "text/html, */*;q=0.1",
            "text/html,application/json ;q=0.2",
            "application/json;q=oops",
        ] {
            assert!(takes(accept, "application/json"), "{accept}");
        }
        for accept in ["text/html", "text/*", "application/xml", "application/json;q=0", "*/*, application/json;q=0.0"]
        {
            assert!(!takes(accept, "application/json"), "{accept}");
        }
        assert!(preference(&HeaderMap::new(), "application/json").is_some());
    }

    #[test]
    fn gzip_is_for_those_who_say_that_they_take_it() {
        let takes = |accepted: &'static str| {
            takes_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted))]))
        };
        for accepted in
            ["gzip", "deflate, GZIP;q=0.1", "*", "br;q=1, *;q=0.5", "x-gzip", "gzip, *;q=0", "identity, gzip"]
        {
            assert!(takes(accepted), "{accepted}");
        }
        for accepted in ["", "identity", "br, deflate", "gzip;q=0", "*, gzip;q=0", "*;q=0", "identity, gzip;q=0.5"] {
            assert!(!takes(accepted), "{accepted}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn the_closer_range_is_wanted_more_at_the_same_quality() {
        let headers =
            HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("text/csv, application/*, */*;q=0.9"))]);
        let (csv, json, png) = (
            preference(&headers, "text/csv"),
            preference(&headers, "application/json"),
            preference(&headers, "image/png"),
        );
        assert!(csv > json && json > png && png.is_some());
    }
}
