//! Input and outcome of a formula.

use super::error::ScoreError;
use super::values::log_probabilities;
use super::weighted_sum::WeightedSum;
use crate::TokenStats;
use crate::methods::auxiliary_pass::{AuxiliaryPass, AuxiliaryStats};
use crate::methods::pdr::{Pdr, WeightContext};
use crate::methods::range::Fraction;
use crate::methods::token_counts::{NamedCounts, TokenCounts};
use std::sync::Arc;

/// The statistics of one text, and all else that scores are computed from.
#[derive(Clone, Copy)]
pub struct TextStats<'a> {
    /// The scored tokens in order, n of them.
    pub tokens: &'a [TokenStats],
    /// Their ids, n of them. Read only by `dc_pdd`.
    pub ids: &'a [u32],
    /// [`zlib_bytes`](crate::methods::zlib_bytes) of the *full* text, whatever was cut off before scoring. Called only by
    /// `zlib`, which may do so several times.
    pub zlib_bytes: &'a dyn Fn() -> usize,
    /// The statistics of the auxiliary passes that the methods need.
    pub passes: &'a [(AuxiliaryPass, AuxiliaryStats)],
    pub token_counts: &'a [NamedCounts],
    /// Context of the weights.
    pub context: WeightContext<'a>,
}

/// Outcome of a formula.
#[derive(Debug)]
pub enum Outcome {
    /// A sum over the text's own scored tokens, so that each token contributes to the score.
    Sum(WeightedSum),
    /// Another number, such as a ratio of means over several texts.
    Value(f64),
}

/// A text, with the truncation and the weights of the method that scores it.
#[derive(Clone, Copy)]
pub struct FormulaInput<'a> {
    pub text: &'a TextStats<'a>,
    /// Share of the scored tokens, from the first, that is used; `None`: all of them.
    pub truncate: Option<Fraction>,
    pub pdr: Option<Pdr>,
}

impl<'a> FormulaInput<'a> {
    /// The text's scored tokens that truncation leaves; at least one.
    ///
    /// # Errors
    /// [`ScoreError::TooShort`].
    pub fn tokens(&self) -> Result<&'a [TokenStats], ScoreError> {
        let tokens = self.truncated(self.text.tokens);
        if tokens.is_empty() { Err(ScoreError::TooShort) } else { Ok(tokens) }
    }

    /// The tokens that truncation leaves.
    pub fn truncated<'t>(&self, tokens: &'t [TokenStats]) -> &'t [TokenStats] {
        match self.truncate {
            Some(share) => &tokens[..share.count(tokens.len()).min(tokens.len())],
            None => tokens,
        }
    }

    /// The weighted mean over all `values` of the text's tokens.
    ///
    /// # Errors
    /// Where there is no mean.
    pub fn sum(&self, values: &[f64]) -> Result<WeightedSum, ScoreError> {
        WeightedSum::new(self.pdr, values, self.tokens()?, &self.text.context, None)
    }

    /// The weighted mean over those of the text's `values` whose indices `select` gives, in ascending order.
    ///
    /// # Errors
    /// Where there is no mean.
    pub fn sum_of_selected(
        &self,
        values: &[f64],
        select: impl Fn(&[f64]) -> Vec<usize>,
    ) -> Result<WeightedSum, ScoreError> {
        WeightedSum::new(self.pdr, values, self.tokens()?, &self.text.context, Some(&select))
    }

    /// The weighted mean log-probability of the text.
    ///
    /// # Errors
    /// Where there is no mean.
    pub fn mean(&self) -> Result<f64, ScoreError> {
        self.mean_of(self.text.tokens)
    }

    /// The weighted mean log-probability of a sequence, with its own n.
    ///
    /// # Errors
    /// Where there is no mean.
    pub fn mean_of(&self, tokens: &[TokenStats]) -> Result<f64, ScoreError> {
        let tokens = self.truncated(tokens);
        if tokens.is_empty() {
            let short = self.text.tokens.is_empty();
            return Err(if short { ScoreError::TooShort } else { ScoreError::AuxiliaryTooShort });
        }
        let values = log_probabilities(tokens)?;
        WeightedSum::new(self.pdr, &values, tokens, &self.text.context, None)?.quotient()
    }

    /// The mean log-probability of the text, to divide by.
    ///
    /// # Errors
    /// Where there is no mean, or it is 0.
    pub fn denominator(&self) -> Result<f64, ScoreError> {
        let mean = self.mean()?;
        if mean == 0.0 { Err(ScoreError::ZeroDenominator("the mean log-probability of the text")) } else { Ok(mean) }
    }

    /// The statistics of the sequences of an auxiliary pass; at least one.
    ///
    /// # Errors
    /// [`ScoreError::TooShort`], and where the pass has no statistics.
    pub fn pass(&self, pass: &AuxiliaryPass) -> Result<&'a [Arc<[TokenStats]>], ScoreError> {
        if self.text.tokens.is_empty() {
            return Err(ScoreError::TooShort);
        }
        match self.text.passes.iter().find(|(known, _)| known == pass) {
            Some((_, Ok(sequences))) if !sequences.is_empty() => Ok(sequences),
            Some((_, Ok(_))) => Err(ScoreError::AuxiliaryTooShort),
            Some((_, Err(error))) => Err(ScoreError::AuxiliaryPass(error.clone())),
            None => Err(ScoreError::Internal("an auxiliary pass of the method was not planned")),
        }
    }

    /// The statistics of an auxiliary pass over one sequence.
    pub fn sequence(&self, pass: &AuxiliaryPass) -> Result<&'a [TokenStats], ScoreError> {
        self.pass(pass)?.first().map(|tokens| &**tokens).ok_or(ScoreError::AuxiliaryTooShort)
    }

    /// The token counts of this id.
    ///
    /// # Errors
    /// [`ScoreError::Internal`] where they were not brought.
    pub fn token_counts(&self, id: &str) -> Result<&'a TokenCounts, ScoreError> {
        let counts = self.text.token_counts.iter().find(|counts| *counts.id == *id);
        counts
            .map(|counts| &*counts.table)
            .ok_or(ScoreError::Internal("the token counts of the method are not at hand"))
    }
}
