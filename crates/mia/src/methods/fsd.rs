//! FSD (Zhang et al. 2025): how much the score of a text changes when the model is tuned on texts that it has not seen. Those
//! change the scores of other unseen texts more than those of texts that the model was trained on.

use super::auxiliary_pass::{AuxiliaryPass, Split};
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::fault::{Fault, Faults};
use super::formula::{FormulaInput, Outcome, ScoreError, TextStats};
use super::loss::Loss;
use super::min_k::MinK;
use super::min_k_plus_plus::MinKPlusPlus;
use super::parameter::{Parameter, ParameterKind};
use super::pdr::{Pdr, PdrRequest, Select, Weighting};
use super::range::Fraction;
use super::scope::Place;
use super::value::{ParameterValue, TunedScoreRequest, ValueType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use strum::{Display, EnumString, VariantNames};
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

/// A score of a text under one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TunedScoreRequest", into = "TunedScoreRequest")]
pub struct TunedScore {
    pub base: TunedBase,
    /// Share of tokens that `base` selects, if it selects some.
    pub k: Option<Fraction>,
    pub pdr: Option<Pdr>,
}

/// The methods that may be compared before and after tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum TunedBase {
    Loss,
    MinK,
    MinKPlusPlus,
}

impl TunedScore {
    /// Resolves the request, whose JSON pointer is `pointer`, or returns its first fault.
    pub fn read(request: &TunedScoreRequest, pointer: &str) -> Result<Self, Fault> {
        let fault = |field: &str, detail: String| Fault::new(format!("{pointer}/{field}"), detail);
        let name = &request.name;
        let unknown = |_| Fault::unknown("score", name, TunedBase::VARIANTS, format!("{pointer}/name"));
        let base: TunedBase = name.parse().map_err(unknown)?;
        let k = match (base, request.k) {
            (TunedBase::Loss, None) => None,
            (TunedBase::Loss, Some(_)) => return Err(fault("k", "`loss` takes no `k`".to_owned())),
            (TunedBase::MinK | TunedBase::MinKPlusPlus, k) => {
                let k = k.unwrap_or(Fraction::FIFTH.get());
                let outside = || fault("k", format!("k is {k:?}, outside {}", Fraction::RANGE));
                Some(Fraction::new(k).ok_or_else(outside)?)
            }
        };
        let pdr = request.pdr.as_ref().map(|request| one(request, &format!("{pointer}/pdr"))).transpose()?;
        if let (TunedBase::Loss, Some(Pdr { select: Select::Before, .. })) = (base, pdr) {
            return Err(fault("pdr/select", "`select` is `before`, but `loss` does not select tokens".to_owned()));
        }
        Ok(TunedScore { base, k, pdr })
    }

    /// The score of a text by the statistics of one model.
    pub fn evaluate(&self, text: &TextStats, truncate: Option<Fraction>) -> Result<f64, ScoreError> {
        let input = FormulaInput { text, truncate, pdr: self.pdr };
        let k = self.k.unwrap_or(Fraction::FIFTH);
        let outcome = match self.base {
            TunedBase::Loss => Loss.evaluate(&input),
            TunedBase::MinK => MinK { k }.evaluate(&input),
            TunedBase::MinKPlusPlus => MinKPlusPlus { k }.evaluate(&input),
        };
        match outcome? {
            Outcome::Sum(sum) => sum.quotient(),
            Outcome::Value(value) => Ok(value),
        }
    }
}

impl TryFrom<TunedScoreRequest> for TunedScore {
    type Error = String;

    fn try_from(request: TunedScoreRequest) -> Result<Self, String> {
        TunedScore::read(&request, "").map_err(|fault| format!("{}: {}", fault.pointer, fault.detail))
    }
}

impl From<TunedScore> for TunedScoreRequest {
    /// Defaults included.
    fn from(TunedScore { base, k, pdr }: TunedScore) -> TunedScoreRequest {
        let pdr = pdr.map(|pdr| pdr.to_request(k.is_some()));
        TunedScoreRequest { name: base.to_string(), k: k.map(Fraction::get), pdr }
    }
}

/// The one weighting of a score.
fn one(request: &PdrRequest, pointer: &str) -> Result<Pdr, Fault> {
    let mut faults = Faults::default();
    let weights = request.read(pointer, &mut faults).unwrap_or_default();
    if let Some(fault) = faults.into_vec().into_iter().next() {
        return Err(fault);
    }
    match weights.as_slice() {
        [Pdr { weighting: Weighting::EntropyDataset, .. }] => {
            let detail = "`entropy_dataset` belongs to the texts under one model, and `fsd` weights them under two";
            Err(Fault::new(format!("{pointer}/decay"), detail))
        }
        [pdr] => Ok(*pdr),
        several => {
            let detail = format!("there are {} values; the score of `fsd` takes one", several.len());
            Err(Fault::new(format!("{pointer}/alpha"), detail))
        }
    }
}

/// The part of a label: `min_k(k=0.2)+linear(alpha=1)`.
impl fmt::Display for TunedScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        if let Some(k) = self.k {
            write!(f, "(k={k})")?;
        }
        self.pdr.map_or(Ok(()), |pdr| write!(f, "+{pdr}"))
    }
}
