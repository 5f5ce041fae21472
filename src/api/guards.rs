//! Checks of a request before any of its body is read: where it comes from, and what its key allows.

use super::accepted_origins::fault;
use super::problem::{Kind, Problem};
use super::route_rules::{RouteAccess, RouteRules, rule_of};
use super::state::{RequestNote, RouterState};
use crate::access::{AccessRecord, Client, KeyScope, Keyring, RemainingTokens};
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;
use std::time::Instant;
use time::OffsetDateTime;

/// The limits of a client.
pub const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// The rest of the limits of a client.
pub const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// Prefix of the secret in the header `Authorization`.
const SCHEME: &str = "Bearer ";

/// Refuses a request that has one of these headers twice: programs on its way may go by the first or by the last.
fn refuse_repeated(headers: &HeaderMap) -> Result<(), Problem> {
    for name in [header::HOST, header::AUTHORIZATION] {
        if headers.get_all(&name).iter().nth(1).is_some() {
            return Err(Problem::new(Kind::MalformedHead, format!("the header `{name}` is there more than once")));
        }
    }
    Ok(())
}

/// Refuses requests that a web page makes without the visitor's knowledge: requests of foreign pages that change something, and of hosts that are not this machine where it is to be this machine.
pub async fn keep_to(
    State(RouterState(state)): State<RouterState>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    refuse_repeated(request.headers())?;
    let host = request.uri().authority().map(Authority::as_str);
    let host = host.or_else(|| request.headers().get(header::HOST).and_then(|host| host.to_str().ok()));
    match fault(&state.origins, request.method(), request.headers(), host) {
        Some(detail) => Err(Problem::new(Kind::Forbidden, detail)),
        None => Ok(next.run(request).await),
    }
}

/// Notes the client on the request, and refuses it where its key is not known, does not allow the route, or has as many requests in
/// flight as it may. Routes that need no key, and paths that lead nowhere, are for everybody.
pub async fn authenticate(
    State((RouterState(state), rules)): State<(RouterState, RouteRules)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let access = rule_of(&rules, &request).map(|rule| rule.access);
    let client = match &state.keyring {
        None => Arc::new(Client::without_keys()),
        Some(_) if matches!(access, None | Some(RouteAccess::Everybody)) => Arc::new(Client::stranger()),
        Some(keyring) => identify(keyring, request.headers())?,
    };
    RequestNote::from_extensions(request.extensions()).set_client(&client);
    if let (Some(_), Some(RouteAccess::Scoped(scope))) = (client.key_id(), access)
        && !client.may(scope)
    {
        return Err(Problem::new(
            Kind::Forbidden,
            format!("the key lacks the scope `{scope}`, which this route takes"),
        ));
    }
    let changes = !request.method().is_safe() && access == Some(RouteAccess::Scoped(KeyScope::Admin));
    if changes && state.record.as_ref().is_some_and(AccessRecord::is_failing) {
        let detail = "the access record cannot be written, and changes by an administrator must be in it";
        return Err(Problem::new(Kind::Unavailable, detail));
    }
    let permit = client.quota.begin()?;
    let quota = Arc::clone(&client.quota);
    let memory = Arc::new(state.memory_budget.begin(client.principal()));
    request.extensions_mut().insert(Arc::clone(&memory));
    request.extensions_mut().insert(client);
    let mut response = next.run(request).await;
    // It is in flight, and holds memory, until its answer is sent.
    response.extensions_mut().insert(Arc::new(permit));
    response.extensions_mut().insert(memory);
    tell_remaining(response.headers_mut(), &quota.remaining(Instant::now()));
    Ok(response)
}

/// Tells a client its limits of tokens and the rest of them, by the draft draft-ietf-httpapi-ratelimit-headers-10.
fn tell_remaining(headers: &mut HeaderMap, limits: &[RemainingTokens]) {
    if limits.is_empty() {
        return;
    }
    let list = |item: fn(&RemainingTokens) -> String| limits.iter().map(item).collect::<Vec<_>>().join(", ");
    let policy = list(|RemainingTokens { window, limit, .. }| format!("\"{window}\";q={limit};w={}", window.seconds()));
    let rest = list(|RemainingTokens { window, remaining, reset, .. }| format!("\"{window}\";r={remaining};t={reset}"));
    for (name, value) in [(RATE_LIMIT_POLICY, policy), (RATE_LIMIT, rest)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}

/// The client of the key that the headers have.
fn identify(keyring: &Keyring, headers: &HeaderMap) -> Result<Arc<Client>, Problem> {
    let refused = |detail: String| Problem::new(Kind::Unauthenticated, detail);
    let given = headers.get(header::AUTHORIZATION).ok_or_else(|| {
        refused("a key is needed: `Authorization: Bearer pdr_...`; whoever runs the service gives them out".to_owned())
    })?;
    let text = given.to_str().unwrap_or_default();
    let (scheme, secret) = text.split_at_checked(SCHEME.len()).unwrap_or_default();
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return Err(refused("the header `authorization` must be `Bearer` and a key".to_owned()));
    }
    keyring.authenticate(secret.trim(), OffsetDateTime::now_utc()).map_err(|error| refused(error.to_string()))
}
