//! The HTTP interface: axum routes over the scorer and the audits.
//!
//! Invariants:
//!
//! - a route and its part of the OpenAPI document are the same line; those of jobs are made by `jobs/routes.rs` and
//!   `jobs/operations.rs` for all kinds;
//! - every failure is a problem (see `problem.rs`), and no other file knows its status;
//! - no handler spawns work for `/v1/score`: when the client goes away, the handler's future is dropped and with it the
//!   work;
//! - what may take long on the CPU (reading and writing megabytes of JSON) runs on the scorer's workers.

mod accept;
mod accepted_origins;
mod audit_comparison;
mod audit_request;
mod audit_scores;
mod audits;
mod body_pace;
mod calibrations;
mod check;
mod client_address;
mod conversations;
mod dashboard;
mod datasets;
mod docs;
mod extract;
mod finetunes;
mod guards;
mod health;
mod in_flight;
mod jobs;
mod membership_tests;
mod memorization;
mod memorization_map;
mod middleware;
mod model_view;
mod models;
mod page;
mod plain_schemas;
mod plans;
mod problem;
mod query;
mod route_rules;
mod routes;
mod sample_line;
mod score;
mod score_calibration;
mod score_request;
mod shown_texts;
mod state;
mod test_cut;
mod test_request;
mod token_stats;
mod trace_context;
mod upload;
mod upload_media;

pub use jobs::{JobBody, JobContext, JobDocument, JobKinds, JobResource, RegisteredKind};
pub use problem::Problem;
pub use routes::{document, metrics_router, router};
pub use state::{ApiState, RoutedJobs};
