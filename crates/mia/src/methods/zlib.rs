//! The zlib ratio (Carlini et al. 2021): the mean log-probability over the bytes of the compressed text.

use super::definition::{Access, Definition, MethodDefinition, PdrPolicy};
use super::formula::{FormulaInput, Outcome, ScoreError, log_probabilities};
use flate2::{Compression, bufread::ZlibEncoder};
use serde::{Deserialize, Serialize};
use std::io;
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Zlib;

impl MethodDefinition for Zlib {
    const DEFINITION: Definition = Definition {
        summary: "Mean log-probability over the text's own complexity, its bytes when compressed.",
        formula: "mean_t lp_t / bytes(zlib level 6 of the full UTF-8 text)",
        needs: &[Access::LogProbabilities, Access::Text],
        further_passes: "none",
        source: "Carlini et al. 2021, arXiv:2012.07805",
        parameters: &[],
        pdr: PdrPolicy::Accepted { published: false, selects: false, text_alone: true },
    };

    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
        let sum = input.sum(&log_probabilities(input.tokens()?)?)?;
        match (input.text.zlib_bytes)() {
            0 => Err(ScoreError::ZeroDenominator("the bytes of the compressed text")),
            bytes => Ok(Outcome::Sum(sum.divided_by(bytes as f64))),
        }
    }
}

/// Bytes of `text` (its raw UTF-8) compressed by zlib at level 6, header and checksum included: what Python's
/// `len(zlib.compress(text.encode()))` gives. Stock C zlib only: other implementations give other lengths.
pub fn zlib_bytes(text: &str) -> usize {
    let mut compressed = ZlibEncoder::new(text.as_bytes(), Compression::new(6));
    // Reading from memory into a sink does not fail. If it did, 0 makes a refusal of it, not a wrong score.
    io::copy(&mut compressed, &mut io::sink()).map_or(0, |bytes| bytes as usize)
}

#[cfg(test)]
mod tests {
    use super::zlib_bytes;

    #[test]
    fn lengths_of_stock_zlib() {
        assert_eq!(zlib_bytes(""), 8);
        assert_eq!(zlib_bytes("The quick brown fox jumps over the lazy dog."), 51);
    }
}
