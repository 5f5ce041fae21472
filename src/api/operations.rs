//! The operations of an OpenAPI document.

use utoipa::openapi::OpenApi;
use utoipa::openapi::path::Operation;

/// Method, path and operation of every route.
pub fn operations(document: &OpenApi) -> impl Iterator<Item = (&str, &str, &Operation)> {
    document.paths.paths.iter().flat_map(|(path, item)| {
        let operations = [("GET", &item.get), ("POST", &item.post), ("DELETE", &item.delete)];
        operations.into_iter().filter_map(|(method, operation)| Some((method, path.as_str(), operation.as_ref()?)))
    })
}
