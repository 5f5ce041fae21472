//! The HTTP interface: axum routes over the scorer and the audits.
//!
//! Invariants:
//!
//! - a route and its part of the OpenAPI document are the same line; those of jobs are made by `job_routes.rs` and
//!   `job_operations.rs` for all kinds;
//! - every failure is a problem (see `problem.rs`), and no other file knows its status;
//! - no handler spawns work for `/v1/score`: when the client goes away, the handler's future is dropped and with it the
//!   work;
//! - what may take long on the CPU (reading and writing megabytes of JSON) runs on the scorer's workers.

mod accept;
mod accepted_origins;
mod answer;
mod audit_comparison;
mod audit_lines;
mod audit_parquet;
mod audit_request;
mod audit_scores;
mod audits;
mod authentication;
mod body_budget;
mod calibration_cache;
mod calibration_request;
mod calibrations;
mod check;
mod client_state;
mod dataset_check;
mod datasets;
mod docs;
mod extract;
mod finetune_request;
mod finetunes;
mod health;
mod in_flight;
mod inputs;
mod job_document;
mod job_events;
mod job_id;
mod job_kinds;
mod job_list;
mod job_operations;
mod job_problems;
mod job_request;
mod job_resource;
mod job_routes;
mod job_view;
mod membership_tests;
mod memorization;
mod memorization_request;
mod methods;
mod middleware;
mod model_view;
mod models;
mod operations;
mod origin;
mod page_query;
mod plain_schemas;
mod plans;
mod prefer;
mod problem;
mod problem_body;
mod problems;
mod request_note;
mod root;
mod route_rules;
mod routed_jobs;
mod routes;
mod sample_line;
mod score;
mod score_calibration;
mod score_request;
mod security;
mod stages;
mod state;
mod test_request;
mod test_texts;
mod token_stats;
mod token_stats_file;
mod trace_context;
mod upload;

pub use job_document::JobDocument;
pub use job_kinds::{JobKinds, RegisteredKind};
pub use job_resource::{JobBody, JobContext, JobResource};
pub use problem::Problem;
pub use routed_jobs::RoutedJobs;
pub use routes::{document, metrics_router, router};
pub use state::ApiState;
