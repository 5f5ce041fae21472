//! The neighbourhood attack (Mattern et al. 2023): the log-probability of the text, less that of texts that differ from it
//! in one word.

use super::auxiliary_pass::{AuxiliaryPass, Generator};
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::fault::Fault;
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::parameter::{Parameter, ParameterKind};
use super::scope::Place;
use super::value::{GeneratorRequest, ParameterValue, ValueType};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use utoipa::ToSchema;

/// Maximum number of neighbours of a text, whether they come with it or are generated.
pub const MAX_NEIGHBORS: usize = 200;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Neighbor {
    /// Generator of the neighbours, if they do not come with the texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator: Option<Generator>,
}

/// Number of neighbours of a text that a generator makes if the request does not say.
const DEFAULT_COUNT: usize = 25;

pub static GENERATOR: Parameter = Parameter {
    name: "generator",
    kind: ParameterKind::Checked {
        value_type: ValueType::Generator,
        required: false,
        range: None,
        read: |place| Ok(generator(place)?.map(|generator| json!(generator))),
    },
    description: "`model`, the id of a masked model that makes the neighbours, and `count`, the most of them, 25 if left \
                  out, in [1, 200]; without it the neighbours come with the texts.",
};

/// The masked model that generates neighbours, and how many. Where it is not given, the neighbours come with the texts.
pub fn generator(place: &Place) -> Result<Option<Generator>, Fault> {
    let Some(ParameterValue::Generator(GeneratorRequest { model, count })) = place.given.get(GENERATOR.name) else {
        return Ok(None);
    };
    let count = count.unwrap_or(DEFAULT_COUNT);
    if !(1..=MAX_NEIGHBORS).contains(&count) {
        return Err(place.fault("generator/count", format!("count is {count}, outside [1, {MAX_NEIGHBORS}]")));
    }
    place.check_model(model, "generator/model")?;
    Ok(Some(Generator { model: Arc::from(model.as_str()), count }))
}

impl MethodDefinition for Neighbor {
    const DEFINITION: Definition = Definition {
        summary: "Mean log-probability of the text, less that of texts that differ in one word.",
        formula: "mean lp(x) - mean_i mean lp(x_i)",
        needs: &[Access::LogProbabilities, Access::Text, Access::Neighbors],
        further_passes: "1 for each neighbour, and 1 for each word of the text where a masked model makes them",
        source: "Mattern et al. 2023, arXiv:2305.18462",
        parameters: &[&GENERATOR],
        pdr: PdrPolicy::Accepted { published: false, selects: false, text_alone: false },
    };

    fn label_parts(&self) -> Vec<(&'static str, String)> {
        match &self.generator {
            None => Vec::new(),
            Some(Generator { model, count }) => vec![("generator", model.to_string()), ("count", count.to_string())],
        }
    }

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        vec![(GENERATOR.name, self.pass())]
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let neighbors = input.pass(&self.pass())?;
        let means = neighbors.iter().map(|tokens| input.mean_of(tokens)).collect::<Result<Vec<f64>, _>>()?;
        Ok(Outcome::Value(input.mean()? - means.iter().sum::<f64>() / means.len() as f64))
    }
}

impl Neighbor {
    fn pass(&self) -> AuxiliaryPass {
        AuxiliaryPass::Neighbors(self.generator.clone())
    }
}
