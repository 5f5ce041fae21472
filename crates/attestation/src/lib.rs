//! Signed reports: [DSSE] envelopes of [in-toto statements], signed with Ed25519, and Merkle trees by RFC 6962 over salted leaves.
//!
//! A tree commits to every sample of a dataset and to every line of scores without showing any of them. One leaf, its salt and its
//! path to the root show that a sample was among them, and nothing of the others.
//!
//! [DSSE]: https://github.com/secure-systems-lab/dsse
//! [in-toto statements]: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md

#![deny(unsafe_code)]

mod envelope;
mod eval_result;
mod keys;
mod merkle;
mod report;
mod salts;
mod statement;

pub use envelope::{Envelope, EnvelopeError, EnvelopeSignature, PAYLOAD_TYPE};
pub use eval_result::{EVAL_RESULT_PREDICATE, sign_eval_result};
pub use keys::{KeyError, PublicKey, SigningKey};
pub use merkle::{Hash, MerkleTree, inclusion_path, leaf_hash, root_of_path};
pub use report::{
    DATASET, LeafOpening, REPORT, REPORT_PREDICATE, ReportPredicate, RunTimes, SCORES, SampleTrees, TreeBuilder,
    report_subjects, sign_report,
};
pub use salts::{LeafSalts, SALT_BYTES};
pub use statement::{Statement, StatementError, Subject};
