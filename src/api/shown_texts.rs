//! `GET /v1/audits/{id}/report?texts=N`: the first texts of an audit, token by token.

use super::problem::{Kind, Problem};
use super::state::ApiState;
use crate::audits::{AuditFailure, Provenance, text_strips};
use crate::datasets::{Sample, SampleBlocks, estimated_tokens};
use futures::{StreamExt, TryStreamExt};
use pages::TextStrip;
use serde::Deserialize;
use serde_json::Value;
use std::time::Instant;
use uuid::Uuid;

/// Scores the first texts of the audit of this report again, against the client's quota of tokens.
pub async fn read(state: &ApiState, id: Uuid, report: &Value, count: usize) -> Result<Vec<TextStrip>, Problem> {
    let store = state.jobs.store();
    let dataset = store.dataset_of(id).await?.and_then(|dataset| SampleBlocks::stored(store, &dataset));
    let Some(samples) = dataset else {
        let detail = "the texts of the audit are not kept, so that none can be shown";
        return Err(Problem::new(Kind::Conflict, detail));
    };
    let first: Vec<Sample> = samples.samples().take(count).map_ok(|(_, sample)| sample).try_collect().await?;
    let bytes: usize = first.iter().map(|sample| sample.text.len()).sum();
    state.memory.grow_to(bytes as u64)?;
    let tokens = state.client.quota.reserve(estimated_tokens(bytes as u64), Instant::now())?;
    let provenance = Provenance::deserialize(&report["provenance"]).map_err(Problem::internal)?;
    let scored = tokio::time::timeout(state.request_timeout, text_strips(&provenance, first, &state.scorer)).await;
    let texts = scored.map_err(|_| Problem::deadline())?.map_err(|failure| match failure {
        AuditFailure::Scorer(error) => Problem::of_scoring(Some(error), state.request_timeout),
        AuditFailure::ModelChanged(model) => {
            Problem::new(Kind::Conflict, format!("model `{model}` is not that of the audit any more"))
        }
        failure => Problem::internal(failure),
    })?;
    tokens.settle(texts.iter().map(|text| text.tokens.len()).sum());
    Ok(texts)
}
