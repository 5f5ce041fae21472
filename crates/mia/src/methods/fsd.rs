//! FSD (Zhang et al. 2025): how much the score of a text changes when the model is tuned on texts that it has not seen. Those
//! change the scores of other unseen texts more than those of texts that the model was trained on.

use super::access::Access;
use super::auxiliary_pass::{AuxiliaryPass, Split};
use super::definition::{MethodDefinition, MethodDescription, PdrPolicy};
use super::fault::Fault;
use super::formula::{FormulaInput, Outcome, ScoreError, TextStats};
use super::grid::Grid;
use super::parameter_entry::{ParameterEntry, ParameterType};
use super::parameters::{
    AnyParameter, Parameter, ParameterKind, ParameterValue, Place, Reader, TunedScoreRequest, ValueType,
};
use super::range::{Fraction, Range};
use super::schema_parts::{Schemas, schema_reference};
use super::tuned_score::TunedScore;
use serde::Serialize;
use std::sync::Arc;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A score under the model, minus the same under an adapter that was tuned on non-members: either one that is named, or one that
/// is tuned on a share of an audit's texts.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
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
/// The largest seed: every whole number up to it is a number of JSON.
const LARGEST_SEED: f64 = 9_007_199_254_740_991.0;

static ADAPTER: Parameter<AdapterParameter> = Parameter {
    name: "adapter",
    kind: AdapterParameter,
    summary: "name of an adapter of the model, tuned on texts that it has not seen.",
    description: "Name of an adapter of the model, tuned on texts that the model has not seen, or its id `<model>:<adapter>`. In an \
                  audit, `split` may stand in its place.",
};

static SPLIT: Parameter<SplitShare> = Parameter {
    name: "split",
    kind: SplitShare,
    summary: "in an audit: the share of the texts that is left out of scoring, on whose non-members the model is tuned.",
    description: "In an audit with labels, in place of `adapter`: the share of the texts that is left out of scoring, by group; the \
                  model is tuned on the non-members among them.",
};

static SEEDS: Parameter<Seeds> = Parameter {
    name: "seeds",
    kind: Seeds,
    summary: "with `split`: seed of the split and of the tuning, or a list of them; 42 if left out.",
    description: "With `split`: seed of the split and of the tuning. A list makes a method for each, and the report has their mean.",
};

static SCORE: Parameter<ComparedScore> = Parameter {
    name: "score",
    kind: ComparedScore,
    summary: "the score that is compared before and after tuning; `min_k` if left out.",
    description: "The score that is compared: `loss`, `min_k` or `min_k_plus_plus`, with its `k` and `pdr`; `min_k` if left out.",
};

/// The name of an adapter of the model that is asked about.
#[derive(Debug)]
struct AdapterParameter;

impl ParameterKind for AdapterParameter {
    type Value = Option<Arc<str>>;
    const VALUE_TYPE: ValueType = ValueType::String;

    fn read(&self, place: &Place) -> Result<Option<Arc<str>>, Fault> {
        let name = match place.value {
            Some(ParameterValue::String(name)) => name,
            Some(other) => return Err(place.wrong_type(other, "the name of an adapter")),
            None => return Ok(None),
        };
        let Some(scope) = place.scope else { return Ok(Some(name.as_str().into())) };
        refuse_tuned(place)?;
        if scope.adapters().is_empty() {
            return Err(place.fault("the model has no adapter"));
        }
        match scope.adapter(name) {
            Some(id) => Ok(Some(id.into())),
            None => Err(Fault::unknown("adapter", name, scope.adapters(), place.pointer())),
        }
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        // The description says what is used in its place.
        ParameterEntry { required: true, ..ParameterEntry::optional(name, ParameterType::String, description) }
    }

    fn schema(&self, _: &mut Schemas) -> RefOr<Schema> {
        String::schema()
    }
}

/// Refuses a model that is tuned itself.
fn refuse_tuned(place: &Place) -> Result<(), Fault> {
    match place.scope.and_then(|scope| scope.model).filter(|model| model.contains(':')) {
        Some(model) => {
            Err(place.fault(format!("`{model}` is tuned itself; `fsd` compares a model with one of its adapters")))
        }
        None => Ok(()),
    }
}

/// A share of the texts of an audit.
#[derive(Debug)]
struct SplitShare;

impl ParameterKind for SplitShare {
    type Value = Option<Fraction>;
    const VALUE_TYPE: ValueType = ValueType::Number;

