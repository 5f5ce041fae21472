//! Which problems each route may answer with, for the document.

use super::{Kind, PointedFault, Problem, ProblemBody};
use std::collections::BTreeMap;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

/// Kinds of every route under `/v1`: query parameters that it does not have, and media types that it has not.
const ROUTE: [Kind; 5] =
    [Kind::Invalid, Kind::NotAcceptable, Kind::Unauthenticated, Kind::Forbidden, Kind::QuotaExceeded];
/// Kinds of a route that reads a JSON body, beside those of every route.
const BODY: [Kind; 4] = [Kind::MalformedBody, Kind::BodyTimeout, Kind::TooLarge, Kind::UnsupportedMediaType];

macro_rules! problems {
    ($($name:ident = $kinds:expr;)*) => {
        $(
            pub struct $name;

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    document($kinds.into_iter())
                }
            }
        )*
    };
}

problems! {
    ScoreProblems = body([Kind::UnknownModel, Kind::Unavailable, Kind::DeadlineExceeded]);
    TokenStatsProblems = body([Kind::UnknownModel, Kind::Conflict, Kind::Unavailable, Kind::DeadlineExceeded]);
    DatasetProblems = body([Kind::UnknownModel, Kind::Unavailable, Kind::DeadlineExceeded]);
    SubmitProblems =
        body([Kind::UnknownModel, Kind::NotFound, Kind::Conflict, Kind::Unavailable, Kind::DeadlineExceeded]);
    // Loading and unloading.
    LoadProblems = route([Kind::UnknownModel, Kind::Conflict, Kind::Unavailable, Kind::DeadlineExceeded]);
    LookProblems = route([Kind::NotFound, Kind::Unavailable]);
    ListProblems = route([Kind::Unavailable]);
    MethodProblems = route([Kind::UnknownModel, Kind::Unavailable]);
    // Operations that depend on the state of their resource.
    StateProblems = route([Kind::NotFound, Kind::Conflict, Kind::Unavailable]);
    // A report may show texts, which are scored again.
    ReportProblems = route([Kind::NotFound, Kind::Conflict, Kind::Unavailable, Kind::DeadlineExceeded]);
    RootProblems = [Kind::Invalid, Kind::NotAcceptable, Kind::Forbidden];
    LiveProblems = [Kind::Unavailable];
    MetricsProblems = [Kind::NotFound];
    ReadyProblems = [Kind::Invalid, Kind::Unavailable];
}

fn route(kinds: impl IntoIterator<Item = Kind>) -> impl Iterator<Item = Kind> {
    ROUTE.into_iter().chain(kinds)
}

fn body(kinds: impl IntoIterator<Item = Kind>) -> impl Iterator<Item = Kind> {
    BODY.into_iter().chain(route(kinds))
}

/// The responses of a route: the kinds of problem, those of one status together.
fn document(kinds: impl Iterator<Item = Kind>) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status: BTreeMap<String, Vec<Kind>> = BTreeMap::new();
    for kind in kinds.chain([Kind::MalformedHead, Kind::Internal]) {
        by_status.entry(kind.entry().0.as_str().to_owned()).or_default().push(kind);
    }
    by_status.into_iter().map(|(status, kinds)| (status, RefOr::T(response(&kinds)))).collect()
}

/// The kinds of one status; the first is the example.
fn response(kinds: &[Kind]) -> Response {
    let titles: Vec<&str> = kinds.iter().map(|kind| kind.entry().2).collect();
    let schema = Ref::from_schema_name(ProblemBody::name());
    let example = kinds.first().and_then(|kind| serde_json::to_value(example(*kind)).ok());
    let content = ContentBuilder::new().schema(Some(schema)).example(example).build();
    ResponseBuilder::new().description(titles.join("; ")).content("application/problem+json", content).build()
}

fn example(kind: Kind) -> ProblemBody {
    let problem = match kind {
        Kind::MalformedBody => Problem::new(kind, "the body is not JSON: expected `,` or `}` at line 3 column 5"),
        Kind::MalformedHead => Problem::new(kind, "the header `authorization` is there more than once"),
        Kind::Unauthenticated => Problem::new(kind, "the key is not known"),
        Kind::Forbidden => Problem::new(kind, "the key lacks the scope `audit`, which this route takes"),
        Kind::QuotaExceeded => Problem::new(kind, "16 requests of this client are in flight, which is its limit"),
        Kind::BodyTimeout => Problem::new(kind, "the body did not arrive within `server.request_timeout`"),
        Kind::NotFound => Problem::new(kind, "there is no audit of this id"),
        Kind::UnknownModel => Problem::new(kind, "model `pythia` is not configured; configured: demo, demo-reference"),
        Kind::MethodNotAllowed => {
            Problem::new(kind, "`/v1/score` has no method GET; the header `allow` lists those it has")
        }
        Kind::NotAcceptable => Problem::not_acceptable(&["application/json"]),
        Kind::Conflict => Problem::new(kind, "the audit has finished"),
        Kind::TooLarge => Problem::new(kind, "there are 100000 inputs; the limit `limits.inputs` is 10000"),
        Kind::UnsupportedMediaType => {
            Problem::new(kind, "the header `content-type` is missing; it must be `application/json`")
        }
        Kind::Invalid => Problem::fault("/methods/1/k", "k is 1.5, outside (0, 1]"),
        Kind::Internal => Problem::new(kind, "the service failed; its log has more under the id of this request"),
        Kind::Unavailable => Problem::new(kind, "the queue is full, retry in 3 s"),
        Kind::DeadlineExceeded => Problem::deadline(),
    };
    problem.body("/v1/score", "0b8b1a0e-54c5-4a3c-9a4c-8f4b0f0c7a7e")
}

/// The schemas that the problems refer to.
pub fn schemas() -> [(String, RefOr<utoipa::openapi::Schema>); 2] {
    [
        (ProblemBody::name().into_owned(), ProblemBody::schema()),
        (PointedFault::name().into_owned(), PointedFault::schema()),
    ]
}
