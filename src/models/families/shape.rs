//! What configurations of several families have in common.

use crate::models::ModelError;
use crate::models::arch::Activation;
use crate::models::config_reader::ConfigReader;

/// The activation under a key.
pub fn activation(config: &mut ConfigReader, key: &'static str, default: &str) -> Result<Activation, ModelError> {
    match config.text_or(key, "")? {
        "" => parse(default),
        given => parse(given),
    }
    .ok_or_else(|| {
        config.fault(key, "not supported; supported: gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu, silu")
    })
}

fn parse(name: &str) -> Option<Activation> {
    match name {
        "gelu" => Some(Activation::Gelu),
        "gelu_new" | "gelu_fast" | "gelu_pytorch_tanh" => Some(Activation::GeluTanh),
        "relu" => Some(Activation::Relu),
        "silu" | "swish" => Some(Activation::Silu),
        _ => None,
    }
}

/// The size of a head where heads share the hidden size evenly.
pub fn even_heads(config: &ConfigReader, key: &'static str, hidden: usize, heads: usize) -> Result<usize, ModelError> {
    if hidden.is_multiple_of(heads) {
        return Ok(hidden / heads);
    }
    Err(config.fault(key, format!("{heads} does not divide the hidden size {hidden}")))
}
