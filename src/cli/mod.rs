//! The command line: `serve` (the default), `score`, `audit`, `plan`, `test`, `canary`, `dataset`, `count-tokens`, `finetune`, `memorization`, `key`,
//! `openapi`.
//! Results go to stdout, all else to stderr.

mod audit;
mod audit_scores;
mod canary;
mod command;
mod corpus;
mod count_tokens;
mod dataset;
mod demo_model;
mod evidence;
mod evidence_args;
mod export;
mod finetune;
mod input;
mod key;
mod membership_test;
mod memorization;
mod partial;
mod plan_file;
mod progress;
mod report_format;
mod request;
mod runtime;
mod score;
mod scoring_args;
mod source;
mod table;
mod test_input;

pub use command::{command, main};
pub use request::{requested_job, run_job};
