//! The header `Prefer: wait=N` (RFC 7240). What cannot be understood of it is ignored, as the RFC says.

use axum::http::HeaderMap;

/// The longest wait, in seconds.
pub const MAX_WAIT: u64 = 600;

/// The seconds that the client would wait, at most [`MAX_WAIT`].
pub fn wait(headers: &HeaderMap) -> Option<u64> {
    let lines = headers.get_all("prefer").into_iter().filter_map(|line| line.to_str().ok());
    // Of a preference given twice the first counts.
    let value = lines.flat_map(|line| line.split(',')).find_map(wait_value)?;
    let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // A number that is too large for the type is a long wait all the same.
    is_number.then(|| value.parse().unwrap_or(MAX_WAIT).min(MAX_WAIT))
}

/// The value of one preference, where it is `wait`; its parameters are left out.
fn wait_value(preference: &str) -> Option<&str> {
    let (name, value) = preference.split(';').next()?.split_once('=')?;
    name.trim().eq_ignore_ascii_case("wait").then(|| value.trim())
}

#[cfg(test)]
mod tests {
    use super::wait;
    use axum::http::{HeaderMap, HeaderValue};

    #[test]
    fn every_spelling_of_the_rfc_is_understood() {
        let cases: [(&[&'static str], Option<u64>); 12] = [
            (&["wait=60"], Some(60)),
            (&["respond-async, WAIT = \"7\" ; x=y"], Some(7)),
            (&["return=minimal", "wait=5"], Some(5)),
            (&["wait=1, wait=2"], Some(1)),
            (&["wait=0"], Some(0)),
            (&["wait=601"], Some(600)),
            (&["wait=99999999999999999999999"], Some(600)),
            (&["wait=-1"], None),
            (&["wait=1.5"], None),
            (&["wait"], None),
            (&["wait="], None),
            (&[], None),
        ];
        for (lines, seconds) in cases {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("prefer", HeaderValue::from_static(line));
            }
            assert_eq!(wait(&headers), seconds, "{lines:?}");
        }
    }
}
