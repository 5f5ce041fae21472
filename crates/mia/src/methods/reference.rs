//! The reference attack: the log-probability of the text, less what a reference model gives it.

use super::auxiliary_pass::AuxiliaryPass;
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::fault::Fault;
use super::formula::{FormulaInput, Outcome, ScoreError, finite};
use super::parameter::{Parameter, ParameterKind};
use super::scope::Place;
use super::value::ValueType;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;

/// Mean log-probability minus that of a reference model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ref {
    /// Id of the reference model.
    #[schema(value_type = String)]
    pub reference: Arc<str>,
    /// Which ids the reference model scores. It follows from the two models, so it is settled when they are opened; a
    /// stored method tells by its note.
    #[serde(skip)]
    pub tokenization: Tokenization,
}

/// Which token ids of a text the reference model scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokenization {
    /// It has the target's tokenization and is given the target's ids: token by token a difference.
    #[default]
    Shared,
    /// It has another one and is given ids of its own: only the means can be compared.
    Separate,
}

pub static REFERENCE: Parameter = Parameter {
    name: "reference",
    kind: ParameterKind::Checked {
        value_type: ValueType::String,
        required: false,
        range: None,
        read: |place| Ok(Some(json!(reference_model(place)?))),
    },
    description: "Id of the reference model; the one that the settings give the model if left out.",
};

/// The id of a reference model; where none is given, the one that the settings give the target model.
pub fn reference_model(place: &Place) -> Result<Arc<str>, Fault> {
    match (place.string(REFERENCE.name), place.scope.and_then(|scope| scope.reference)) {
        (Some(id), _) => place.check_model(id, REFERENCE.name).map(|()| id.into()),
        (None, Some(id)) => Ok(id.into()),
        (None, None) => Err(place.fault(
            REFERENCE.name,
            "no reference model: name one as `reference`, or give the model one in the settings",
        )),
    }
}

impl MethodDefinition for Ref {
    const DEFINITION: Definition = Definition {
        summary: "As loss, less what a reference model gives the same tokens.",
        formula: "mean_t (lp_t - lp_ref_t); with another tokenization mean lp - mean lp_ref, each over its own tokens",
        needs: &[Access::LogProbabilities, Access::ReferenceModel],
        further_passes: "1, by the reference model",
        source: "Carlini et al. 2021, arXiv:2012.07805",
        parameters: &[&REFERENCE],
        pdr: PdrPolicy::Accepted { published: true, selects: false, text_alone: true },
    };

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        vec![(REFERENCE.name, self.pass())]
    }

    fn note(&self) -> Option<&'static str> {
        match self.tokenization {
            Tokenization::Shared => None,
            Tokenization::Separate => Some(
                "the reference model has another tokenization: the difference of the two mean log-probabilities, each \
                 over its own tokens",
            ),
        }
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        match self.tokenization {
            Tokenization::Shared => input.sum(&differences(input, &self.reference)?).map(Outcome::Sum),
            Tokenization::Separate => {
                let reference = input.mean_of(input.sequence(&self.pass())?)?;
                Ok(Outcome::Value(input.mean()? - reference))
            }
        }
    }
}

/// The log-probability of each token less that under a reference model that scored the same ids, in nats.
pub fn differences(input: &FormulaInput, reference: &Arc<str>) -> Result<Vec<f64>, ScoreError> {
    let tokens = input.tokens()?;
    let reference = input.sequence(&AuxiliaryPass::Reference(Arc::clone(reference)))?;
    if reference.len() < tokens.len() {
        return Err(ScoreError::Internal("the reference model scored fewer tokens than the text has"));
    }
    finite(tokens.iter().zip(reference).map(|(token, reference)| token.lp - reference.lp))
}

impl Ref {
    fn pass(&self) -> AuxiliaryPass {
        let reference = Arc::clone(&self.reference);
        match self.tokenization {
            Tokenization::Shared => AuxiliaryPass::Reference(reference),
            Tokenization::Separate => AuxiliaryPass::ReferenceTokenization(reference),
        }
    }
}
