//! Key security scheme in the OpenAPI document: the scope that each route requires.

use super::route_rules::{RouteAccess, access};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr};

/// The name of the scheme in the document.
const SCHEME: &str = "key";

/// The document with the security of each route. No key is needed where the service has none, so that an empty requirement is one
/// as well.
pub fn secured(mut document: OpenApi) -> OpenApi {
    let description = "A key, where the service has keys: `pdr-audit key new` makes one. Scopes: `score`, `audit` (jobs and \
                       datasets), `admin` (models, fine-tunes, and what all clients own).";
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build();
    let components = document.components.get_or_insert_default();
    components.security_schemes.insert(SCHEME.to_owned(), RefOr::T(SecurityScheme::Http(scheme)));
    for item in document.paths.paths.values_mut() {
        let operations = [("GET", &mut item.get), ("POST", &mut item.post), ("DELETE", &mut item.delete)];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            let scopes: Vec<String> = match access(method, operation) {
                RouteAccess::Everybody => continue,
                RouteAccess::AnyKey => Vec::new(),
                RouteAccess::Scoped(scope) => vec![scope.to_string()],
            };
            let keyed = SecurityRequirement::new(SCHEME, scopes);
            operation.security = Some(vec![SecurityRequirement::default(), keyed]);
        }
    }
    document
}
