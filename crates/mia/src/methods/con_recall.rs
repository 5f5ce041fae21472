//! Con-ReCall (Wang et al. 2025): as ReCaLL, contrasting a prefix of non-members with one of members.

use super::auxiliary_pass::{AuxiliaryPass, Texts};
use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::parameter::{Parameter, ParameterKind};
use super::range::{Range, format_number};
use super::value::ValueType;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConRecall {
    /// Non-members that are put before the text.
    #[schema(value_type = Vec<String>)]
    pub non_members: Texts,
    /// Members that are put before the text.
    #[schema(value_type = Vec<String>)]
    pub members: Texts,
    /// Weight of what members do.
    pub gamma: f64,
}

static NON_MEMBERS: Parameter = Parameter {
    name: "non_members",
    kind: ParameterKind::PrefixTexts,
    description: "Non-members that are put before the text, 1 to 256, none of them scored.",
};

static MEMBERS: Parameter = Parameter {
    name: "members",
    kind: ParameterKind::PrefixTexts,
    description: "Members that are put before the text, 1 to 256, none of them scored.",
};

static GAMMA: Parameter = Parameter {
    name: "gamma",
    kind: ParameterKind::Number { value_type: ValueType::Number, range: Range::from_zero(), default: 0.5 },
    description: "Weight of what members do to the text.",
};

impl MethodDefinition for ConRecall {
    const DEFINITION: Definition = Definition {
        summary: "As recall, contrasting a prefix of non-members with one of members; every token of the text counts after a prefix.",
        formula: "(mean lp(x given non-members) - gamma mean lp(x given members)) / mean lp(x)",
        needs: &[Access::LogProbabilities, Access::Text, Access::KnownTexts],
        further_passes: "2, of each prefix and the text",
        source: "Con-ReCall: Wang et al. 2025, arXiv:2409.03363",
        parameters: &[&NON_MEMBERS, &MEMBERS, &GAMMA],
        pdr: PdrPolicy::Accepted { published: false, selects: false, text_alone: false },
    };

    fn label_parts(&self) -> Vec<(&'static str, String)> {
        vec![
            ("non_members", self.non_members.short_digest()),
            ("members", self.members.short_digest()),
            ("gamma", format_number(self.gamma)),
        ]
    }

    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        vec![
            (NON_MEMBERS.name, AuxiliaryPass::Prefixed(self.non_members.clone())),
            (MEMBERS.name, AuxiliaryPass::Prefixed(self.members.clone())),
        ]
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let prefixed = |texts: &Texts| input.mean_of(input.sequence(&AuxiliaryPass::Prefixed(texts.clone()))?);
        let (non_members, members) = (prefixed(&self.non_members)?, prefixed(&self.members)?);
        Ok(Outcome::Value((non_members - self.gamma * members) / input.denominator()?))
    }
}
