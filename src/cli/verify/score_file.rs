//! Scores as a file of NDJSON: the lines, and the trees over them.

use super::unique_keys::check_unique_keys;
use crate::audits::ScoreLine;
use anyhow::{Context, Result, ensure};
use attestation::{Hash, LeafOpening, SampleTrees, TreeBuilder, leaf_hash};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The lines of a file of scores.
pub struct ScoreFile {
    pub lines: Vec<ScoreLine>,
    pub trees: SampleTrees,
    /// SHA-256 of the file, in hexadecimal digits.
    pub digest: String,
}

impl ScoreFile {
    /// Reads all lines.
    ///
    /// # Errors
    /// If a line is no line of scores, by its number.
    pub fn read(file: &Path) -> Result<Self> {
        let (mut trees, mut lines) = (TreeBuilder::default(), Vec::new());
        for_each_line(file, |_, text| {
            check_unique_keys(text)?;
            let opening: LeafOpening = serde_json::from_str(text)?;
            trees.add(text.as_bytes(), &opening);
            lines.push(serde_json::from_str(text)?);
            Ok(())
        })?;
        let (trees, digest) = trees.finish();
        Ok(Self { lines, trees, digest })
    }
}

/// The leaves of both trees, and one of the lines.
pub struct ScoreLeaves {
    pub samples: Vec<Option<Hash>>,
    pub scores: Vec<Hash>,
    /// The line that is shown, with what it opens.
    pub line: String,
    pub opening: LeafOpening,
}

impl ScoreLeaves {
    /// Reads the leaves of a file, and keeps the line at `place`.
    ///
    /// # Errors
    /// If the file has no such line.
    pub fn read(file: &Path, place: usize) -> Result<Self> {
        let mut leaves =
            Self { samples: Vec::new(), scores: Vec::new(), line: String::new(), opening: LeafOpening::default() };
        for_each_line(file, |line, text| {
            let opening: LeafOpening = serde_json::from_str(text)?;
            leaves.samples.push(opening.sample_leaf());
            leaves.scores.push(leaf_hash(text.as_bytes()));
            if line == place {
                (leaves.line, leaves.opening) = (text.to_owned(), opening);
            }
            Ok(())
        })?;
        let lines = leaves.scores.len();
        ensure!(place < lines, "{}: it has {lines} lines, and no sample {place}", file.display());
        Ok(leaves)
    }
}

/// Calls `take` with each line and its place from 0. Every line must end, the last one as well.
fn for_each_line(file: &Path, mut take: impl FnMut(usize, &str) -> Result<()>) -> Result<()> {
    let named = || file.display().to_string();
    let mut reader = BufReader::new(File::open(file).with_context(|| format!("cannot read {}", named()))?);
    let (mut text, mut line) = (String::new(), 0);
    while reader.read_line(&mut text).with_context(named)? > 0 {
        let place = || format!("{}: line {}", named(), line + 1);
        let content = text.strip_suffix('\n').with_context(|| format!("{}: the file is cut off", place()))?;
        take(line, content).with_context(place)?;
        text.clear();
        line += 1;
    }
    ensure!(line > 0, "{}: the file is empty", named());
    Ok(())
}
