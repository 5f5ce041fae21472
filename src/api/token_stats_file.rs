//! Statistics of sequences as a safetensors file: numbers as they are, without a decimal in between.

use super::problem::Problem;
use crate::engine::Stats;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde::Serialize;
use std::collections::HashMap;

/// The media type of the file.
pub const MEDIA: &str = "application/octet-stream";

/// The file: `stats`, `lengths`, and as metadata what is `served`.
///
/// # Errors
/// Where it cannot be written, which is a fault of the service.
pub fn file(served: &impl Serialize, sequences: &[Stats]) -> Result<Vec<u8>, Problem> {
    let rows = sequences.iter().flat_map(|stats| stats.iter());
    let stats: Vec<u8> = rows.flat_map(|s| [s.lp, s.mu, s.var, s.max_lp]).flat_map(f64::to_le_bytes).collect();
    let lengths: Vec<u32> = sequences
        .iter()
        .map(|stats| u32::try_from(stats.len()))
        .collect::<Result<_, _>>()
        .map_err(Problem::internal)?;
    let lengths: Vec<u8> = lengths.into_iter().flat_map(u32::to_le_bytes).collect();
    let tensor = |dtype, shape, bytes| TensorView::new(dtype, shape, bytes).map_err(Problem::internal);
    let tensors = [
        ("stats", tensor(Dtype::F64, vec![stats.len() / 32, 4], &stats)?),
        ("lengths", tensor(Dtype::U32, vec![sequences.len()], &lengths)?),
    ];
    let metadata = HashMap::from([("served".to_owned(), serde_json::to_string(served).map_err(Problem::internal)?)]);
    safetensors::serialize(tensors, Some(metadata)).map_err(Problem::internal)
}
