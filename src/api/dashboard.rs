//! `/`: the dashboard for browsers, and the paths of the service for programs.
//!
//! The dashboard is built from `dashboard/`, and its bundle is part of the program. It asks for nothing but `/v1`.

use super::accept::preferred;
use super::page::{HTML, HTML_UTF8, JSON};
use super::problem::Problem;
use super::problem::responses::RootProblems;
use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use utoipa::ToSchema;

/// A file of the bundle.
struct BundleFile {
    content: &'static [u8],
    media: &'static str,
    /// Strong validator: names are the same from version to version.
    tag: HeaderValue,
}

static PAGE: LazyLock<BundleFile> =
    LazyLock::new(|| BundleFile::new(include_bytes!("../../dashboard/dist/index.html"), HTML_UTF8));
static SCRIPT: LazyLock<BundleFile> =
    LazyLock::new(|| BundleFile::new(include_bytes!("../../dashboard/dist/app.js"), "text/javascript; charset=utf-8"));
static STYLE: LazyLock<BundleFile> =
    LazyLock::new(|| BundleFile::new(include_bytes!("../../dashboard/dist/app.css"), "text/css; charset=utf-8"));

/// Policy of the page: its own script and style, requests to its own address, and reports in frames that run nothing. A report takes
/// over this policy, so its style is allowed by its SHA-256. Trusted types refuse HTML that a script makes of text.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(pages::STYLE));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{style}'; connect-src 'self'; img-src data:; \
         frame-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'"
    );
    // Base64 has no character that a header may not have.
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

impl BundleFile {
    fn new(content: &'static [u8], media: &'static str) -> Self {
        let tag = format!("\"{}\"", hex::encode(&Sha256::digest(content)[..16]));
        let tag = HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""));
        Self { content, media, tag }
    }

    /// The file, or 304 if the client has it.
    fn answer(&self, headers: &HeaderMap) -> Response {
        let known = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|tags| tags.to_str().ok());
        let is_known =
            known.flat_map(|tags| tags.split(',')).any(|tag| tag.trim().trim_start_matches("W/") == self.tag);
        let validated =
            [(header::ETAG, self.tag.clone()), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
        if is_known {
            return (StatusCode::NOT_MODIFIED, validated).into_response();
        }
        let fixed = [(header::CONTENT_TYPE, self.media), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
        (fixed, validated, self.content).into_response()
    }
}

/// The script of the dashboard.
pub async fn script(headers: HeaderMap) -> Response {
    SCRIPT.answer(&headers)
}

/// The style of the dashboard.
pub async fn style(headers: HeaderMap) -> Response {
    STYLE.answer(&headers)
}

/// Name and paths of the service.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServiceLinks {
    /// Always `pdr-audit`.
    #[schema(examples("pdr-audit"))]
    service: &'static str,
    /// The version of the program.
    version: &'static str,
    /// The documentation as a page, with a form for every route.
    #[schema(examples("/docs"))]
    documentation: &'static str,
    /// The OpenAPI document.
    #[schema(examples("/openapi.json"))]
    openapi: &'static str,
    /// The models and where each stands.
    #[schema(examples("/v1/models"))]
    models: &'static str,
    /// The methods and their parameters.
    #[schema(examples("/v1/methods"))]
    methods: &'static str,
    /// Reports readiness.
    #[schema(examples("/readyz"))]
    ready: &'static str,
}

/// The dashboard, or paths of the service.
///
/// A client that prefers HTML, as browsers do, gets the dashboard; any other the name and the paths of the service.
#[utoipa::path(
    get,
    path = "/",
    tag = "operation",
    params(("Accept" = Option<String>, Header, description = "`text/html` or `application/json`", example = "application/json")),
    responses(
        (status = 200, description = "The dashboard, or name and paths of the service", content(
            (ServiceLinks = "application/json"),
            (String = "text/html")
        )),
        RootProblems
    )
)]
pub async fn root(headers: HeaderMap) -> Result<Response, Problem> {
    let is_page = preferred(&headers, [(JSON, false), (HTML, true)]);
    let mut response = match is_page.ok_or_else(|| Problem::not_acceptable(&[JSON, HTML]))? {
        true => PAGE.answer(&headers),
        false => Json(LINKS).into_response(),
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    Ok(response)
}

const LINKS: ServiceLinks = ServiceLinks {
    service: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    documentation: "/docs",
    openapi: "/openapi.json",
    models: "/v1/models",
    methods: "/v1/methods",
    ready: "/readyz",
};
