//! FSD (Zhang et al. 2025): how much the score of a text changes when the model is tuned on texts that it has not seen. Those
//! change the scores of other unseen texts more than those of texts that the model was trained on.

use super::auxiliary_pass::{AuxiliaryPass, Split};
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::fault::Fault;
use super::formula::{FormulaInput, Outcome, ScoreError, TextStats};
use super::parameter::{Parameter, ParameterKind};
use super::range::Fraction;
use super::scope::Place;
use super::tuned_score::TunedScore;
use super::value::{ParameterValue, TunedScoreRequest, ValueType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use utoipa::ToSchema;

/// A score under the model, minus the same under an adapter that was tuned on non-members: either one that is named, or one that
/// is tuned on a share of an audit's texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Fsd {
    /// Id of the model under the adapter, `<model>:<adapter>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    adapter: Option<Arc<str>>,
    /// The share of the texts that is left out of scoring, on whose non-members the model is tuned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    split: Option<Fraction>,
    /// Seed of the split and of the tuning.
    #[serde(skip_serializing_if = "Option::is_none")]
    seeds: Option<u64>,
    /// The score that is compared.
    #[schema(value_type = TunedScoreRequest)]
    pub score: TunedScore,
}

/// The seed of a split if none is given.
const SEED: u64 = 42;

static ADAPTER: Parameter = Parameter {
    name: "adapter",
    // The description says what may stand in its place.
    kind: ParameterKind::Checked { value_type: ValueType::String, required: true, range: None, read: adapter },
    description: "Name of an adapter of the model, tuned on texts that the model has not seen, or its id `<model>:<adapter>`. In an \
                  audit, `split` may stand in its place.",
};

static SPLIT: Parameter = Parameter {
    name: "split",
    kind: ParameterKind::Checked {
        value_type: ValueType::Number,
        required: false,
        range: Some(Fraction::RANGE),
        read: split,
    },
    description: "In an audit with labels, in place of `adapter`: the share of the texts that is left out of scoring, by group; the \
                  model is tuned on the non-members among them.",
};

static SEEDS: Parameter = Parameter {
    name: "seeds",
    kind: ParameterKind::Seed,
    description: "With `split`: seed of the split and of the tuning, 42 if left out. A list makes a method for each, and the \
                  report has their mean.",
};

static SCORE: Parameter = Parameter {
    name: "score",
    kind: ParameterKind::Checked { value_type: ValueType::TunedScore, required: false, range: None, read: score },
    description: "The score that is compared: `loss`, `min_k` or `min_k_plus_plus`, with its `k` and `pdr`; `min_k` if left out.",
};

/// The id of an adapter of the model that is asked about.
fn adapter(place: &Place) -> Result<Option<Value>, Fault> {
    let (Some(name), Some(scope)) = (place.string(ADAPTER.name), place.scope) else {
        return Ok(place.string(ADAPTER.name).map(|name| json!(name)));
    };
    refuse_tuned(place, ADAPTER.name)?;
    if scope.adapters().is_empty() {
        return Err(place.fault(ADAPTER.name, "the model has no adapter"));
    }
    match scope.adapter(name) {
        Some(id) => Ok(Some(json!(id))),
        None => Err(Fault::unknown("adapter", name, scope.adapters(), place.pointer(ADAPTER.name))),
    }
}

/// Refuses a model that is tuned itself.
fn refuse_tuned(place: &Place, field: &str) -> Result<(), Fault> {
    match place.scope.and_then(|scope| scope.model).filter(|model| model.contains(':')) {
        Some(model) => {
            Err(place
                .fault(field, format!("`{model}` is tuned itself; `fsd` compares a model with one of its adapters")))
        }
        None => Ok(()),
    }
}

/// A share of the texts of an audit.
fn split(place: &Place) -> Result<Option<Value>, Fault> {
    let Some(ParameterValue::Number(share)) = place.given.get(SPLIT.name) else { return Ok(None) };
    refuse_tuned(place, SPLIT.name)?;
    if place.scope.is_some_and(|scope| !scope.audit) {
        return Err(place.fault(SPLIT.name, "`split` is a share of the texts of an audit; name an `adapter`"));
    }
    match Fraction::new(*share) {
        Some(fraction) if fraction.get() < 1.0 => Ok(Some(json!(fraction))),
        _ => Err(place.fault(SPLIT.name, format!("split is {share:?}, outside (0, 1)"))),
    }
}

