//! DC-PDD (Zhang et al. 2024): the probability of the tokens, calibrated by how frequent they are in a reference corpus.

use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::fault::Fault;
use super::formula::{FormulaInput, Outcome, ScoreError, finite};
use super::parameter::{Parameter, ParameterKind};
use super::range::Range;
use super::scope::Place;
use super::value::ValueType;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DcPdd {
    /// Name of the token counts.
    #[schema(value_type = String)]
    pub counts: Arc<str>,
    /// Maximum contribution of a token.
    pub a: f64,
}

static COUNTS: Parameter = Parameter {
    name: "counts",
    kind: ParameterKind::Checked { value_type: ValueType::String, required: false, range: None, read: counts },
    description: "Id of the token counts; may be left out if there is but one.",
};

static A: Parameter = Parameter {
    name: "a",
    kind: ParameterKind::Number { value_type: ValueType::Number, range: Range::above_zero(), default: 0.01 },
    description: "The most that a token contributes.",
};

/// The id of token counts of the settings; where none is given, that of the only ones.
fn counts(place: &Place) -> Result<Option<Value>, Fault> {
    let known = place.scope.map(|scope| &*scope.token_counts);
    match (place.string(COUNTS.name), known) {
        (Some(id), None) => Ok(Some(json!(id))),
        (None, Some([only])) => Ok(Some(json!(only))),
        (_, Some([])) => Err(place.fault(
            COUNTS.name,
            "there are no token counts: `pdr-audit count-tokens` makes them and `[[token_counts]]` names them",
        )),
        (None, known) => {
            let known = known.unwrap_or_default().join(", ");
            Err(place.fault(COUNTS.name, format!("missing field `counts`; configured are {known}")))
        }
        (Some(id), Some(known)) if known.contains(&id) => Ok(Some(json!(id))),
        (Some(id), Some(known)) => Err(Fault::unknown("token counts", id, known, place.pointer(COUNTS.name))),
    }
}

impl MethodDefinition for DcPdd {
    const DEFINITION: Definition = Definition {
        summary: "Probability of the tokens, calibrated by how frequent they are in a reference corpus.",
        formula: "mean over first occurrences of min(p_t ln(1/f_t), a), f = (count + 1)/(N + V)",
        needs: &[Access::LogProbabilities, Access::TokenCounts],
        further_passes: "none",
        source: "DC-PDD: Zhang et al. 2024, arXiv:2409.14781",
        parameters: &[&COUNTS, &A],
        pdr: PdrPolicy::Refused("it looks at first occurrences and caps them, which already depends on position"),
    };

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
