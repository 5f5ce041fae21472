//! A method with its parameters, truncation and weights, and its score of a text.

use super::auxiliary_pass::{AuxiliaryPass, Split, Texts};
use super::definition::{Access, PdrPolicy};
use super::formula::{Explanation, FormulaInput, Outcome, ScoreError, TextStats};
use super::pdr::{Pdr, Weighting, slope};
use super::range::Fraction;
use super::registry::{BaseMethod, MethodName};

/// A method with all its parameters. Every value of this type can be scored.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    pub base: BaseMethod,
    /// Share of the scored tokens, from the first, that is used; `None`: all of them.
    pub truncate: Option<Fraction>,
    /// Weights by position or entropy; `None`: every token weighs the same.
    pub pdr: Option<Pdr>,
}

impl Method {
    /// A method of the whole text, without weights.
    pub fn new(base: impl Into<BaseMethod>) -> Method {
        Method { base: base.into(), truncate: None, pdr: None }
    }

    pub fn name(&self) -> MethodName {
        self.base.name()
    }

    /// Returns the method that its score is compared with: the same method without weights, or for `fsd` the score of the
    /// model that was not tuned; `None` if it has neither.
    pub fn baseline(&self) -> Option<Method> {
        match &self.base {
            BaseMethod::Fsd(fsd) => {
                Some(Method { base: (&fsd.score).into(), truncate: self.truncate, pdr: fsd.score.pdr })
            }
            _ => self.pdr.map(|_| Method { pdr: None, ..self.clone() }),
        }
    }

    /// Returns true if this goes beyond what the PDR paper evaluates.
    pub fn extension(&self) -> bool {
        self.pdr.is_some()
            && match self.name().definition().pdr {
                PdrPolicy::Accepted { published, .. } => !published,
                PdrPolicy::Refused(_) => false,
            }
    }

    /// Returns true if it is computed from the model's whole distribution at each token, not from log-probabilities alone.
    pub fn needs_full_logits(&self) -> bool {
        self.needs(Access::FullLogits)
    }

    /// Returns true if it is computed from this, by itself or by its weights.
    pub fn needs(&self, access: Access) -> bool {
        let of_tuned = match &self.base {
            BaseMethod::Fsd(fsd) => Some(BaseMethod::from(&fsd.score).name()),
            _ => None,
        };
        let needs = |name: MethodName| name.definition().needs.contains(&access);
        let by_weights = |pdr: Pdr| pdr.weighting.needs().contains(&access);
        needs(self.name()) || of_tuned.is_some_and(needs) || self.pdr.is_some_and(by_weights)
    }

    /// Returns true if it selects tokens by their values and weights them, so that `select` applies.
    pub fn selects(&self) -> bool {
        match self.name().definition().pdr {
            PdrPolicy::Accepted { selects, .. } => selects,
            PdrPolicy::Refused(_) => false,
        }
    }

    /// Returns true if `other` differs only in its seed.
    pub fn differs_by_seed(&self, other: &Method) -> bool {
        let (BaseMethod::Fsd(fsd), BaseMethod::Fsd(of_other)) = (&self.base, &other.base) else { return false };
        let rest = |method: &Method| (method.truncate, method.pdr);
        rest(self) == rest(other) && fsd.differs_by_seed(of_other)
    }

    /// The share of an audit's texts that the model is tuned on for it.
    pub fn split(&self) -> Option<Split> {
        self.base.passes().into_iter().find_map(|(_, pass)| match pass {
            AuxiliaryPass::Split(split) => Some(split),
            _ => None,
        })
    }

    /// The prefixes that it puts before the text to score, by the field of the request that holds them.
    pub fn prefixes(&self) -> Vec<(&'static str, Texts)> {
        let prefix =
            |(field, pass)| if let AuxiliaryPass::Prefixed(texts) = pass { Some((field, texts)) } else { None };
        self.base.passes().into_iter().filter_map(prefix).collect()
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

/// The score of a text, always finite; higher: more likely a member.
///
/// `loss`, `ref`, `neighbor`, `min_k` and `surp` are in nats, `zlib` in nats per byte; the others have no unit.
pub fn score(method: &Method, text: &TextStats) -> Result<f64, ScoreError> {
    let score = match method.base.evaluate(&input(method, text))? {
        Outcome::Sum(sum) => sum.quotient()?,
        Outcome::Value(value) => value,
    };
    if score.is_finite() { Ok(score) } else { Err(ScoreError::NonFinite) }
}

/// Breaks the score down by token. `None` for a method that is no sum over the text's own tokens.
///
/// # Errors
///
/// Those of [`score()`], in the same cases; and [`ScoreError::NonFinite`] where a weight is not finite.
pub fn explain(method: &Method, text: &TextStats) -> Result<Option<Explanation>, ScoreError> {
    let Outcome::Sum(sum) = method.base.evaluate(&input(method, text))? else { return Ok(None) };
    sum.quotient()?;
    let explanation = sum.explanation(text.tokens.len());
    // The score does not know the weights of tokens that are not selected.
    let numbers = explanation.contributions.iter().chain(&explanation.weights);
    if numbers.copied().all(f64::is_finite) { Ok(Some(explanation)) } else { Err(ScoreError::NonFinite) }
}

/// The alpha that the weighting `slope` used on this text; None for any other weighting.
pub fn alpha_used(method: &Method, text: &TextStats) -> Option<f64> {
    method.pdr.filter(|pdr| pdr.weighting == Weighting::Slope)?;
    Some(slope(input(method, text).truncated(text.tokens))).filter(|slope| slope.is_finite())
}

fn input<'a>(method: &Method, text: &'a TextStats<'a>) -> FormulaInput<'a> {
    FormulaInput { text, truncate: method.truncate, pdr: method.pdr }
}
