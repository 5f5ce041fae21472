//! The score that `fsd` computes under two models.

use super::definition::MethodDefinition;
use super::fault::{Fault, Faults};
use super::formula::{FormulaInput, Outcome, ScoreError, TextStats};
use super::loss::Loss;
use super::min_k::MinK;
use super::min_k_plus_plus::MinKPlusPlus;
use super::parameters::TunedScoreRequest;
use super::pdr::{Pdr, PdrReader, Select, Weighting};
use super::range::Fraction;
use serde::{Serialize, Serializer};
use std::fmt;

/// A score of a text under one model.
#[derive(Clone, Debug, PartialEq)]
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
    /// The faults, at least one.
    pub fn read(request: &TunedScoreRequest, pointer: &str) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let base = faults.keep(TunedBase::read(request, pointer));
        let pdr = request.pdr.as_ref().map(|request| {
            let reader = PdrReader { request, pointer: &format!("{pointer}/pdr") };
            reader.read(&mut faults).and_then(|weights| faults.keep(one(weights, &reader)))
        });
        if let (Some(TunedBase::Loss(_)), Some(Some(Pdr { select: Select::Before, .. }))) = (&base, &pdr) {
            let detail = "`select` is `before`, but `loss` does not select tokens";
            faults.push(Fault::new(format!("{pointer}/pdr/select"), detail));
        }
        match (base, pdr) {
            (Some(base), None) if faults.is_empty() => Ok(TunedScore { base, pdr: None }),
            (Some(base), Some(Some(pdr))) if faults.is_empty() => Ok(TunedScore { base, pdr: Some(pdr) }),
            _ => Err(faults.into_vec()),
        }
    }
}

impl TunedBase {
    fn read(request: &TunedScoreRequest, pointer: &str) -> Result<Self, Fault> {
        let k = request.k;
        let share = k.map_or(Some(Fraction::FIFTH), Fraction::new);
        let outside = || {
            Fault::new(format!("{pointer}/k"), format!("k is {:?}, outside {}", k.unwrap_or_default(), Fraction::RANGE))
        };
        match request.name.as_str() {
            "loss" if k.is_some() => Err(Fault::new(format!("{pointer}/k"), "`loss` takes no `k`")),
            "loss" => Ok(TunedBase::Loss(Loss)),
            "min_k" => Ok(TunedBase::MinK(MinK { k: share.ok_or_else(outside)? })),
            "min_k_plus_plus" => Ok(TunedBase::MinKPlusPlus(MinKPlusPlus { k: share.ok_or_else(outside)? })),
            other => {
                let known = ["loss", "min_k", "min_k_plus_plus"];
                Err(Fault::unknown("score", other, known, format!("{pointer}/name")))
            }
        }
    }
}

/// The one weighting of a score.
fn one(weights: Vec<Pdr>, reader: &PdrReader) -> Result<Pdr, Fault> {
    match weights.as_slice() {
        [Pdr { weighting: Weighting::EntropyDataset, .. }] => {
            let detail = "`entropy_dataset` belongs to the texts under one model, and `fsd` weights them under two";
            Err(Fault::new(reader.field("decay"), detail))
        }
        [pdr] => Ok(*pdr),
        several => {
            let detail = format!("there are {} values; the score of `fsd` takes one", several.len());
            Err(Fault::new(reader.field("alpha"), detail))
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

    /// The request for it, defaults included.
    pub fn to_request(&self) -> TunedScoreRequest {
        let k = self.base.k();
        TunedScoreRequest {
            name: self.base.name().to_owned(),
            k: k.map(Fraction::get),
            pdr: self.pdr.map(|pdr| pdr.to_request(k.is_some())),
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

impl Serialize for TunedScore {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_request().serialize(serializer)
    }
}
