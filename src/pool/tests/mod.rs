//! The state machine of a model, transition by transition, and the opening of files; the pool as a whole is tested with the
//! engine.

mod lifecycle;
mod open;
