//! The gradients of the kernels with respect to their inputs, for tuning: weights have none.

pub mod activation;
pub mod attention;
