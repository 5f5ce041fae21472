//! A method with its parameters.

use super::base::Base;
use super::name::{Decayed, MethodName};
use super::pdr::Pdr;
use super::range::Fraction;

/// A method with all its parameters. Every value of this type can be scored.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// What is computed.
    pub base: Base,
    /// Only this first share of the scored tokens is looked at; `None`: all of them.
    pub truncate: Option<Fraction>,
    /// Weights by position or entropy; `None`: every token weighs the same.
    pub pdr: Option<Pdr>,
}

impl From<Base> for Method {
    /// Whole text, no decay.
    fn from(base: Base) -> Method {
        Method { base, truncate: None, pdr: None }
    }
}

impl Method {
    /// Its name.
    pub fn name(&self) -> MethodName {
        self.base.name()
    }

    /// The same method without weights, with which a weighted score is compared; `None` if it has none.
    pub fn baseline(&self) -> Option<Method> {
        self.pdr.map(|_| Method { pdr: None, ..self.clone() })
    }

    /// Whether this goes beyond what the PDR paper evaluates.
    pub fn extension(&self) -> bool {
        self.pdr.is_some() && self.name().decayed() == Decayed::Extension
    }

    /// Whether the score reads [`TextStats::zlib_bytes`](super::TextStats::zlib_bytes).
    pub fn needs_zlib(&self) -> bool {
        matches!(self.base, Base::Zlib)
    }

    /// A label from name and parameters, the same for equal methods and different for different ones:
    /// `loss`, `min_k(k=0.2)`, `min_k(k=0.2,truncate=0.5)+linear(alpha=1,normalize)`.
    pub fn label(&self) -> String {
        let truncate = self.truncate.map(|share| ("truncate", share.to_string()));
        let parts = self.base.label_parts().into_iter().chain(truncate);
        let parts: Vec<String> = parts.map(|(name, value)| format!("{name}={value}")).collect();
        let mut label = self.name().to_string();
        if !parts.is_empty() {
            label += &format!("({})", parts.join(","));
        }
        if let Some(pdr) = self.pdr {
            label += &format!("+{pdr}");
        }
        label
    }
}
