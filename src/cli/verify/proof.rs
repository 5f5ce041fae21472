//! Proof that one sample was among those of a signed report, which shows nothing of the others.

use super::report_file::ReportFile;
use super::step::Finding;
use super::unique_keys::check_unique_keys;
use anyhow::Result;
use attestation::{Hash, LeafOpening, SampleTrees, leaf_hash, root_of_path};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Proof of one sample.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleProof {
    /// Place of the sample, from 0.
    pub index: usize,
    /// The sample as a line of JSON, without the end of the line.
    pub sample: String,
    /// The salt of its leaf, in hexadecimal digits.
    pub salt: String,
    /// Hashes beside the path from its leaf to the root of the tree of samples, from the bottom up, in hexadecimal digits.
    pub path: Vec<String>,
    /// Its scores, if they are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<ScoreProof>,
}

/// Proof of the scores of a sample.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreProof {
    /// The line of scores, without its end.
    pub line: String,
    /// Hashes beside the path from its leaf to the root of the tree of scores.
    pub path: Vec<String>,
}

impl SampleProof {
    /// Checks the proof against the trees of a report.
    pub fn findings(&self, file: &ReportFile) -> Result<Vec<Finding>> {
        let trees = file.commitment()?;
        let opening = LeafOpening {
            salt: Some(self.salt.clone()),
            sample_digest: Some(hex::encode(Sha256::digest(&self.sample))),
        };
        let (index, leaves) = (self.index, trees.leaves);
        let is_sample = opening.sample_leaf().and_then(|leaf| root(leaf, index, trees, &self.path));
        let mut findings = vec![match trees.dataset.is_some() && is_sample == trees.dataset {
            true => {
                Finding::holds(format!("the sample of the proof is number {index} of the {leaves} that were audited"))
            }
            false => Finding::fails(format!(
                "the sample of the proof is not number {index} of the {leaves} that were audited"
            )),
        }];
        if let Some(ScoreProof { line, path }) = &self.scores {
            check_unique_keys(line)?;
            let ProvedLine { index: place, opening: opened } = serde_json::from_str(line)?;
            let is_line = place == index && opened == opening;
            findings.push(
                match is_line && root(leaf_hash(line.as_bytes()), index, trees, path) == Some(trees.scores) {
                    true => Finding::holds(format!("its scores are line {} of those that were signed", index + 1)),
                    false => Finding::fails(format!("its scores are not line {} of those that were signed", index + 1)),
                },
            );
        }
        Ok(findings)
    }
}

/// The fields of a line that tie it to its sample.
#[derive(Deserialize)]
struct ProvedLine {
    index: usize,
    #[serde(flatten)]
    opening: LeafOpening,
}

fn root(leaf: Hash, index: usize, trees: SampleTrees, path: &[String]) -> Option<Hash> {
    let hash = |digits: &String| {
        let mut hash = Hash::default();
        hex::decode_to_slice(digits, &mut hash).ok().map(|()| hash)
    };
    root_of_path(leaf, index, trees.leaves, &path.iter().map(hash).collect::<Option<Vec<Hash>>>()?)
}
