//! Error zone (Ilić et al. 2026): gains in log-probability over a reference model, compared with losses, at the tokens that are
//! not the target's first choice.

use super::auxiliary_pass::AuxiliaryPass;
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::parameter::{Parameter, ParameterKind};
use super::reference::{REFERENCE, differences};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use strum::{Display, VariantNames};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ez {
    /// Id of the reference model.
    #[schema(value_type = String)]
    pub reference: Arc<str>,
    /// Score of a text without losses.
    pub without_losses: WithoutLosses,
}

/// Score of a text that has nothing to divide by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Display, VariantNames, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WithoutLosses {
    /// No score: an error of the text.
    #[default]
    Error,
    /// 0, as the authors' code has it.
    Zero,
}

static WITHOUT_LOSSES: Parameter = Parameter {
    name: "without_losses",
    kind: ParameterKind::Choice(WithoutLosses::VARIANTS),
    description: "Score of a text without losses: `error` gives it none, `zero` gives it 0 as the authors' code does, which ranks the \
                  strongest members last.",
};

impl MethodDefinition for Ez {
    const DEFINITION: Definition = Definition {
        summary: "Where the model expects another token: log-probability gained over a reference model, divided by that lost.",
        formula: "over the positions with max_v lp_v,t > lp_t: d_t = lp_t - lp_ref_t, sum of the positive d_t / -sum of the negative d_t",
        needs: &[Access::LogProbabilities, Access::FirstChoice, Access::ReferenceModel],
        further_passes: "1, by the reference model",
        source: "EZ-MIA: Ilic et al. 2026, arXiv:2601.12104",
        parameters: &[&REFERENCE, &WITHOUT_LOSSES],
        pdr: PdrPolicy::Refused("it is a ratio of two sums over the positions where the model errs"),
    };

    fn label_parts(&self) -> Vec<(&'static str, String)> {
        let mut parts = vec![("reference", self.reference.to_string())];
        if self.without_losses == WithoutLosses::Zero {
            parts.push(("without_losses", self.without_losses.to_string()));
        }
        parts
    }

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        vec![(REFERENCE.name, AuxiliaryPass::Reference(Arc::clone(&self.reference)))]
    }

    fn note(&self) -> Option<&'static str> {
        (self.without_losses == WithoutLosses::Zero).then_some(
            "a text without losses scores 0, as by the authors' code, which ranks the strongest members last",
        )
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let differences = differences(input, &self.reference)?;
        let (mut gained, mut lost) = (0.0, 0.0);
        for (token, difference) in input.tokens()?.iter().zip(differences) {
            if !token.max_lp.is_finite() {
                return Err(ScoreError::NonFinite);
            }
            if token.max_lp > token.lp {
                gained += difference.max(0.0);
                lost += (-difference).max(0.0);
            }
        }
        match self.without_losses {
            _ if lost > 0.0 => Ok(Outcome::Value(gained / lost)),
            WithoutLosses::Zero => Ok(Outcome::Value(0.0)),
            WithoutLosses::Error => {
                Err(ScoreError::ZeroDenominator("the log-probability lost where the model expects another token"))
            }
        }
    }
}
