//! FSD (Zhang et al. 2025): how much the score of a text changes when the model is tuned on texts that it has not seen. Those
//! change the scores of other unseen texts more than those of texts that the model was trained on.

use super::access::Access;
use super::auxiliary_pass::AuxiliaryPass;
use super::definition::{MethodDefinition, MethodDescription, PdrPolicy};
use super::fault::Fault;
use super::formula::{FormulaInput, Outcome, ScoreError, TextStats};
use super::parameters::{
    AnyParameter, Parameter, ParameterEntry, ParameterKind, ParameterType, ParameterValue, Place, Reader, ValueType,
};
use super::schema_parts::{Schemas, schema_reference};
use super::tuned_score::TunedScore;
use super::tuned_score_request::TunedScoreRequest;
use serde::Serialize;
use std::sync::Arc;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A score under the model, minus the same under an adapter that was tuned on non-members.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Fsd {
    /// Id of the model under the adapter, `<model>:<adapter>`.
    #[schema(value_type = String)]
    pub adapter: Arc<str>,
    /// The score that is compared.
    #[schema(value_type = TunedScoreRequest)]
    pub score: TunedScore,
}

/// The parameter `adapter`.
static ADAPTER: Parameter<AdapterName> = Parameter {
    name: "adapter",
    kind: AdapterName,
    summary: "name of an adapter of the model, tuned on texts that it has not seen.",
    description: "Name of an adapter of the model, tuned on texts that the model has not seen, or its id `<model>:<adapter>`.",
};

/// The parameter `score`.
static SCORE: Parameter<ComparedScore> = Parameter {
    name: "score",
    kind: ComparedScore,
    summary: "the score that is compared before and after tuning; `min_k` if left out.",
    description: "The score that is compared: `loss`, `min_k` or `min_k_plus_plus`, with its `k` and `pdr`; `min_k` if left out.",
};

/// The name of an adapter of the model that is asked about.
#[derive(Debug)]
struct AdapterName;

impl ParameterKind for AdapterName {
    type Value = Arc<str>;
    const VALUE_TYPE: ValueType = ValueType::String;

    fn read(&self, place: &Place) -> Result<Arc<str>, Fault> {
        let name = match place.value {
            Some(ParameterValue::String(name)) => name,
            Some(other) => return Err(place.wrong_type(other, "the name of an adapter")),
            None => return Err(place.fault("no adapter: name one that was tuned on texts that the model has not seen")),
        };
        let Some(scope) = place.scope else { return Ok(name.as_str().into()) };
        if let Some(model) = scope.model.filter(|model| model.contains(':')) {
            let detail = format!("`{model}` is tuned itself; `fsd` compares a model with one of its adapters");
            return Err(place.fault(detail));
        }
        if scope.adapters().is_empty() {
            return Err(place.fault("the model has no adapter"));
        }
        match scope.adapter(name) {
            Some(id) => Ok(id.into()),
            None => Err(Fault::unknown("adapter", name, scope.adapters(), place.pointer())),
        }
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        ParameterEntry { required: true, ..ParameterEntry::optional(name, ParameterType::String, description) }
    }

    fn schema(&self, _: &mut Schemas) -> RefOr<Schema> {
        String::schema()
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
    const PARAMETERS: &'static [&'static dyn AnyParameter] = &[&ADAPTER, &SCORE];
    const PDR: PdrPolicy = PdrPolicy::Refused("they belong to the score that is compared, as `score.pdr`");

    fn read(reader: &mut Reader) -> Option<Self> {
        let (adapter, score) = (reader.read(&ADAPTER), reader.read(&SCORE));
        Some(Fsd { adapter: adapter?, score: score? })
    }

    fn label_parts(&self) -> Vec<(&'static str, String)> {
        vec![(ADAPTER.name, self.adapter.to_string()), (SCORE.name, self.score.to_string())]
    }

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        vec![(ADAPTER.name, self.pass())]
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let base = self.score.evaluate(input.text, input.truncate)?;
        let tuned = input.sequence(&self.pass())?;
        let tokens = tuned.get(..input.text.tokens.len());
        let tokens = tokens.ok_or(ScoreError::Internal("the tuned model scored fewer tokens than the text has"))?;
        let tuned = self.score.evaluate(&TextStats { tokens, ..*input.text }, input.truncate)?;
        Ok(Outcome::Value(base - tuned))
    }
}

impl Fsd {
    fn pass(&self) -> AuxiliaryPass {
        AuxiliaryPass::Reference(Arc::clone(&self.adapter))
    }
}
