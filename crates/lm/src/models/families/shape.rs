//! Common parts of the configurations of several families.

use crate::models::arch::Activation;
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;

/// The activations by their names in configurations.
const ACTIVATIONS: [(&str, Activation); 7] = [
    ("gelu", Activation::Gelu),
    ("gelu_new", Activation::GeluTanh),
    ("gelu_fast", Activation::GeluTanh),
    ("gelu_pytorch_tanh", Activation::GeluTanh),
    ("relu", Activation::Relu),
    ("silu", Activation::Silu),
    ("swish", Activation::Silu),
];

/// The activation under a key; the one named `default` if the key is absent.
pub fn activation(
    config: &mut ConfigReader,
    key: &'static str,
    default: &'static str,
) -> Result<Activation, ModelError> {
    let name = config.text_or(key, default)?;
    let activation = ACTIVATIONS.iter().find(|(known, _)| *known == name).map(|(_, activation)| *activation);
    activation.ok_or_else(|| {
        let supported: Vec<&str> = ACTIVATIONS.iter().map(|(name, _)| *name).collect();
        config.error(key, format!("`{name}` is not supported; supported: {}", supported.join(", ")))
    })
}

/// The size of a head if the hidden size is divided evenly among the heads.
pub fn even_heads(config: &ConfigReader, key: &'static str, hidden: usize, heads: usize) -> Result<usize, ModelError> {
    if hidden.is_multiple_of(heads) {
        return Ok(hidden / heads);
    }
    Err(config.error(key, format!("{heads} does not divide the hidden size {hidden}")))
}
