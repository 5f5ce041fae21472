//! The parameters of methods: how each is declared, read from a request and described to clients.
//!
//! A method's file declares each of its parameters once, as a [`Parameter`] of some [`ParameterKind`]. From this declaration follow
//! what a request may hold, what is refused and what the catalogue and the OpenAPI document say.

mod choice;
mod kind;
mod numbers;
mod prefix;
mod value;

pub use choice::Choice;
pub use kind::{AnyParameter, Parameter, ParameterKind, Place, Reader};
pub use numbers::{Integer, K_FIFTH, Number, Share, share_selected};
pub use prefix::PrefixTexts;
pub use value::{GeneratorRequest, GivenParameters, ParameterValue, TunedScoreRequest, ValueType};
