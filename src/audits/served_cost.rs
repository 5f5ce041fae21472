//! What an audit asks of models that are served elsewhere, before anything is scored: requests, tokens, and their cost.

use super::request::AuditRequest;
use crate::datasets::estimated_tokens;
use crate::pool::Pool;
use mia::methods::{AuxiliaryPass, auxiliary_passes};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Forecast of what models that are served elsewhere are asked for, if nothing is answered from a cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ServedForecast {
    /// Maximum number of requests: one for each pass of a text; servers that take several prompts at once get fewer.
    pub requests: u64,
    /// Tokens of the prompts, estimated from the bytes of the texts.
    pub estimated_tokens: u64,
    /// Their price, in the currency of the settings; absent where the settings state no price for one of the models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<f64>,
}

/// Forward passes of a model, and bytes of what is put before the text in them.
#[derive(Default)]
struct ModelPasses {
    passes: u64,
    prefix_bytes: u64,
}

impl ServedForecast {
    /// The forecast for this number of texts with these bytes; `None` if all models run here.
    pub fn new(request: &AuditRequest, texts: u64, bytes: u64, pool: &Pool) -> Option<Self> {
        let mut forecast: Option<Self> = None;
        let mut has_unpriced = false;
        let mut cost = 0.0;
        for (id, ModelPasses { passes, prefix_bytes }) in passes_by_model(request) {
            let Ok(declaration) = pool.find(Some(&id)) else { continue };
            if !declaration.origin.is_served() {
                continue;
            }
            let bytes = passes.saturating_mul(bytes).saturating_add(texts.saturating_mul(prefix_bytes));
            let tokens = estimated_tokens(bytes);
            let served = forecast.get_or_insert_default();
            served.requests = served.requests.saturating_add(passes.saturating_mul(texts));
            served.estimated_tokens = served.estimated_tokens.saturating_add(tokens);
            match declaration.origin.price() {
                Some(price) => cost += tokens as f64 / 1e6 * price,
                None => has_unpriced = true,
            }
        }
        forecast.map(|forecast| Self { estimated_cost: (!has_unpriced).then_some(cost), ..forecast })
    }

    /// Returns the number if it can be a cost.
    pub fn checked_cost(most: f64) -> Result<f64, String> {
        match most.is_finite() && most >= 0.0 {
            true => Ok(most),
            false => Err(format!("{most} is no cost: it must be 0 or more")),
        }
    }

    /// Describes the fault of an audit that would cost more than `most`, or whose cost is not known.
    pub fn cost_fault(forecast: Option<&Self>, most: f64) -> Option<String> {
        if let Err(fault) = Self::checked_cost(most) {
            return Some(fault);
        }
        let served = forecast?;
        match served.estimated_cost {
            None => Some(
                "the cost is not known: a model is served elsewhere whose settings state no `served.price_per_million_tokens`"
                    .to_owned(),
            ),
            Some(cost) if cost > most => Some(format!(
                "the audit would cost about {cost:.4} ({} requests, about {} tokens), which is more than {most}",
                served.requests, served.estimated_tokens
            )),
            Some(_) => None,
        }
    }
}

impl std::fmt::Display for ServedForecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at most {} requests to servers with about {} tokens", self.requests, self.estimated_tokens)?;
        match self.estimated_cost {
            Some(cost) => write!(f, ", at a cost of about {cost:.4}"),
            None => Ok(()),
        }
    }
}

/// The passes over each text, by the id of the model that runs them.
fn passes_by_model(request: &AuditRequest) -> BTreeMap<String, ModelPasses> {
    let mut by_model: BTreeMap<String, ModelPasses> = BTreeMap::new();
    let auxiliary = auxiliary_passes(&request.methods);
    // The control computes the same methods.
    let targets = [Some(request.model.as_str()), request.evidence.control.as_deref()];
    for target in targets.into_iter().flatten() {
        by_model.entry(target.to_owned()).or_default().passes += 1;
        for pass in &auxiliary {
            let (model, passes, prefix_bytes) = match pass {
                AuxiliaryPass::Reference(id) | AuxiliaryPass::ReferenceTokenization(id) => (&**id, 1, 0),
                AuxiliaryPass::Neighbors(Some(generator)) => (target, generator.count as u64, 0),
                AuxiliaryPass::Swapped(swaps) => (target, swaps.copies as u64, 0),
                AuxiliaryPass::Prefixed(texts) => (target, 1, texts.bytes() as u64),
                AuxiliaryPass::Lowercase | AuxiliaryPass::Neighbors(None) => (target, 1, 0),
                // Models with adapters run here.
                AuxiliaryPass::Tuned(_) | AuxiliaryPass::Split(_) => continue,
            };
            let entry = by_model.entry(model.to_owned()).or_default();
            entry.passes += passes;
            entry.prefix_bytes += prefix_bytes;
        }
    }
    by_model
}
