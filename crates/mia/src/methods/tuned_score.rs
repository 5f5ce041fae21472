//! The score that `fsd` computes under two models.

use super::definition::MethodDefinition;
use super::fault::{Fault, Faults};
use super::formula::{FormulaInput, Outcome, ScoreError, TextStats};
use super::loss::Loss;
use super::min_k::MinK;
use super::min_k_plus_plus::MinKPlusPlus;
use super::pdr::{Pdr, PdrRequest, Select, Weighting};
use super::range::Fraction;
use super::value::TunedScoreRequest;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A score of a text under one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TunedScoreRequest", into = "TunedScoreRequest")]
pub struct TunedScore {
    pub base: TunedBase,
    pub pdr: Option<Pdr>,
}

/// The methods that may be compared before and after tuning.
#[derive(Clone, Debug, PartialEq)]
pub enum TunedBase {
    Loss(Loss),
    MinK(MinK),
    MinKPlusPlus(MinKPlusPlus),
}

impl TunedBase {
    fn name(&self) -> &'static str {
        match self {
            Self::Loss(_) => "loss",
            Self::MinK(_) => "min_k",
            Self::MinKPlusPlus(_) => "min_k_plus_plus",
        }
    }

    fn k(&self) -> Option<Fraction> {
        match self {
            Self::Loss(_) => None,
            Self::MinK(MinK { k }) | Self::MinKPlusPlus(MinKPlusPlus { k }) => Some(*k),
        }
    }

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        match self {
            Self::Loss(method) => method.evaluate(input),
            Self::MinK(method) => method.evaluate(input),
            Self::MinKPlusPlus(method) => method.evaluate(input),
        }
    }
}

impl TunedScore {
    /// Resolves the request, whose JSON pointer is `pointer`.
    ///
    /// # Errors
    /// The first fault.
    pub fn read(request: &TunedScoreRequest, pointer: &str) -> Result<Self, Fault> {
        let base = TunedBase::read(request, pointer)?;
        let pdr = request.pdr.as_ref().map(|request| one(request, &format!("{pointer}/pdr"))).transpose()?;
        if let (TunedBase::Loss(_), Some(Pdr { select: Select::Before, .. })) = (&base, pdr) {
            let detail = "`select` is `before`, but `loss` does not select tokens";
            return Err(Fault::new(format!("{pointer}/pdr/select"), detail));
        }
        Ok(TunedScore { base, pdr })
    }
}

impl TryFrom<TunedScoreRequest> for TunedScore {
    type Error = String;

    fn try_from(request: TunedScoreRequest) -> Result<Self, String> {
        TunedScore::read(&request, "").map_err(|fault| format!("{}: {}", fault.pointer, fault.detail))
    }
}

impl From<TunedScore> for TunedScoreRequest {
    /// Defaults included.
    fn from(TunedScore { base, pdr }: TunedScore) -> TunedScoreRequest {
        let k = base.k();
        let pdr = pdr.map(|pdr| pdr.to_request(k.is_some()));
        TunedScoreRequest { name: base.name().to_owned(), k: k.map(Fraction::get), pdr }
    }
}

impl TunedBase {
    fn read(request: &TunedScoreRequest, pointer: &str) -> Result<Self, Fault> {
        let share = || {
            let k = request.k.unwrap_or(Fraction::FIFTH.get());
            let outside = || Fault::new(format!("{pointer}/k"), format!("k is {k:?}, outside {}", Fraction::RANGE));
            Fraction::new(k).ok_or_else(outside)
        };
        match request.name.as_str() {
            "loss" if request.k.is_some() => Err(Fault::new(format!("{pointer}/k"), "`loss` takes no `k`")),
            "loss" => Ok(TunedBase::Loss(Loss)),
            "min_k" => Ok(TunedBase::MinK(MinK { k: share()? })),
            "min_k_plus_plus" => Ok(TunedBase::MinKPlusPlus(MinKPlusPlus { k: share()? })),
            other => {
                let known = ["loss", "min_k", "min_k_plus_plus"];
                Err(Fault::unknown("score", other, known, format!("{pointer}/name")))
            }
        }
    }
}

/// The one weighting of a score.
fn one(request: &PdrRequest, pointer: &str) -> Result<Pdr, Fault> {
    let mut faults = Faults::default();
    let weights = request.read(pointer, &mut faults).unwrap_or_default();
    if let Some(fault) = faults.into_vec().into_iter().next() {
        return Err(fault);
    }
    match weights.as_slice() {
        [Pdr { weighting: Weighting::EntropyDataset, .. }] => {
            let detail = "`entropy_dataset` belongs to the texts under one model, and `fsd` weights them under two";
            Err(Fault::new(format!("{pointer}/decay"), detail))
        }
        [pdr] => Ok(*pdr),
        several => {
            let detail = format!("there are {} values; the score of `fsd` takes one", several.len());
            Err(Fault::new(format!("{pointer}/alpha"), detail))
        }
    }
}

impl TunedScore {
    /// The score of a text by the statistics of one model.
    ///
    /// # Errors
    /// Where the text has no score.
    pub fn evaluate(&self, text: &TextStats, truncate: Option<Fraction>) -> Result<f64, ScoreError> {
        match self.base.evaluate(&FormulaInput { text, truncate, pdr: self.pdr })? {
            Outcome::Sum(sum) => sum.quotient(),
            Outcome::Value(value) => Ok(value),
        }
    }
}

/// The part of a label: `min_k(k=0.2)+linear(alpha=1)`.
impl fmt::Display for TunedScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.name())?;
        if let Some(k) = self.base.k() {
            write!(f, "(k={k})")?;
        }
        self.pdr.map_or(Ok(()), |pdr| write!(f, "+{pdr}"))
    }
}
