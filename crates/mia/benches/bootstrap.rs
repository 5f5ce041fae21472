//! Measures the bootstrap over scores from a file, for `bootstrap.py`, which compares it with scikit-learn:
//!
//!     cargo bench --bench bootstrap -- SCORES LABELS [--replicates N] [--seed N] [--indices FILE] [--targets 0.005,0.05]
//!
//! LABELS has one byte for each sample, 0 or 1; SCORES one little-endian f64 for each sample, column after column, NaN
//! for a missing score. Every column but the first is compared with the first. With `--indices`, in little-endian u32,
//! each replicate uses the next N indices, where N is the number of samples. Prints one JSON line; the seconds are
//! those of the statistics only.

use anyhow::{Context, Result, ensure};
use mia::statistics::{Bootstrap, BootstrapColumn, ColumnBootstrap, bootstrap, bootstrap_listed};
use serde_json::{Value, json};
use std::time::Instant;

#[derive(Default)]
struct Options {
    paths: Vec<String>,
    settings: Bootstrap,
    indices: Option<String>,
    targets: Vec<f64>,
}

impl Options {
    fn parse() -> Result<Self> {
        let mut options = Self { targets: vec![0.005, 0.01, 0.05], ..Self::default() };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--replicates" => options.settings.replicates = value()?.parse()?,
                "--seed" => options.settings.seed = value()?.parse()?,
                "--indices" => options.indices = Some(value()?),
                "--targets" => options.targets = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
                // Added by cargo bench.
                "--bench" => {}
                _ => options.paths.push(argument),
            }
        }
        ensure!(
            options.paths.len() == 2,
            "usage: bootstrap SCORES LABELS [--replicates N] [--seed N] [--indices FILE]"
        );
        Ok(options)
    }
}

fn main() -> Result<()> {
    // `cargo test --benches` and a bare `cargo bench` run this without files; there is nothing to measure then.
    if std::env::args().skip(1).all(|argument| argument == "--bench" || argument == "--test") {
        return Ok(());
    }
    let options = Options::parse()?;
    let labels: Vec<bool> = std::fs::read(&options.paths[1])?.into_iter().map(|label| label != 0).collect();
    ensure!(!labels.is_empty(), "no labels");
    let scores: Vec<Option<f64>> = numbers(&options.paths[0], f64::from_le_bytes)?
        .into_iter()
        .map(|score| Some(score).filter(|s| !s.is_nan()))
        .collect();
    let column = |(index, scores)| BootstrapColumn { scores, baseline: (index > 0).then_some(0) };
    let columns: Vec<BootstrapColumn> = scores.chunks(labels.len()).enumerate().map(column).collect();
    let lists = options.indices.as_deref().map(|path| numbers(path, u32::from_le_bytes)).transpose()?;
    let lists: Option<Vec<Vec<u32>>> = lists.map(|all| all.chunks(labels.len()).map(<[u32]>::to_vec).collect());
    let start = Instant::now();
    let results = match lists {
        Some(lists) => bootstrap_listed(&labels, &columns, &options.targets, options.settings.confidence, &lists),
        None => bootstrap(&labels, &[], &columns, &options.targets, &options.settings, &|| true),
    };
    let seconds = start.elapsed().as_secs_f64();
    let columns: Vec<Value> = results.iter().map(row).collect();
    println!("{}", json!({ "seconds": seconds, "columns": columns }));
    Ok(())
}

fn row(result: &ColumnBootstrap) -> Value {
    json!({ "bootstrap": result.summary, "versus_baseline": result.versus_baseline })
}

fn numbers<const BYTES: usize, T>(path: &str, number: fn([u8; BYTES]) -> T) -> Result<Vec<T>> {
    let bytes = std::fs::read(path).with_context(|| path.to_owned())?;
    let (chunks, rest) = bytes.as_chunks::<BYTES>();
    ensure!(rest.is_empty(), "{path}: the size is not a multiple of {BYTES}");
    Ok(chunks.iter().copied().map(number).collect())
}
