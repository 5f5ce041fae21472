//! Requirements of every route on a request besides its body: its access, only query parameters that the document lists, and for
//! routes that answer in JSON, a client that accepts JSON.

use super::accept::preference;
use super::check::RequestFaults;
use super::problem::{PointedFault, Problem};
use super::query::parameters;
use crate::access::KeyScope;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::Response;
use std::collections::HashMap;
use std::sync::Arc;
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr};

const JSON: &str = "application/json";
/// Name of the security scheme in the document.
const SCHEME: &str = "key";

/// The rules of all routes, by method and path.
pub type RouteRules = Arc<HashMap<(String, String), RouteRule>>;

/// Access to a route where keys are configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteAccess {
    Everybody,
    AnyKey,
    Scoped(KeyScope),
}

/// The rules of one route.
#[derive(Debug)]
pub struct RouteRule {
    pub access: RouteAccess,
    /// The names of its query parameters.
    parameters: Vec<String>,
    /// True if it answers only in JSON.
    is_json: bool,
}

/// Method, path and operation of every route.
pub fn operations(document: &OpenApi) -> impl Iterator<Item = (&str, &str, &Operation)> {
    document.paths.paths.iter().flat_map(|(path, item)| {
        let operations = [("GET", &item.get), ("POST", &item.post), ("DELETE", &item.delete)];
        operations.into_iter().filter_map(|(method, operation)| Some((method, path.as_str(), operation.as_ref()?)))
    })
}

/// The rules that a document states.
pub fn rules(document: &OpenApi) -> RouteRules {
    let rules = operations(document).map(|(method, path, operation)| {
        let key = (method.to_owned(), path.to_owned());
        (key, rule(method, path, operation))
    });
    Arc::new(rules.collect())
}

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

/// Returns the access to a route, by its tag in the document. An unknown tag is for administrators.
fn access(method: &str, operation: &Operation) -> RouteAccess {
    match operation.tags.iter().flatten().next().map(String::as_str) {
        Some("operation") => RouteAccess::Everybody,
        Some("service") if method == "GET" => RouteAccess::AnyKey,
        Some("scoring") => RouteAccess::Scoped(KeyScope::Score),
        Some("audits" | "calibrations" | "tests" | "memorization" | "datasets") => RouteAccess::Scoped(KeyScope::Audit),
        _ => RouteAccess::Scoped(KeyScope::Admin),
    }
}

/// Returns the rule of the route that matches the request, or `None` if no route does.
pub fn rule_of<'r>(rules: &'r RouteRules, request: &Request) -> Option<&'r RouteRule> {
    let method = if request.method() == "HEAD" { "GET" } else { request.method().as_str() };
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    rules.get(&(method.to_owned(), path.to_owned()))
}

fn rule(method: &str, path: &str, operation: &Operation) -> RouteRule {
    let parameters = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => Some(parameter.name.clone()),
        _ => None,
    });
    let answers = operation.responses.responses.iter().filter(|(status, _)| status.starts_with('2'));
    let media = answers.filter_map(|(_, response)| match response {
        RefOr::T(response) => Some(response.content.keys()),
        RefOr::Ref(_) => None,
    });
    let media: Vec<&String> = media.flatten().collect();
    RouteRule {
        access: access(method, operation),
        parameters: parameters.collect(),
        // Probes and metrics are answered whatever the probe says it takes.
        is_json: path.starts_with("/v1/") && !media.is_empty() && media.iter().all(|media| *media == JSON),
    }
}

/// Refuses a request that breaks a rule of its route.
pub async fn keep(State(rules): State<RouteRules>, request: Request, next: Next) -> Result<Response, Problem> {
    if let Some(rule) = rule_of(&rules, &request) {
        let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        // Probes and scrapers may add parameters of their own.
        if !["/livez", "/readyz", "/metrics"].contains(&path) {
            check_query(request.uri(), &rule.parameters)?;
        }
        if rule.is_json && preference(request.headers(), JSON).is_none() {
            return Err(Problem::not_acceptable(&[JSON]));
        }
    }
    Ok(next.run(request).await)
}

/// That every query parameter is known and there once.
fn check_query(uri: &Uri, known: &[String]) -> Result<(), Problem> {
    let mut faults = RequestFaults::default();
    let pairs = parameters(uri);
    for (index, (name, _)) in pairs.iter().enumerate() {
        if !known.contains(name) {
            let listed = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let given: String = name.chars().take(60).collect();
            faults.keep(PointedFault::of_parameter(name, format!("unknown parameter `{given}`, known: {listed}")));
        } else if pairs[..index].iter().any(|(before, _)| before == name) {
            faults.keep(PointedFault::of_parameter(name, "it is there twice".to_owned()));
        }
    }
    faults.finish()
}

#[cfg(test)]
mod tests {
    use super::check_query;
    use crate::api::problem::Problem;

    fn check(query: &'static str) -> Result<(), Problem> {
        check_query(&format!("/v1/audits?{query}").parse().unwrap(), &["limit".to_owned(), "model".to_owned()])
    }

    #[test]
    fn parameters_are_known_and_given_once() {
        for query in ["", "limit=1", "limit=x&model=a%20b", "model="] {
            assert_eq!(check(query), Ok(()), "{query}");
        }
        for (query, words) in [
            ("limits=1", "unknown parameter `limits`, known: limit, model"),
            ("limit=1&limit=2", "it is there twice"),
            ("a%20b", "unknown parameter `a b`"),
        ] {
            let problem = serde_json::to_value(check(query).unwrap_err().body("", "")).unwrap();
            assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(words), "{problem}");
            assert_eq!(problem["errors"][0]["pointer"], "");
        }
    }
}
