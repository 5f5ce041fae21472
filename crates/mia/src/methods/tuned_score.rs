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
use strum::{Display, EnumString, VariantNames};

/// A score of a text under one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TunedScoreRequest", into = "TunedScoreRequest")]
pub struct TunedScore {
    pub base: TunedBase,
    /// Share of tokens that `base` selects, if it selects some.
    pub k: Option<Fraction>,
    pub pdr: Option<Pdr>,
}

/// The methods that may be compared before and after tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum TunedBase {
    Loss,
    MinK,
    MinKPlusPlus,
}

impl TunedScore {
    /// Resolves the request, whose JSON pointer is `pointer`, or returns its first fault.
    pub fn read(request: &TunedScoreRequest, pointer: &str) -> Result<Self, Fault> {
        let fault = |field: &str, detail: String| Fault::new(format!("{pointer}/{field}"), detail);
        let name = &request.name;
        let unknown = |_| Fault::unknown("score", name, TunedBase::VARIANTS, format!("{pointer}/name"));
        let base: TunedBase = name.parse().map_err(unknown)?;
        let k = match (base, request.k) {
            (TunedBase::Loss, None) => None,
            (TunedBase::Loss, Some(_)) => return Err(fault("k", "`loss` takes no `k`".to_owned())),
            (TunedBase::MinK | TunedBase::MinKPlusPlus, k) => {
                let k = k.unwrap_or(Fraction::FIFTH.get());
                let outside = || fault("k", format!("k is {k:?}, outside {}", Fraction::RANGE));
                Some(Fraction::new(k).ok_or_else(outside)?)
            }
        };
        let pdr = request.pdr.as_ref().map(|request| one(request, &format!("{pointer}/pdr"))).transpose()?;
        if let (TunedBase::Loss, Some(Pdr { select: Select::Before, .. })) = (base, pdr) {
            return Err(fault("pdr/select", "`select` is `before`, but `loss` does not select tokens".to_owned()));
        }
        Ok(TunedScore { base, k, pdr })
    }

    /// The score of a text by the statistics of one model.
    pub fn evaluate(&self, text: &TextStats, truncate: Option<Fraction>) -> Result<f64, ScoreError> {
        let input = FormulaInput { text, truncate, pdr: self.pdr };
        let k = self.k.unwrap_or(Fraction::FIFTH);
        let outcome = match self.base {
            TunedBase::Loss => Loss.evaluate(&input),
            TunedBase::MinK => MinK { k }.evaluate(&input),
            TunedBase::MinKPlusPlus => MinKPlusPlus { k }.evaluate(&input),
        };
        match outcome? {
            Outcome::Sum(sum) => sum.quotient(),
            Outcome::Value(value) => Ok(value),
        }
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
    fn from(TunedScore { base, k, pdr }: TunedScore) -> TunedScoreRequest {
        let pdr = pdr.map(|pdr| pdr.to_request(k.is_some()));
        TunedScoreRequest { name: base.to_string(), k: k.map(Fraction::get), pdr }
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

/// The part of a label: `min_k(k=0.2)+linear(alpha=1)`.
impl fmt::Display for TunedScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        if let Some(k) = self.k {
            write!(f, "(k={k})")?;
        }
        self.pdr.map_or(Ok(()), |pdr| write!(f, "+{pdr}"))
    }
}