    fn read(&self, place: &Place) -> Result<Option<Fraction>, Fault> {
        let share = match place.value {
            Some(ParameterValue::Number(share)) => *share,
            Some(other) => return Err(place.wrong_type(other, "a number")),
            None => return Ok(None),
        };
        refuse_tuned(place)?;
        if place.scope.is_some_and(|scope| !scope.audit) {
            return Err(place.fault("`split` is a share of the texts of an audit; name an `adapter`"));
        }
        let fraction = Fraction::new(share).filter(|share| share.get() < 1.0);
        fraction.map(Some).ok_or_else(|| place.fault(format!("split is {share:?}, outside (0, 1)")))
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        let range = Range { maximum: Some(1.0), ..Fraction::RANGE };
        ParameterEntry { range: Some(range), ..ParameterEntry::optional(name, ParameterType::Number, description) }
    }

    fn schema(&self, _: &mut Schemas) -> RefOr<Schema> {
        f64::schema()
    }
}

/// A seed, or a list of them to sweep over.
#[derive(Debug)]
struct Seeds;

impl ParameterKind for Seeds {
    type Value = Option<u64>;
    const VALUE_TYPE: ValueType = ValueType::Grid;

    fn read(&self, place: &Place) -> Result<Option<u64>, Fault> {
        let values = match place.value {
            None => return Ok(None),
            Some(ParameterValue::Grid(grid)) => grid.values(),
            Some(other) => return Err(place.wrong_type(other, "a whole number")),
        };
        let (seed, below) = values.get(place.sweep).ok_or_else(|| place.fault("the list of values is empty"))?;
        if (0.0..=LARGEST_SEED).contains(seed) && seed.fract() == 0.0 {
            return Ok(Some(*seed as u64));
        }
        let detail = format!("seeds is {seed:?}, which is not a whole number from 0 to {LARGEST_SEED}");
        Err(Fault::new(format!("{}{below}", place.pointer()), detail))
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        ParameterEntry { sweep: true, ..ParameterEntry::optional(name, ParameterType::Integer, description) }
    }

    fn schema(&self, schemas: &mut Schemas) -> RefOr<Schema> {
        schema_reference::<Grid>(schemas)
    }
}

/// A score of one model.
#[derive(Debug)]
struct ComparedScore;

impl ParameterKind for ComparedScore {
    type Value = TunedScore;
    const VALUE_TYPE: ValueType = ValueType::TunedScore;

    fn read(&self, place: &Place) -> Result<TunedScore, Fault> {
        let min_k = || TunedScoreRequest { name: "min_k".to_owned(), k: None, pdr: None };
        let request = match place.value {
            None => min_k(),
            Some(ParameterValue::TunedScore(request)) => request.clone(),
            Some(other) => return Err(place.wrong_type(other, "an object that names a score")),
        };
        TunedScore::read(&request, &place.pointer()).map_err(|faults| match faults.into_iter().next() {
            Some(first) => first,
            None => place.fault("it cannot be read"),
        })
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        ParameterEntry::optional(name, ParameterType::Object, description)
    }

    fn schema(&self, schemas: &mut Schemas) -> RefOr<Schema> {
        schema_reference::<TunedScoreRequest>(schemas)
    }
}

impl MethodDefinition for Fsd {
    const DESCRIPTION: MethodDescription = MethodDescription {
        summary: "A score of the text, less the same after the model was tuned on texts that it has not seen.",
        formula: "S(x; M) - S(x; M'), M' = M under the adapter",
        needs: &[Access::LogProbabilities, Access::Adapter],
        further_passes: "1, under the adapter",
        source: "Zhang et al. 2025, arXiv:2410.10880",
    };
    const PARAMETERS: &'static [&'static dyn AnyParameter] = &[&ADAPTER, &SPLIT, &SEEDS, &SCORE];
    const PDR: PdrPolicy = PdrPolicy::Refused("they belong to the score that is compared, as `score.pdr`");

    fn read(reader: &mut Reader) -> Option<Self> {
        let (adapter, split) = (reader.read(&ADAPTER), reader.read(&SPLIT));
        let (seeds, score) = (reader.read(&SEEDS), reader.read(&SCORE));
        let given = |name| reader.given.contains_key(name);
        let fault = match (given(ADAPTER.name), given(SPLIT.name), given(SEEDS.name)) {
            (true, true, _) => "there are `adapter` and `split`; `fsd` takes either",
            (false, false, _) => {
                "no adapter: name one that was tuned on texts that the model has not seen, or in an audit a `split`"
            }
            (true, false, true) => "`seeds` are those of a `split`; the adapter has its own",
            (true, false, false) | (false, true, _) => {
                let split = split?;
                let seeds = split.map(|_| seeds.map(|seed| seed.unwrap_or(SEED)));
                return Some(Fsd {
                    adapter: adapter?,
                    split,
                    seeds: seeds.map_or(Some(None), |seed| seed.map(Some))?,
                    score: score?,
                });
            }
        };
        reader.faults.push(Fault::new(reader.entry, fault));
        None
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
