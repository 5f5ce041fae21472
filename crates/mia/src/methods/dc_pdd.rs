//! DC-PDD (Zhang et al. 2024): the probability of the tokens, calibrated by how frequent they are in a reference corpus.

use super::access::Access;
use super::definition::{MethodDefinition, MethodDescription, PdrPolicy};
use super::fault::Fault;
use super::formula::{FormulaInput, Outcome, ScoreError, finite};
use super::parameter_entry::{ParameterEntry, ParameterType};
use super::parameters::{AnyParameter, Number, Parameter, ParameterKind, ParameterValue, Place, Reader, ValueType};
use super::range::{Range, format_number};
use super::schema_parts::Schemas;
use serde::Serialize;
use std::collections::HashSet;
use std::sync::Arc;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Mean over first occurrences of the probability calibrated by the token's frequency.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct DcPdd {
    /// Name of the token counts.
    #[schema(value_type = String)]
    pub counts: Arc<str>,
    /// Maximum contribution of a token.
    pub a: f64,
}

static COUNTS: Parameter<CountsId> = Parameter {
    name: "counts",
    kind: CountsId,
    summary: "name of the token counts; may be left out where the settings have one.",
    description: "Id of the token counts; may be left out if there is but one.",
};

static A: Parameter<Number> = Parameter {
    name: "a",
    kind: Number { range: Range::above_zero(), default: 0.01 },
    summary: "the most that a token contributes.",
    description: "The most that a token contributes.",
};

/// The id of token counts of the settings; where none is given, that of the only ones.
#[derive(Debug)]
pub struct CountsId;

impl ParameterKind for CountsId {
    type Value = Arc<str>;
    const VALUE_TYPE: ValueType = ValueType::String;

    fn read(&self, place: &Place) -> Result<Arc<str>, Fault> {
        let id = match place.value {
            None => None,
            Some(ParameterValue::String(id)) => Some(id.as_str()),
            Some(other) => return Err(place.wrong_type(other, "the id of token counts")),
        };
        let known = place.scope.map(|scope| &*scope.token_counts);
        match (id, known) {
            (Some(id), None) => Ok(id.into()),
            (None, Some([only])) => Ok((*only).into()),
            (_, Some([])) => Err(place.fault(
                "there are no token counts: `pdr-audit count-tokens` makes them and `[[token_counts]]` names them",
            )),
            (None, known) => {
                let known = known.unwrap_or_default().join(", ");
                Err(place.fault(format!("missing field `counts`; configured are {known}")))
            }
            (Some(id), Some(known)) if known.contains(&id) => Ok(id.into()),
            (Some(id), Some(known)) => Err(Fault::unknown("token counts", id, known, place.pointer())),
        }
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        ParameterEntry::optional(name, ParameterType::String, description)
    }

    fn schema(&self, _: &mut Schemas) -> RefOr<Schema> {
        String::schema()
    }
}

impl MethodDefinition for DcPdd {
    const DESCRIPTION: MethodDescription = MethodDescription {
        summary: "Probability of the tokens, calibrated by how frequent they are in a reference corpus.",
        formula: "mean over first occurrences of min(p_t ln(1/f_t), a), f = (count + 1)/(N + V)",
        needs: &[Access::LogProbabilities, Access::TokenCounts],
        further_passes: "none",
        source: "DC-PDD: Zhang et al. 2024, arXiv:2409.14781",
    };
    const PARAMETERS: &'static [&'static dyn AnyParameter] = &[&COUNTS, &A];
    const PDR: PdrPolicy =
        PdrPolicy::Refused("it looks at first occurrences and caps them, which already depends on position");

    fn read(reader: &mut Reader) -> Option<Self> {
        let (counts, a) = (reader.read(&COUNTS), reader.read(&A));
        Some(DcPdd { counts: counts?, a: a? })
    }

    fn label_parts(&self) -> Vec<(&'static str, String)> {
        vec![("counts", self.counts.to_string()), ("a", format_number(self.a))]
    }

    fn token_counts(&self) -> Option<&str> {
        Some(&self.counts)
    }

    /// `min(p_t ln(1 / f_t), a)` for the first occurrence of each id. The values are those of some tokens only, so no sum
    /// explains the score by its tokens.
    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let (tokens, counts) = (input.tokens()?, input.token_counts(&self.counts)?);
        let mut seen = HashSet::with_capacity(tokens.len());
        let first_occurrences = tokens.iter().zip(input.text.ids).filter(|(_, id)| seen.insert(**id));
        let values = finite(first_occurrences.map(|(token, &id)| {
            let value = token.lp.exp() * -counts.frequency(id).ln();
            // Not `min`, which would make `a` of NaN.
            if value > self.a { self.a } else { value }
        }))?;
        input.sum(&values)?.quotient().map(Outcome::Value)
    }
}
