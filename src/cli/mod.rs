//! The command line: `serve` (the default), `score`, `audit`, `plan`, `test`, `canary`, `dataset`, `texts`, `count-tokens`, `finetune`,
//! `memorization`, `methods`, `compare`, `report`, `sign`, `verify`, `prove`, `key`, `record`, `store`, `openapi`.
//! Results go to stdout, all else to stderr.

mod audit;
mod audit_scores;
mod audit_table;
mod canary;
mod command;
mod compare;
mod corpus;
mod count_tokens;
mod cut_args;
mod dataset;
mod demo_model;
mod evidence;
mod evidence_args;
mod examples;
mod export;
mod finetune;
mod input;
mod key;
mod membership_test;
mod memorization;
mod memorization_table;
mod method_flags;
mod methods;
mod partial;
mod plan_file;
mod progress;
mod prove;
mod record;
mod report;
mod report_format;
mod request;
mod run_folder;
mod runtime;
mod score;
mod score_output;
mod score_tally;
mod scoring_args;
mod serve;
mod sign;
mod source;
mod store;
mod test_input;
mod test_table;
mod text_table;
mod texts;
mod texts_table;
mod verify;
mod works;

pub use command::{command, main};
pub use request::{requested_job, run_job};
