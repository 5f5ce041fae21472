//! What a method computes, with the parameters that are its own.

use super::name::MethodName;
use super::range::{Fraction, short};
use super::texts::Texts;
use super::token_counts::TokenCounts;
use super::view::{Generator, View};
use crate::wire::by_name;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// How the reference model reads the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// It has the target's tokenization and is given the target's ids: token by token a difference.
    SameIds,
    /// It has another one and is given ids of its own: only the means can be compared.
    OwnIds,
}

/// Which tokens of a text count once a prefix has given its first token a probability too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
pub enum Align {
    /// Only those that have a probability without the prefix.
    #[default]
    Shared,
    /// All, as the authors' code has it.
    Official,
}

impl TryFrom<String> for Align {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        by_name(&name, &[("shared", Align::Shared), ("official", Align::Official)])
    }
}

/// Counts of tokens in a reference corpus, under the name that the settings give them.
#[derive(Clone, Debug)]
pub struct NamedCounts {
    /// The name.
    pub id: Arc<str>,
    /// The counts.
    pub table: Arc<TokenCounts>,
}

impl PartialEq for NamedCounts {
    fn eq(&self, other: &NamedCounts) -> bool {
        self.id == other.id
    }
}

/// What is computed, before truncation and decay.
#[derive(Clone, Debug, PartialEq)]
pub enum Base {
    /// Mean log-probability.
    Loss,
    /// Mean log-probability minus that of a reference model.
    Ref {
        /// Id of the reference model.
        reference: Arc<str>,
        /// How it reads the text.
        reading: Reading,
    },
    /// Mean log-probability over the bytes of the compressed text.
    Zlib,
    /// Mean log-probability of the lower-cased text over that of the text.
    Lowercase,
    /// Mean log-probability minus that of the text's neighbours.
    Neighbor {
        /// What makes them; `None`: they come with the text.
        generator: Option<Generator>,
    },
    /// Mean of the lowest share `k` of the log-probabilities.
    MinK {
        /// Share selected.
        k: Fraction,
    },
    /// Mean of the lowest share `k` of the standardised log-probabilities.
    MinKPlusPlus {
        /// Share selected.
        k: Fraction,
    },
    /// Mean log-probability after a prefix over that without it.
    Recall {
        /// Non-members that are put before the text.
        prefix: Texts,
        /// Which tokens count.
        align: Align,
    },
    /// As recall, less what a prefix of members does.
    ConRecall {
        /// Non-members.
        non_members: Texts,
        /// Members.
        members: Texts,
        /// Weight of what members do.
        gamma: f64,
    },
    /// Mean of the lowest share `k` of the moving averages of standardised distances to the model's first choice.
    GapK {
        /// Share selected.
        k: Fraction,
        /// Tokens in an average.
        window: usize,
    },
    /// Mean log-probability of unlikely tokens where the model was sure.
    Surp {
        /// Share of the tokens that is unlikely.
        k: Fraction,
        /// The model is sure below this entropy, in nats.
        max_entropy: f64,
    },
    /// Mean over first occurrences of the probability calibrated by the token's frequency.
    DcPdd {
        /// Of a reference corpus.
        counts: NamedCounts,
        /// The most that a token contributes.
        a: f64,
    },
}

impl Base {
    /// The method that this is.
    pub fn name(&self) -> MethodName {
        match self {
            Base::Loss => MethodName::Loss,
            Base::Ref { .. } => MethodName::Ref,
            Base::Zlib => MethodName::Zlib,
            Base::Lowercase => MethodName::Lowercase,
            Base::Neighbor { .. } => MethodName::Neighbor,
            Base::MinK { .. } => MethodName::MinK,
            Base::MinKPlusPlus { .. } => MethodName::MinKPlusPlus,
            Base::Recall { .. } => MethodName::Recall,
            Base::ConRecall { .. } => MethodName::ConRecall,
            Base::GapK { .. } => MethodName::GapK,
            Base::Surp { .. } => MethodName::Surp,
            Base::DcPdd { .. } => MethodName::DcPdd,
        }
    }

    /// The share selected; `None` for a method that uses every token.
    pub fn k(&self) -> Option<Fraction> {
        match *self {
            Base::MinK { k } | Base::MinKPlusPlus { k } | Base::GapK { k, .. } | Base::Surp { k, .. } => Some(k),
            _ => None,
        }
    }

    /// The views of a text that it looks at beside the text itself.
    pub fn views(&self) -> Vec<View> {
        match self {
            Base::Ref { reference, reading: Reading::SameIds } => vec![View::Reference(Arc::clone(reference))],
            Base::Ref { reference, reading: Reading::OwnIds } => vec![View::OwnReference(Arc::clone(reference))],
            Base::Lowercase => vec![View::Lowercase],
            Base::Neighbor { generator } => vec![View::Neighbors(generator.clone())],
            Base::Recall { prefix, .. } => vec![View::After(prefix.clone())],
            Base::ConRecall { non_members, members, .. } => {
                vec![View::After(non_members.clone()), View::After(members.clone())]
            }
            Base::Loss
            | Base::Zlib
            | Base::MinK { .. }
            | Base::MinKPlusPlus { .. }
            | Base::GapK { .. }
            | Base::Surp { .. }
            | Base::DcPdd { .. } => Vec::new(),
        }
    }

    /// Whether the score is a sum over the text's own scored tokens, so that each token contributes to it.
    pub fn is_a_sum(&self) -> bool {
        match self {
            Base::Ref { reading, .. } => *reading == Reading::SameIds,
            Base::Loss | Base::Zlib | Base::MinK { .. } | Base::MinKPlusPlus { .. } | Base::Surp { .. } => true,
            _ => false,
        }
    }

    /// The parameters that stand in a label: name and value, in order.
    pub(super) fn label_parts(&self) -> Vec<(&'static str, String)> {
        let text = |value: &dyn ToString| value.to_string();
        match self {
            Base::Loss | Base::Zlib | Base::Lowercase | Base::Neighbor { generator: None } => Vec::new(),
            Base::Ref { reference, .. } => vec![("reference", text(reference))],
            Base::Neighbor { generator: Some(Generator { model, count }) } => {
                vec![("generator", text(model)), ("count", text(count))]
            }
            Base::MinK { k } | Base::MinKPlusPlus { k } => vec![("k", text(k))],
            Base::Recall { prefix, align } => {
                let align = if *align == Align::Shared { "shared" } else { "official" };
                vec![("prefix", prefix.short_digest()), ("align", text(&align))]
            }
            Base::ConRecall { non_members, members, gamma } => vec![
                ("non_members", non_members.short_digest()),
                ("members", members.short_digest()),
                ("gamma", short(*gamma)),
            ],
            Base::GapK { k, window } => vec![("k", text(k)), ("window", text(window))],
            Base::Surp { k, max_entropy } => vec![("k", text(k)), ("max_entropy", short(*max_entropy))],
            Base::DcPdd { counts, a } => vec![("counts", text(&counts.id)), ("a", short(*a))],
        }
    }
}