/// A score of one model.
fn score(place: &Place) -> Result<Option<Value>, Fault> {
    let min_k = TunedScoreRequest { name: "min_k".to_owned(), k: None, pdr: None };
    let request = match place.given.get(SCORE.name) {
        Some(ParameterValue::TunedScore(request)) => request,
        _ => &min_k,
    };
    TunedScore::read(request, &place.pointer(SCORE.name)).map(|score| Some(json!(score)))
}

impl MethodDefinition for Fsd {
    const DEFINITION: Definition = Definition {
        summary: "A score of the text, less the same after the model was tuned on texts that it has not seen.",
        formula: "S(x; M) - S(x; M'), M' = M under the adapter",
        needs: &[Access::LogProbabilities, Access::Adapter],
        further_passes: "1, under the adapter",
        source: "Zhang et al. 2025, arXiv:2410.10880",
        parameters: &[&ADAPTER, &SPLIT, &SEEDS, &SCORE],
        pdr: PdrPolicy::Refused("they belong to the score that is compared, as `score.pdr`"),
    };

    fn settle(place: &Place, values: &mut Map<String, Value>) -> Result<(), Fault> {
        let given = |parameter: &Parameter| place.given.contains_key(parameter.name);
        let fault = match (given(&ADAPTER), given(&SPLIT), given(&SEEDS)) {
            (true, true, _) => "there are `adapter` and `split`; `fsd` takes either",
            (false, false, _) => {
                "no adapter: name one that was tuned on texts that the model has not seen, or in an audit a `split`"
            }
            (true, false, true) => "`seeds` are those of a `split`; the adapter has its own",
            (true, false, false) => return Ok(()),
            (false, true, _) => {
                values.entry(SEEDS.name).or_insert(json!(SEED));
                return Ok(());
            }
        };
        Err(Fault::new(place.entry, fault))
    }

    fn label_parts(&self) -> Vec<(&'static str, String)> {
        let adapter = self.adapter.as_ref().map(|adapter| (ADAPTER.name, adapter.to_string()));
        let split = self.split.map(|split| (SPLIT.name, split.to_string()));
        let seeds = self.seeds.map(|seed| (SEEDS.name, seed.to_string()));
        let score = (SCORE.name, self.score.to_string());
        adapter.into_iter().chain(split).chain(seeds).chain([score]).collect()
    }

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        let field = if self.split.is_some() { SPLIT.name } else { ADAPTER.name };
        self.pass().into_iter().map(|pass| (field, pass)).collect()
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let base = self.score.evaluate(input.text, input.truncate)?;
        let pass = self.pass().ok_or(ScoreError::Internal("a method without the model that it compares with"))?;
        let tuned = input.sequence(&pass)?;
        let tokens = tuned.get(..input.text.tokens.len());
        let tokens = tokens.ok_or(ScoreError::Internal("the tuned model scored fewer tokens than the text has"))?;
        let tuned = self.score.evaluate(&TextStats { tokens, ..*input.text }, input.truncate)?;
        Ok(Outcome::Value(base - tuned))
    }
}

impl Fsd {
    /// Returns true if `other` differs only in its seed.
    pub fn differs_by_seed(&self, other: &Fsd) -> bool {
        let without = |fsd: &Fsd| Fsd { seeds: None, ..fsd.clone() };
        self.seeds != other.seeds && without(self) == without(other)
    }

    /// The pass under the tuned model.
    fn pass(&self) -> Option<AuxiliaryPass> {
        match (&self.adapter, self.split, self.seeds) {
            (Some(adapter), ..) => Some(AuxiliaryPass::Tuned(Arc::clone(adapter))),
            (None, Some(share), Some(seed)) => Some(AuxiliaryPass::Split(Split { share, seed })),
            (None, ..) => None,
        }
    }
}
