//! The command line: `serve` (the default), `score`, `audit`, `plan`, `test`, `canary`, `dataset`, `count-tokens`, `finetune`, `memorization`, `key`,
//! `openapi`.
//! Results go to stdout, all else to stderr.

mod audit;
mod audit_scores;
mod averages;
mod canary;
mod command;
mod corpus;
mod count_tokens;
mod dataset;
mod evidence;
mod evidence_args;
mod export;
mod finetune;
mod input;
mod key;
mod membership_test;
mod memorization;
mod memorization_table;
mod partial;
mod plan_file;
mod progress;
mod request;
mod runtime;
mod samples;
mod score;
mod scoring_args;
mod source;
mod table;
mod tally;
mod test_input;
mod test_table;
mod waiting;
mod works;

pub use command::{command, main};
pub use request::{requested_job, run_job};
