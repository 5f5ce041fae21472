//! Signed reports: the predicate of their statements, its subjects, and the trees of samples.

use crate::envelope::Envelope;
use crate::keys::SigningKey;
use crate::merkle::{Hash, MerkleTree, leaf_hash};
use crate::salts::SALT_BYTES;
use crate::statement::{Statement, Subject};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// Type of the predicate of a report.
pub const REPORT_PREDICATE: &str = "urn:pdr-audit:report:v1";

/// Name of the subject that is the JSON of the report in the predicate.
pub const REPORT: &str = "report";
/// Name of the subject that is the samples.
pub const DATASET: &str = "dataset";
/// Name of the subject that is the scores as a file of NDJSON.
pub const SCORES: &str = "scores";

/// Predicate of a report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReportPredicate {
    /// The program that signed it, with its version.
    pub program: String,
    /// The kind of job that the report is of, such as `audit`.
    pub kind: String,
    pub run: RunTimes,
    /// Commitments to the samples of an audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleTrees>,
    /// The report, byte for byte as it was signed.
    pub report: Box<RawValue>,
}

/// Start and end of a run, by the signer's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTimes {
    /// Id of the job of a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// In RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// In RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
}

/// Roots of the Merkle trees over the samples of an audit and over their scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleTrees {
    /// Number of leaves of either tree.
    pub leaves: usize,
    /// Root over the samples: a leaf is the salt and the SHA-256 of the sample. Absent for audits of versions that did not keep
    /// these digests.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional_hash")]
    pub dataset: Option<Hash>,
    /// Root over the scores: a leaf is a line, which holds the salt.
    #[serde(with = "hex::serde")]
    pub scores: Hash,
}

/// Builds both trees and the digest of the file of scores, line by line.
#[derive(Debug, Default)]
pub struct TreeBuilder {
    dataset: MerkleTree,
    scores: MerkleTree,
    file: Sha256,
}

/// Opening of the leaves of a sample, which its line of scores has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafOpening {
    /// The salt of both leaves, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<String>,
    /// SHA-256 of the sample as a line of JSON, without the end of the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_digest: Option<String>,
}

impl LeafOpening {
    /// The hash of the sample's leaf; `None` unless salt and digest are there and well-formed.
    #[must_use]
    pub fn sample_leaf(&self) -> Option<Hash> {
        let mut content = [0; SALT_BYTES + 32];
        hex::decode_to_slice(self.salt.as_ref()?, &mut content[..SALT_BYTES]).ok()?;
        hex::decode_to_slice(self.sample_digest.as_ref()?, &mut content[SALT_BYTES..]).ok()?;
        Some(leaf_hash(&content))
    }
}

impl TreeBuilder {
    /// Adds a sample by its line of scores, without the end of the line.
    pub fn add(&mut self, line: &[u8], opening: &LeafOpening) {
        self.scores.add(leaf_hash(line));
        self.file.update(line);
        self.file.update(b"\n");
        if let Some(leaf) = opening.sample_leaf() {
            self.dataset.add(leaf);
        }
    }

    /// Returns the trees, and the SHA-256 of the file of all lines in hexadecimal digits.
    #[must_use]
    pub fn finish(self) -> (SampleTrees, String) {
        let leaves = self.scores.leaves();
        let dataset = (self.dataset.leaves() == leaves).then(|| self.dataset.root());
        (SampleTrees { leaves, dataset, scores: self.scores.root() }, hex::encode(self.file.finalize()))
    }
}

/// Signs a report. `scores` are the trees of its samples and the SHA-256 of the file of scores.
///
/// # Errors
/// If the predicate cannot be written as JSON.
pub fn sign_report(
    kind: &str,
    run: RunTimes,
    report: Box<RawValue>,
    scores: Option<(SampleTrees, String)>,
    key: &SigningKey,
) -> serde_json::Result<Envelope> {
    let (samples, scores_digest) = scores.unzip();
    let mut subjects = report_subjects(&report)?;
    subjects.extend(scores_digest.map(|digest| Subject::new(SCORES, digest)));
    let program = concat!("pdr-audit ", env!("CARGO_PKG_VERSION")).to_owned();
    let predicate = ReportPredicate { program, kind: kind.to_owned(), run, samples, report };
    let statement = serde_json::to_vec(&Statement::new(subjects, REPORT_PREDICATE, predicate))?;
    Ok(Envelope::sign(&statement, key))
}

