//! Window-based comparison (Chen et al. 2026): the share of windows that the target finds more likely than a reference
//! model does.

use super::auxiliary_pass::AuxiliaryPass;
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::reference::{REFERENCE, differences};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// Tokens of the windows, in geometric steps as the authors have them.
const WINDOWS: [usize; 10] = [2, 3, 4, 6, 9, 13, 18, 25, 32, 40];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Wbc {
    /// Id of the reference model.
    #[schema(value_type = String)]
    pub reference: Arc<str>,
}

impl MethodDefinition for Wbc {
    const DEFINITION: Definition = Definition {
        summary: "The share of windows of tokens that the model finds more likely than a reference model does.",
        formula: "share of the n - w + 1 windows of w tokens with sum lp > sum lp_ref, mean over w = 2, 3, 4, 6, 9, 13, \
                  18, 25, 32, 40, each at most n",
        needs: &[Access::LogProbabilities, Access::ReferenceModel],
        further_passes: "1, by the reference model",
        source: "WBC: Chen et al. 2026, arXiv:2601.02751",
        parameters: &[&REFERENCE],
        pdr: PdrPolicy::Refused("it counts windows, which belong to no single position"),
    };

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        vec![(REFERENCE.name, AuxiliaryPass::Reference(Arc::clone(&self.reference)))]
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let differences = differences(input, &self.reference)?;
        let share = |window: usize| {
            let windows = differences.windows(window.min(differences.len()));
            let count = windows.len() as f64;
            windows.filter(|window| window.iter().sum::<f64>() > 0.0).count() as f64 / count
        };
        Ok(Outcome::Value(WINDOWS.into_iter().map(share).sum::<f64>() / WINDOWS.len() as f64))
    }
}
