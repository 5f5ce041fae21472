//! Every method through the front door, over the golden checkpoints: the scores of the reference implementations, and
//! what has none there against a computation of its own in the test.

mod audits;
mod cases;
mod comparisons;
mod definition;
mod neighbors;
mod pac;
mod planning;
mod prefixes;
mod presets;
mod properties;
mod refusals;
mod reproduced;
pub mod rig;
mod stored_audits;
mod tokens;
mod windows;
