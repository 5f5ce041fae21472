//! Times the permutation tests of several methods over samples from a file, for `max_t.py`, which compares them with NumPy:
//!
//!     cargo bench --bench max_t -- SCORES LABELS [--permutations N] [--seed N]
//!
//! LABELS has one byte for each sample, 0 or 1; SCORES one little-endian f64 for each sample, column after column. Prints one JSON
//! line; the seconds are those of the test alone, the best of five.

use mia::statistics::{RankColumn, max_t};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `--bench` is added by cargo.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let option = |name: &str, default: u64| -> Result<u64, std::num::ParseIntError> {
        let value = arguments.iter().skip_while(|argument| *argument != name).nth(1);
        value.map_or(Ok(default), |value| value.parse())
    };
    let [scores, labels, ..] = arguments.as_slice() else { return Err("usage: max_t SCORES LABELS".into()) };
    let labels: Vec<bool> = std::fs::read(labels)?.into_iter().map(|label| label != 0).collect();
    let scores = std::fs::read(scores)?;
    let (numbers, _) = scores.as_chunks::<8>();
    let scores: Vec<Option<f64>> = numbers.iter().map(|bytes| Some(f64::from_le_bytes(*bytes))).collect();
    let strata = vec![0; labels.len()];
    let (permutations, seed) = (option("--permutations", 999)? as usize, option("--seed", 0)?);
    let mut seconds = f64::INFINITY;
    let mut tests = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        let columns: Vec<RankColumn> =
            scores.chunks(labels.len()).map(|scores| RankColumn::new(scores, &strata)).collect();
        tests = max_t(&labels, &strata, &columns, permutations, seed, &|| true);
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    println!("{}", serde_json::json!({ "seconds": seconds, "tests": tests }));
    Ok(())
}
