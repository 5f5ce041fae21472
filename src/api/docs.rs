//! `/openapi.json` and `/docs`: the document, and a page that shows it. Everything that the page needs is part of the program; it
//! asks no other host.

use super::middleware;
use super::problem::Problem;
use axum::Extension;
use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::{Arc, LazyLock};
use utoipa_swagger_ui::Config;

/// The document in JSON. It tells of the routes of this file too, so that whoever puts the routes together gives it to them.
#[derive(Clone)]
pub struct ServedDocument(pub Arc<LazyLock<String, Box<dyn FnOnce() -> String + Send>>>);

/// The page's configuration; without a validator, which would be another host.
static CONFIG: LazyLock<Arc<Config<'static>>> =
    LazyLock::new(|| Arc::new(Config::new(["/openapi.json"]).validator_url("none").try_it_out_enabled(true)));

/// This document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "operation",
    responses((status = 200, description = "The document in OpenAPI 3.1", content_type = "application/json"))
)]
pub async fn openapi(Extension(ServedDocument(document)): Extension<ServedDocument>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], document.as_str().to_owned())
}

/// This document as a page.
#[utoipa::path(
    get,
    path = "/docs",
    tag = "operation",
    responses((status = 200, description = "The page", body = String, content_type = "text/html"))
)]
pub async fn page() -> Result<Response, Problem> {
    let page = utoipa_swagger_ui::serve("", CONFIG.clone()).map_err(Problem::internal)?;
    let page = page.ok_or_else(|| Problem::internal("the page of the documentation is missing"))?;
    // The page names its files relative to a directory, and `/docs` is not one.
    let html = String::from_utf8_lossy(&page.bytes).replacen("<head>", "<head>\n    <base href=\"docs/\">", 1);
    Ok(([(header::CONTENT_TYPE, page.content_type)], html).into_response())
}

/// A file of the page.
pub async fn file(request: Request) -> Result<Response, Problem> {
    let name = request.uri().path().trim_start_matches("/docs/").to_owned();
    match utoipa_swagger_ui::serve(&name, CONFIG.clone()).map_err(Problem::internal)? {
        Some(file) => Ok(([(header::CONTENT_TYPE, file.content_type)], file.bytes.into_owned()).into_response()),
        None => Err(middleware::no_route(request).await),
    }
}
