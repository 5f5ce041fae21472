//! Keys that the configurations of several families share: sizes, activations, and rotary positions in two formats, the
//! keys used on the Hub or `rope_parameters` of transformers 5.

use crate::models::arch::{Activation, Sizes};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use crate::models::rotary::{Rotary, RotaryScaling};

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

/// The sizes of a decoder whose heads divide the hidden size evenly and have keys and values of their own. The keys are those
/// of the hidden size, the heads and the layers; `context` has a key and its default.
pub fn even_sizes(
    config: &mut ConfigReader,
    [hidden_key, heads_key, layers_key]: [&'static str; 3],
    (context_key, context): (&'static str, usize),
    inner: impl FnOnce(&mut ConfigReader, usize) -> Result<usize, ModelError>,
) -> Result<Sizes, ModelError> {
    let (hidden, heads) = (config.count(hidden_key)?, config.count(heads_key)?);
    if !hidden.is_multiple_of(heads) {
        return Err(config.error(heads_key, format!("{heads} does not divide the hidden size {hidden}")));
    }
    Ok(Sizes {
        vocab: config.count("vocab_size")?,
        hidden,
        layers: config.layers(layers_key)?,
        heads,
        kv_heads: heads,
        head_dim: hidden / heads,
        inner: inner(config, hidden)?,
        context: config.context(context_key, context)?,
    })
}

/// The keys outside `rope_parameters`, and the defaults that apply if they are absent.
#[derive(Clone, Copy)]
pub struct RopeKeys {
    pub theta: &'static str,
    /// The fraction of a head that is rotated: its key and its default. `None`: the whole head, and the key is refused.
    pub fraction: Option<(&'static str, f64)>,
}

/// The keys of LLaMA and related families.
pub const USUAL: RopeKeys = RopeKeys { theta: "rope_theta", fraction: None };

/// The names that newer versions of transformers write in addition to a family's own.
const THETA: &str = "rope_theta";
const FRACTION: &str = "partial_rotary_factor";

/// Reads either format, or both if they agree.
pub fn rotary(config: &mut ConfigReader, head_dim: usize, keys: RopeKeys) -> Result<Rotary, ModelError> {
    let (fraction_key, default_fraction) = keys.fraction.unwrap_or((FRACTION, 1.0));
    let mut theta = agreeing(config, keys.theta, THETA)?;
    let mut fraction = agreeing(config, fraction_key, FRACTION)?;
    let mut scale = None;
    for object in ["rope_scaling", "rope_parameters"] {
        let Some(mut rope) = config.object(object)? else { continue };
        let this_scale = scaling(&mut rope)?;
        if scale.as_ref().is_some_and(|scale| *scale != this_scale) {
            return Err(rope.error("rope_type", "differs from rope_scaling"));
        }
        scale = Some(this_scale);
        fraction = rope.positive(FRACTION)?.or(fraction);
        theta = rope.positive(THETA)?.or(theta);
        rope.finish()?;
    }
    let fraction = fraction.unwrap_or(default_fraction);
    if keys.fraction.is_none() && fraction != 1.0 {
        return Err(config.error(FRACTION, "only 1 is supported: models of this family rotate whole heads"));
    }
    let dims = (head_dim as f64 * fraction) as usize;
    if dims == 0 || !dims.is_multiple_of(2) || dims > head_dim {
        let reason = format!(
            "{dims} of the {head_dim} elements of a head would be rotated; the number must be even and at least 2"
        );
        return Err(config.error(fraction_key, reason));
    }
    Ok(Rotary { dims, theta: theta.unwrap_or(10_000.0), scaling: scale.unwrap_or(RotaryScaling::None) })
}

/// A number under one of two names; if both are present, they must agree.
fn agreeing(config: &mut ConfigReader, name: &'static str, other: &'static str) -> Result<Option<f64>, ModelError> {
    let (first, second) = (config.positive(name)?, config.positive(other)?);
    match (first, second) {
        (Some(a), Some(b)) if a != b => Err(config.error(other, format!("{b}, but {name} is {a}"))),
        _ => Ok(first.or(second)),
    }
}

fn scaling(rope: &mut ConfigReader) -> Result<RotaryScaling, ModelError> {
    // Old files have `type`, new ones `rope_type`; some have both.
    let old = rope.text_or("type", "default")?;
    let key = if rope.get("rope_type").is_some() { "rope_type" } else { "type" };
    let kind = rope.text_or("rope_type", old)?;
    let mut required = |key| rope.positive(key)?.ok_or_else(|| rope.error(key, "missing"));
    match kind {
        "default" => Ok(RotaryScaling::None),
        "linear" => Ok(RotaryScaling::Linear { factor: required("factor")? }),
        "llama3" => {
            let (factor, low, high) =
                (required("factor")?, required("low_freq_factor")?, required("high_freq_factor")?);
            let original_context = required("original_max_position_embeddings")?;
            if low >= high {
                return Err(rope.error("low_freq_factor", format!("{low} must be less than high_freq_factor {high}")));
            }
            Ok(RotaryScaling::Llama3 { factor, low_frequency: low, high_frequency: high, original_context })
        }
        other => {
            let reason = format!("`{other}` is not supported; supported: default, linear, llama3");
            Err(rope.error(key, reason))
        }
    }
}
