//! Media types of reports, and the headers that pages are sent with.

use axum::http::header;
use axum::response::{IntoResponse, Response};

pub const HTML: &str = "text/html";
pub const JSON: &str = "application/json";
/// The media type of a signed report.
pub const DSSE: &str = "application/vnd.dsse.envelope+json";
/// The media type of a signed report with its verdict as `eval-result`, an envelope a line.
pub const BUNDLE: &str = "application/vnd.in-toto.bundle";

/// The media type of a page as it is sent.
pub const HTML_UTF8: &str = "text/html; charset=utf-8";

/// A page runs nothing and loads nothing, whatever a text in it tries.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'";

/// The answer that a page is.
pub fn answer(page: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HTML_UTF8),
        (header::VARY, "accept"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, page).into_response()
}
