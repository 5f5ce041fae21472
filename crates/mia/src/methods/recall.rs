//! ReCaLL (Xie et al. 2024): how much a prefix of non-members changes the text's log-probability.

use super::auxiliary_pass::{AuxiliaryPass, Texts};
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::parameter::{Parameter, ParameterKind};
use serde::{Deserialize, Serialize};
use strum::{Display, VariantNames};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Recall {
    /// Non-members that are put before the text.
    #[schema(value_type = Vec<String>)]
    pub prefix: Texts,
    /// Tokens of the text that count.
    pub align: Align,
}

/// Which tokens of a text count once a prefix has given its first token a probability too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Display, VariantNames, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Align {
    /// Only those that have a probability without the prefix.
    #[default]
    Shared,
    /// All, as the authors' code has it.
    Official,
}

static PREFIX: Parameter = Parameter {
    name: "prefix",
    kind: ParameterKind::PrefixTexts,
    description: "Non-members that are put before the text, 1 to 256, none of them scored.",
};

static ALIGN: Parameter = Parameter {
    name: "align",
    kind: ParameterKind::Choice(Align::VARIANTS),
    description: "`official` counts every token of the text after the prefix, `shared` those that have a \
                  log-probability without it too, which the first has not.",
};

impl MethodDefinition for Recall {
    const DEFINITION: Definition = Definition {
        summary: "How much a prefix of non-members changes the text's log-probability.",
        formula: "mean lp(x given prefix) / mean lp(x)",
        needs: &[Access::LogProbabilities, Access::Text, Access::KnownTexts],
        further_passes: "1, of prefix and text",
        source: "ReCaLL: Xie et al. 2024, arXiv:2406.15968",
        parameters: &[&PREFIX, &ALIGN],
        pdr: PdrPolicy::Accepted { published: false, selects: false, text_alone: false },
    };

    fn label_parts(&self) -> Vec<(&'static str, String)> {
        vec![("prefix", self.prefix.short_digest()), ("align", self.align.to_string())]
    }

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        vec![(PREFIX.name, AuxiliaryPass::Prefixed(self.prefix.clone()))]
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let tokens = input.sequence(&AuxiliaryPass::Prefixed(self.prefix.clone()))?;
        // A token that has a probability only because of the prefix is at the front.
        let first = match self.align {
            Align::Shared => tokens.len().saturating_sub(input.text.tokens.len()),
            Align::Official => 0,
        };
        let prefixed = input.mean_of(&tokens[first..])?;
        Ok(Outcome::Value(prefixed / input.denominator()?))
    }
}
