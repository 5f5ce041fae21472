//! Rotary positions as configurations spell them: the Hub's keys beside each other, or `rope_parameters` of transformers 5.

use crate::models::ModelError;
use crate::models::config_reader::ConfigReader;
use crate::models::rotary::{Rotary, RotaryScaling};

/// The keys outside `rope_parameters`, and what holds where they are absent.
pub struct RopeKeys {
    pub theta: &'static str,
    /// The part of a head that is turned.
    pub fraction: &'static str,
    pub default_fraction: f64,
}

/// The keys of LLaMA and its kin.
pub const USUAL: RopeKeys = RopeKeys { theta: "rope_theta", fraction: "partial_rotary_factor", default_fraction: 1.0 };

/// Reads either spelling.
///
/// # Errors
/// [`ModelError::Config`] naming a type of scaling that is not known, or a number that makes no sense.
pub fn rotary(config: &mut ConfigReader, head_dim: usize, keys: RopeKeys) -> Result<Rotary, ModelError> {
    let mut fraction = config.positive(keys.fraction)?;
    let mut theta = config.positive(keys.theta)?;
    let mut scale = RotaryScaling::None;
    if let Some(mut old) = config.object("rope_scaling")? {
        scale = scaling(&mut old)?;
        old.finish()?;
    }
    if let Some(mut new) = config.object("rope_parameters")? {
        scale = scaling(&mut new)?;
        fraction = new.positive("partial_rotary_factor")?.or(fraction);
        theta = new.positive("rope_theta")?.or(theta);
        new.finish()?;
    }
    let dims = (head_dim as f64 * fraction.unwrap_or(keys.default_fraction)) as usize;
    if dims == 0 || !dims.is_multiple_of(2) || dims > head_dim {
        let reason = format!("{dims} of {head_dim} elements of a head would turn; that must be even and at least 2");
        return Err(config.fault(keys.fraction, reason));
    }
    Ok(Rotary { dims, theta: theta.unwrap_or(10_000.0), scaling: scale })
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
