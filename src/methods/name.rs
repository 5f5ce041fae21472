//! The methods by name, and what holds for each whatever its parameters.

use super::range::Fraction;
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

/// The methods by the names that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MethodName {
    /// Mean log-probability.
    Loss,
    /// Difference to a reference model.
    Ref,
    /// Zlib ratio.
    Zlib,
    /// Lowercase ratio.
    Lowercase,
    /// Difference to neighbouring texts.
    Neighbor,
    /// Min-K%.
    MinK,
    /// Min-K%++.
    MinKPlusPlus,
    /// ReCaLL.
    Recall,
    /// Con-ReCall.
    ConRecall,
    /// Gap-K%.
    GapK,
    /// SURP.
    Surp,
    /// DC-PDD.
    DcPdd,
}

/// What positional decay on a method is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decayed {
    /// Evaluated in the PDR paper.
    Published,
    /// Our extension of it.
    Extension,
    /// Of no sense, for this reason.
    Refused(&'static str),
}

impl MethodName {
    /// Every method, in the order in which they are listed to clients.
    pub const ALL: [MethodName; 12] = [
        MethodName::Loss,
        MethodName::Ref,
        MethodName::Zlib,
        MethodName::Lowercase,
        MethodName::Neighbor,
        MethodName::MinK,
        MethodName::MinKPlusPlus,
        MethodName::Recall,
        MethodName::ConRecall,
        MethodName::GapK,
        MethodName::Surp,
        MethodName::DcPdd,
    ];

    /// The name that clients use.
    pub fn name(self) -> &'static str {
        match self {
            MethodName::Loss => "loss",
            MethodName::Ref => "ref",
            MethodName::Zlib => "zlib",
            MethodName::Lowercase => "lowercase",
            MethodName::Neighbor => "neighbor",
            MethodName::MinK => "min_k",
            MethodName::MinKPlusPlus => "min_k_plus_plus",
            MethodName::Recall => "recall",
            MethodName::ConRecall => "con_recall",
            MethodName::GapK => "gap_k",
            MethodName::Surp => "surp",
            MethodName::DcPdd => "dc_pdd",
        }
    }

    /// The method of that name, if there is one.
    pub fn from_name(name: &str) -> Option<MethodName> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The share of tokens that is selected where a request does not say; `None` for a method that takes none.
    pub fn default_k(self) -> Option<Fraction> {
        match self {
            MethodName::MinK | MethodName::MinKPlusPlus | MethodName::GapK => Some(Fraction::FIFTH),
            MethodName::Surp => Some(Fraction::TWO_FIFTHS),
            _ => None,
        }
    }

    /// Whether tokens are selected by their values and then weighted, so that `select` means something.
    pub fn selects_then_weights(self) -> bool {
        matches!(self, MethodName::MinK | MethodName::MinKPlusPlus)
    }

    /// Whether weights that belong to the positions of an audit's texts fit what it weights: the text itself, and not
    /// another one made of it.
    pub fn weights_the_text_alone(self) -> bool {
        matches!(
            self,
            MethodName::Loss | MethodName::Ref | MethodName::Zlib | MethodName::MinK | MethodName::MinKPlusPlus
        )
    }

    /// What positional decay on it is.
    pub fn decayed(self) -> Decayed {
        match self {
            MethodName::Loss | MethodName::Ref | MethodName::MinK | MethodName::MinKPlusPlus => Decayed::Published,
            MethodName::Zlib
            | MethodName::Lowercase
            | MethodName::Neighbor
            | MethodName::Recall
            | MethodName::ConRecall => Decayed::Extension,
            MethodName::GapK => Decayed::Refused("its values are moving averages, which belong to no single position"),
            MethodName::Surp => {
                Decayed::Refused("it looks at the positions that entropy picks, wherever they are in the text")
            }
            MethodName::DcPdd => {
                Decayed::Refused("it looks at first occurrences and caps them, which already depends on position")
            }
        }
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
