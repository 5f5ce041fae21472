//! The trait that defines a method.

pub use super::access::Access;
use super::auxiliary_pass::AuxiliaryPass;
use super::fault::{Fault, Faults};
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::parameter::Parameter;
use super::range::format_number;
use super::scope::Place;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A method, before truncation and weights. The implementing type holds the method's parameters, in the fields that a
/// request gives them in: it is read from the values of its [`parameters`](Definition::parameters), and serialises as them.
pub trait MethodDefinition: DeserializeOwned + Serialize {
    /// Properties that do not depend on the parameters.
    const DEFINITION: Definition;

    /// Checks the parameters together, and sets those whose default depends on others.
    fn settle(_: &Place, _: &mut Map<String, Value>) -> Result<(), Fault> {
        Ok(())
    }

    /// Reads the parameters out of a request. All of them are checked, so that no fault hides another.
    fn read(place: &Place, faults: &mut Faults) -> Option<Self> {
        let (mut values, mut complete) = (Map::new(), true);
        for parameter in Self::DEFINITION.parameters {
            match faults.keep(parameter.read(place)) {
                Some(Some(value)) => {
                    values.insert(parameter.name.to_owned(), value);
                }
                Some(None) => {}
                None => complete = false,
            }
        }
        faults.keep(Self::settle(place, &mut values)).filter(|()| complete)?;
        // A type without fields is null to serde.
        let values = if Self::DEFINITION.parameters.is_empty() { Value::Null } else { values.into() };
        faults.keep(serde_json::from_value(values).map_err(|error| Fault::new(place.entry, error.to_string())))
    }

    /// The parameters as labels write them: name and value, in order. They must tell any two values of the type apart.
    fn label_parts(&self) -> Vec<(&'static str, String)> {
        let values = serde_json::to_value(self).unwrap_or_default();
        let part = |parameter: &&'static Parameter| {
            let value = match values.get(parameter.name)? {
                Value::String(text) => text.clone(),
                value => value.as_f64().map_or_else(|| value.to_string(), format_number),
            };
            Some((parameter.name, value))
        };
        Self::DEFINITION.parameters.iter().filter_map(part).collect()
    }

    /// The forward passes that the method needs beside the one over the text itself, each with the field of the request
    /// that asks for it. A pass that the formula reads and that is not listed here is an internal error.
    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        Vec::new()
    }

    /// The id of the token counts that the formula reads. If they are not named here, reading them is an internal error.
    fn token_counts(&self) -> Option<&str> {
        None
    }

    /// Notes that a reader of the scores must know.
    fn note(&self) -> Option<&'static str> {
        None
    }

    /// The formula; higher: more likely a member.
    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError>;
}

/// The properties of a method that do not depend on its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Quantity that it measures.
    pub summary: &'static str,
    pub formula: &'static str,
    /// Data that the score is computed from.
    pub needs: &'static [Access],
    /// Sequences that run through a model for one text, beside the text itself.
    pub further_passes: &'static str,
    /// Publication.
    pub source: &'static str,
    /// The parameters that it takes beside those that all methods take (`truncate`, `pdr`, `label`).
    pub parameters: &'static [&'static Parameter],
    pub pdr: PdrPolicy,
}

/// Policy of a method on weights (PDR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PdrPolicy {
    Accepted {
        /// True if the PDR paper evaluates the combination. If not, it is an extension and the answer says so.
        published: bool,
        /// True if the method selects tokens by their values, so that `select` applies.
        selects: bool,
        /// True if the method weights the text itself and no other one made of it, so that weights by the positions of an
        /// audit's texts (`entropy_dataset`) fit.
        text_alone: bool,
    },
    /// It does not, for this reason.
    Refused(&'static str),
}