/// The subjects that a report names: itself, the models with their adapters, and the samples.
///
/// # Errors
/// If the report is no JSON.
pub fn report_subjects(report: &RawValue) -> serde_json::Result<Vec<Subject>> {
    let mut subjects = vec![Subject::new(REPORT, hex::encode(Sha256::digest(report.get())))];
    let report: Value = serde_json::from_str(report.get())?;
    let provenance = &report["provenance"];
    let models = [provenance, &provenance["control"]]
        .into_iter()
        .chain(provenance["other_models"].as_array().into_iter().flatten());
    let mut add = |name: String, digest: &Value| subjects.extend(subject(name, digest));
    for model in models {
        let name = model["model"].as_str().unwrap_or_default();
        add(format!("model {name}"), &model["model_digest"]);
        add(format!("adapter of {name}"), &model["adapter_digest"]);
    }
    let model = &report["model"];
    add(format!("model {}", model["id"].as_str().unwrap_or_default()), &model["digest"]);
    let adapter = report["adapter"].as_str().unwrap_or_default();
    add(format!("base of {adapter}"), &report["base_digest"]);
    add(format!("adapter {adapter}"), &report["digest"]);
    add(DATASET.to_owned(), &provenance["dataset_digest"]);
    add("calibration".to_owned(), &provenance["calibration_digest"]);
    // A reference model may be the control as well.
    let mut distinct = Vec::with_capacity(subjects.len());
    subjects.into_iter().for_each(|subject| {
        if !distinct.contains(&subject) {
            distinct.push(subject);
        }
    });
    Ok(distinct)
}

/// A subject by an address, `sha256:` and hexadecimal digits; `None` if it is no such address.
pub fn subject(name: String, address: &Value) -> Option<Subject> {
    let digest = address.as_str()?.strip_prefix("sha256:")?;
    let is_sha256 = digest.len() == 64 && digest.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_sha256.then(|| Subject::new(name, digest))
}

mod optional_hash {
    use crate::merkle::Hash;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(hash: &Option<Hash>, serializer: S) -> Result<S::Ok, S::Error> {
        match hash {
            Some(hash) => serializer.serialize_some(&hex::encode(hash)),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Hash>, D::Error> {
        let Some(digits) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let mut hash = Hash::default();
        hex::decode_to_slice(digits, &mut hash).map_err(D::Error::custom)?;
        Ok(Some(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Python's `hashlib`, over the leaves `\0` + salt + digest and `\0` + line.
    const DATASET_ROOT: &str = "a0ccf5a3580481b0c0e5f1f85d8b0416d612269661ef84195f619125399c572b";
    const SCORES_ROOT: &str = "e8d3e3ae206483e0df450ff2112c9f0aa773aeb01c3ee6e28191fea4eb7b7402";
    const FILE: &str = "706694f8398f1cc3450dfecbf6d81321d16dfefa9fd7b0d4e145304c40235c86";

    fn opening(place: u8) -> LeafOpening {
        LeafOpening { salt: Some(hex::encode([place; 16])), sample_digest: Some(hex::encode([place + 1; 32])) }
    }

    #[test]
    fn the_trees_of_three_samples_are_those_of_another_program() {
        let mut trees = TreeBuilder::default();
        for place in 0..3 {
            trees.add(format!("line {place}").as_bytes(), &opening(place));
        }
        let (trees, file) = trees.finish();
        assert_eq!((trees.leaves, file.as_str()), (3, FILE));
        assert_eq!(
            (trees.dataset.map(hex::encode).as_deref(), hex::encode(trees.scores).as_str()),
            (Some(DATASET_ROOT), SCORES_ROOT)
        );
        let json = serde_json::to_string(&trees).unwrap();
        assert_eq!(serde_json::from_str::<SampleTrees>(&json).unwrap(), trees);
    }

    #[test]
    fn lines_without_openings_have_no_tree_of_samples() {
        let mut trees = TreeBuilder::default();
        trees.add(b"line 0", &opening(0));
        trees.add(b"line 1", &LeafOpening { salt: Some("00".to_owned()), ..opening(1) });
        let (trees, _) = trees.finish();
        assert_eq!((trees.leaves, trees.dataset), (2, None));
        let json = serde_json::to_string(&trees).unwrap();
        assert_eq!(serde_json::from_str::<SampleTrees>(&json).unwrap(), trees);
    }

    #[test]
    fn the_subjects_are_all_that_the_report_names_by_digest() {
        let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(64));
        let report = format!(
            r#"{{"provenance":{{"model":"m","model_digest":"sha256:{a}","control":{{"model":"c","model_digest":"sha256:{b}"}},
            "other_models":[{{"model":"served","model_digest":"unknown"}},{{"model":"c","model_digest":"sha256:{b}"}}],"dataset_digest":"sha256:{c}"}}}}"#
        );
        let key = SigningKey::random().unwrap();
        let report = RawValue::from_string(report).unwrap();
        let envelope = sign_report("audit", RunTimes::default(), report.clone(), None, &key).unwrap();
        let statement: Statement<ReportPredicate> =
            Statement::read(&envelope.statement().unwrap(), REPORT_PREDICATE).unwrap();
        let names: Vec<&str> = statement.subject.iter().map(|subject| subject.name.as_str()).collect();
        assert_eq!(names, ["report", "model m", "model c", "dataset"]);
        assert_eq!(statement.predicate.report.get(), report.get());
        assert_eq!(
            statement.subject(REPORT).unwrap().sha256(),
            Some(hex::encode(Sha256::digest(report.get())).as_str())
        );
    }
}
