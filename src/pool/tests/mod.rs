//! The state machine of a model, transition by transition; the pool as a whole is tested with the engine.

mod lifecycle;
