//! Rotary positions as configurations spell them: the Hub's keys beside each other, or `rope_parameters` of transformers 5.

use crate::models::ModelError;
use crate::models::config_reader::ConfigReader;
use crate::models::rotary::{Rotary, RotaryScaling};

/// The keys outside `rope_parameters`, and what holds where they are absent.
#[derive(Clone, Copy)]
pub struct RopeKeys {
    pub theta: &'static str,
    /// The part of a head that is turned: its key and what holds without it. `None`: all of it, and the key is refused.
    pub fraction: Option<(&'static str, f64)>,
}

/// The keys of LLaMA and its kin.
pub const USUAL: RopeKeys = RopeKeys { theta: "rope_theta", fraction: None };

/// The names that newer versions of transformers write beside a family's own.
const THETA: &str = "rope_theta";
const FRACTION: &str = "partial_rotary_factor";

/// Reads either spelling, or both where they agree.
///
/// # Errors
/// [`ModelError::Config`] naming a type of scaling that is not known, a number that makes no sense, or a contradiction.
pub fn rotary(config: &mut ConfigReader, head_dim: usize, keys: RopeKeys) -> Result<Rotary, ModelError> {
    let (fraction_key, default_fraction) = keys.fraction.unwrap_or((FRACTION, 1.0));
    let mut theta = agreeing(config, keys.theta, THETA)?;
    let mut fraction = agreeing(config, fraction_key, FRACTION)?;
    let mut scale = None;
    for object in ["rope_scaling", "rope_parameters"] {
        let Some(mut rope) = config.object(object)? else { continue };
        let found = scaling(&mut rope)?;
        if scale.is_some_and(|scale| scale != found) {
            return Err(rope.fault("rope_type", "not the same as in rope_scaling"));
        }
        scale = Some(found);
        fraction = rope.positive(FRACTION)?.or(fraction);
        theta = rope.positive(THETA)?.or(theta);
        rope.finish()?;
    }
    let fraction = fraction.unwrap_or(default_fraction);
    if keys.fraction.is_none() && fraction != 1.0 {
        return Err(config.fault(FRACTION, "models of this family turn whole heads"));
    }
    let dims = (head_dim as f64 * fraction) as usize;
    if dims == 0 || !dims.is_multiple_of(2) || dims > head_dim {
        let reason = format!("{dims} of {head_dim} elements of a head would turn; that must be even and at least 2");
        return Err(config.fault(fraction_key, reason));
    }
    Ok(Rotary { dims, theta: theta.unwrap_or(10_000.0), scaling: scale.unwrap_or(RotaryScaling::None) })
}

/// A number under one of two names; where it stands under both, they must agree.
fn agreeing(config: &mut ConfigReader, own: &'static str, other: &'static str) -> Result<Option<f64>, ModelError> {
    let (first, second) = (config.positive(own)?, config.positive(other)?);
    match (first, second) {
        (Some(a), Some(b)) if a != b => Err(config.fault(other, format!("{b}, but {own} is {a}"))),
        _ => Ok(first.or(second)),
    }
}

fn scaling(rope: &mut ConfigReader) -> Result<RotaryScaling, ModelError> {
    // Old files have `type`, new ones `rope_type`; some have both.
    let old = rope.text_or("type", "default")?;
    let key = if rope.get("rope_type").is_some() { "rope_type" } else { "type" };
    let kind = rope.text_or("rope_type", old)?;
    let mut need = |key| rope.positive(key)?.ok_or_else(|| rope.fault(key, "missing"));
    match kind {
        "default" => Ok(RotaryScaling::None),
        "linear" => Ok(RotaryScaling::Linear { factor: need("factor")? }),
        "llama3" => {
            let (factor, low, high) = (need("factor")?, need("low_freq_factor")?, need("high_freq_factor")?);
            let original_context = need("original_max_position_embeddings")?;
            if low >= high {
                return Err(rope.fault("low_freq_factor", format!("{low} is not below high_freq_factor {high}")));
            }
            Ok(RotaryScaling::Llama3 { factor, low_frequency: low, high_frequency: high, original_context })
        }
        other => {
            let reason = format!("`{other}` is not supported; supported: default, linear, llama3");
            Err(rope.fault(key, reason))
        }
    }
}
