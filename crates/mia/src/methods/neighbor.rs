//! The neighbourhood attack (Mattern et al. 2023): the log-probability of the text, less that of texts that differ from it
//! in one word.

use super::access::Access;
use super::auxiliary_pass::{AuxiliaryPass, Generator};
use super::definition::{MethodDefinition, MethodDescription, PdrPolicy};
use super::fault::Fault;
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::parameter_entry::{ParameterEntry, ParameterType};
use super::parameters::{
    AnyParameter, GeneratorRequest, Integer, Parameter, ParameterKind, ParameterValue, Place, Reader, ValueType,
};
use super::schema_parts::{Schemas, schema_reference};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// Maximum number of neighbours of a text, whether they come with it or are generated.
pub const MAX_NEIGHBORS: usize = 200;

/// Mean log-probability minus that of the text's neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Neighbor {
    /// Generator of the neighbours, if they do not come with the texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator: Option<Generator>,
}

pub static GENERATOR: Parameter<MaskedModel> = Parameter {
    name: "generator",
    kind: MaskedModel { count: Integer { minimum: 1, maximum: MAX_NEIGHBORS, default: 25 } },
    summary: "what makes the neighbours; they come with the texts if left out.",
    description: "without it the neighbours come with the texts.",
};

/// A masked model that generates neighbours, and how many. Where it is not given, the neighbours come with the texts.
#[derive(Debug)]
pub struct MaskedModel {
    count: Integer,
}

impl ParameterKind for MaskedModel {
    type Value = Option<Generator>;
    const VALUE_TYPE: ValueType = ValueType::Generator;

    fn read(&self, place: &Place) -> Result<Option<Generator>, Fault> {
        let GeneratorRequest { model, count } = match place.value {
            None => return Ok(None),
            Some(ParameterValue::Generator(generator)) => generator,
            Some(other) => return Err(place.wrong_type(other, "an object that names a model")),
        };
        let count = count.unwrap_or(self.count.default);
        let range = self.count.range();
        if !range.contains(count as f64) {
            let pointer = format!("{}/count", place.pointer());
            return Err(Fault::new(pointer, format!("count is {count}, outside {range}")));
        }
        Ok(Some(Generator { model: place.model(model, "/model")?, count }))
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        let description = format!(
            "`model`, the id of a masked model that makes the neighbours, and `count`, the most of them, {} if left out, \
             in {}; {description}",
            self.count.default,
            self.count.range()
        );
        ParameterEntry::optional(name, ParameterType::Object, description)
    }

    fn schema(&self, schemas: &mut Schemas) -> RefOr<Schema> {
        schema_reference::<GeneratorRequest>(schemas)
    }
}

impl MethodDefinition for Neighbor {
    const DESCRIPTION: MethodDescription = MethodDescription {
        summary: "Mean log-probability of the text, less that of texts that differ in one word.",
        formula: "mean lp(x) - mean_i mean lp(x_i)",
        needs: &[Access::LogProbabilities, Access::Text, Access::Neighbors],
        further_passes: "1 for each neighbour, and 1 for each word of the text where a masked model makes them",
        source: "Mattern et al. 2023, arXiv:2305.18462",
    };
    const PARAMETERS: &'static [&'static dyn AnyParameter] = &[&GENERATOR];
    const PDR: PdrPolicy = PdrPolicy::Accepted { published: false, selects: false, text_alone: false };

    fn read(reader: &mut Reader) -> Option<Self> {
        Some(Neighbor { generator: reader.read(&GENERATOR)? })
    }

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
