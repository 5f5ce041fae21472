//! A method with its parameters.

use super::range::Fraction;
use super::weights::Pdr;
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

/// The share of tokens that Min-K% and Min-K%++ select unless told otherwise.
pub const DEFAULT_K: Fraction = Fraction::FIFTH;

/// The methods by the names that clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MethodName {
    /// Mean log-probability.
    Loss,
    /// Zlib ratio.
    Zlib,
    /// Min-K%.
    MinK,
    /// Min-K%++.
    MinKPlusPlus,
}

impl MethodName {
    /// Every method, in the order in which they are listed to clients.
    pub const ALL: [MethodName; 4] = [MethodName::Loss, MethodName::Zlib, MethodName::MinK, MethodName::MinKPlusPlus];

    /// The name that clients use.
    pub fn name(self) -> &'static str {
        match self {
            MethodName::Loss => "loss",
            MethodName::Zlib => "zlib",
            MethodName::MinK => "min_k",
            MethodName::MinKPlusPlus => "min_k_plus_plus",
        }
    }

    /// The method of that name, if there is one.
    pub fn from_name(name: &str) -> Option<MethodName> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The method with its defaults.
    pub fn base(self) -> Base {
        match self {
            MethodName::Loss => Base::Loss,
            MethodName::Zlib => Base::Zlib,
            MethodName::MinK => Base::MinK { k: DEFAULT_K },
            MethodName::MinKPlusPlus => Base::MinKPlusPlus { k: DEFAULT_K },
        }
    }

    /// Whether positional decay on this method goes beyond the paper, which does not decay the zlib ratio.
    pub fn pdr_is_extension(self) -> bool {
        self == MethodName::Zlib
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is computed, before truncation and decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Base {
    /// Mean log-probability.
    Loss,
    /// Mean log-probability over the bytes of the compressed text.
    Zlib,
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
}

impl Base {
    /// The method that this is.
    pub fn name(&self) -> MethodName {
        match self {
            Base::Loss => MethodName::Loss,
            Base::Zlib => MethodName::Zlib,
            Base::MinK { .. } => MethodName::MinK,
            Base::MinKPlusPlus { .. } => MethodName::MinKPlusPlus,
        }
    }

    /// The share selected; `None` for a method that uses every token.
    pub fn k(&self) -> Option<Fraction> {
        match *self {
            Base::Loss | Base::Zlib => None,
            Base::MinK { k } | Base::MinKPlusPlus { k } => Some(k),
        }
    }

    /// The share selected, to be changed; `None` for a method that uses every token.
    pub(super) fn k_mut(&mut self) -> Option<&mut Fraction> {
        match self {
            Base::Loss | Base::Zlib => None,
            Base::MinK { k } | Base::MinKPlusPlus { k } => Some(k),
        }
    }
}

/// A method with all its parameters. Every value of this type can be scored.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// What is computed.
    pub base: Base,
    /// Only this first share of the scored tokens is looked at; `None`: all of them.
    pub truncate: Option<Fraction>,
    /// Positional decay; `None`: every token weighs the same.
    pub pdr: Option<Pdr>,
}

impl Method {
    /// The method with its defaults: whole text, no decay.
    pub fn plain(name: MethodName) -> Method {
        Method { base: name.base(), truncate: None, pdr: None }
    }

    /// The same method without decay, with which a decayed score is compared; `None` if it has none.
    pub fn baseline(&self) -> Option<Method> {
        self.pdr.map(|_| Method { pdr: None, ..self.clone() })
    }

    /// Whether this goes beyond what the PDR paper evaluates.
    pub fn extension(&self) -> bool {
        self.pdr.is_some() && self.base.name().pdr_is_extension()
    }

    /// Whether the score reads [`TextStats::zlib_bytes`](super::TextStats::zlib_bytes).
    pub fn needs_zlib(&self) -> bool {
        matches!(self.base, Base::Zlib)
    }

    /// A label from name and parameters, the same for equal methods and different for different ones:
    /// `loss`, `min_k(k=0.2)`, `min_k(k=0.2,truncate=0.5)+linear(alpha=1,normalize)`.
    pub fn label(&self) -> String {
        let parameters: Vec<String> = [("k", self.base.k()), ("truncate", self.truncate)]
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name}={value}")))
            .collect();
        let mut label = self.base.name().to_string();
        if !parameters.is_empty() {
            label += &format!("({})", parameters.join(","));
        }
        if let Some(pdr) = self.pdr {
            label += &format!("+{pdr}");
        }
        label
    }
}
