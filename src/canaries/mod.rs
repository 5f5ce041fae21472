//! Canaries: texts that an owner publishes so that training on them can be shown later.
//!
//! Of each canary several versions are made in the same way, one of which is drawn and published; the others, its twins, stay
//! private. A model that was not trained on the canary gives each version the same chance of the highest score.

mod draw;
mod private_part;
mod template;

pub use draw::{DrawError, DrawOptions, draw};
pub use private_part::PrivatePart;
pub use template::{Template, TemplateError};
