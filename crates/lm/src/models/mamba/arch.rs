//! The architecture of a Mamba model as plain data.

use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use kernels::scan::{ScanShape, TimeStep};
use serde_json::Value;

/// A model of either generation, as read from `config.json`. It has no context limit.
#[derive(Clone, Debug, PartialEq)]
pub struct MambaArch {
    /// Outputs of the head, padding rows included.
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub layers: usize,
    /// Channels of a mixer, d_inner.
    pub intermediate_size: usize,
    /// States per channel.
    pub state_size: usize,
    /// Tokens that the convolution covers, the current one included.
    pub conv_kernel: usize,
    /// Epsilon of every RMS norm.
    pub norm_eps: f64,
    /// True if the projections into and out of the mixer have a bias.
    pub projection_bias: bool,
    pub conv_bias: bool,
    /// True if the head uses the weights of the embedding.
    pub tied_head: bool,
    pub generation: Generation,
}

/// The differences between the two generations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Generation {
    /// Gu and Dao 2023: time steps (through a bottleneck), b and c are projected from the convolved channels.
    Mamba { time_step_rank: usize },
    /// Dao and Gu 2024: everything comes from one projection, b and c are convolved as well, heads share a time step
    /// and a rate of decay, and the gated output is normalised group by group.
    Mamba2 {
        heads: usize,
        head_dim: usize,
        groups: usize,
        /// Bounds on the time step after softplus.
        time_step_limit: (f64, f64),
    },
}

impl MambaArch {
    /// Columns that are convolved.
    pub fn conv_channels(&self) -> usize {
        match self.generation {
            Generation::Mamba { .. } => self.intermediate_size,
            Generation::Mamba2 { groups, .. } => self.intermediate_size + 2 * groups * self.state_size,
        }
    }

    /// Width of the projection into the mixer. Mamba: channels, gate. Mamba-2: gate, channels with b and c, time steps.
    pub fn in_width(&self) -> usize {
        match self.generation {
            Generation::Mamba { .. } => 2 * self.intermediate_size,
            Generation::Mamba2 { heads, .. } => self.intermediate_size + self.conv_channels() + heads,
        }
    }

    /// The shape of every layer's scan; Mamba is the case of a single head with a time step per channel.
    pub fn scan_shape(&self) -> ScanShape {
        let states = self.state_size;
        match self.generation {
            Generation::Mamba { .. } => {
                let (head_dim, time_step) = (self.intermediate_size, TimeStep::PerChannel);
                ScanShape { heads: 1, head_dim, groups: 1, states, time_step }
            }
            Generation::Mamba2 { heads, head_dim, groups, .. } => {
                ScanShape { heads, head_dim, groups, states, time_step: TimeStep::PerHead }
            }
        }
    }

    /// Bounds on the time step after softplus.
    pub fn time_step_limit(&self) -> (f64, f64) {
        match self.generation {
            Generation::Mamba { .. } => (0.0, f64::INFINITY),
            Generation::Mamba2 { time_step_limit, .. } => time_step_limit,
        }
    }
}

/// Keys that do not affect scores: initial values of weights, and ways to compute the same numbers. `norm_before_gate`
/// is in files of Mamba-2 and is read by no version of transformers' forward pass.
const INERT: &[&str] = &[
    "chunk_size",
    "fused_add_norm",
    "norm_before_gate",
    "pad_vocab_size_multiple",
    "rescale_prenorm_residual",
    // All arithmetic here is in f32.
    "residual_in_fp32",
    "time_step_floor",
    "time_step_init_scheme",
    "time_step_max",
    "time_step_min",
    "time_step_scale",
    "use_associative_scan",
    "use_mambapy",
];

/// More than any model has; sums of a few such sizes cannot overflow.
const MOST_CHANNELS: usize = 1 << 31;

/// Reads a configuration of `model_type` `mamba`.
pub fn mamba(config: &mut ConfigReader) -> Result<MambaArch, ModelError> {
    let hidden_size = same(config, &["hidden_size", "d_model"])?;
    let time_step_rank = match config.get("time_step_rank") {
        None => hidden_size.div_ceil(16),
        Some(Value::String(auto)) if auto == "auto" => hidden_size.div_ceil(16),
        Some(_) => config.count("time_step_rank")?,
    };
    common(config, hidden_size, Generation::Mamba { time_step_rank }, true)
}

/// Reads a configuration of `model_type` `mamba2`.
pub fn mamba2(config: &mut ConfigReader) -> Result<MambaArch, ModelError> {
    let hidden_size = same(config, &["hidden_size", "d_model"])?;
    let (heads, head_dim) = (config.count_or("num_heads", 128)?, config.count_or("head_dim", 64)?);
    let groups = config.count_or("n_groups", 8)?;
    if !heads.is_multiple_of(groups) {
        return Err(config.error("n_groups", format!("{groups} does not divide num_heads {heads}")));
    }
    // Left over from Mamba; there is no such projection.
    config.get("time_step_rank");
    let time_step_limit = time_step_limit(config)?;
    let generation = Generation::Mamba2 { heads, head_dim, groups, time_step_limit };
    let arch = common(config, hidden_size, generation, false)?;
    if heads.checked_mul(head_dim) != Some(arch.intermediate_size) {
        let reason =
            format!("{heads} heads of {head_dim} do not equal expand * hidden_size = {}", arch.intermediate_size);
        return Err(config.error("num_heads", reason));
    }
    if groups.checked_mul(arch.state_size).is_none_or(|width| width > MOST_CHANNELS) {
        return Err(config.error(
            "state_size",
            format!("{} * n_groups {groups} exceeds the maximum of {MOST_CHANNELS}", arch.state_size),
        ));
    }
    Ok(arch)
}

fn common(
    config: &mut ConfigReader,
    hidden_size: usize,
    generation: Generation,
    tied: bool,
) -> Result<MambaArch, ModelError> {
    refuse_unsupported(config)?;
    let state_size = config.count_or("state_size", if tied { 16 } else { 128 })?;
    let (conv_kernel, expand) = (config.count_or("conv_kernel", 4)?, config.count_or("expand", 2)?);
    if let Some(mut ssm) = config.object("ssm_cfg")? {
        // The authors' own options; only those that repeat the values above are known to change nothing.
        for (key, expected) in [("d_state", state_size), ("d_conv", conv_kernel), ("expand", expand)] {
            agree(&mut ssm, key, expected)?;
        }
        ssm.finish()?;
    }
    let intermediate_size =
        hidden_size.checked_mul(expand).filter(|&channels| channels <= MOST_CHANNELS).ok_or_else(|| {
            config
                .error("expand", format!("{expand} * hidden_size {hidden_size} exceeds the maximum of {MOST_CHANNELS}"))
        })?;
    agree(config, "intermediate_size", intermediate_size)?;
    agree(config, "d_inner", intermediate_size)?;
    Ok(MambaArch {
        vocab_size: config.count("vocab_size")?,
        hidden_size,
        layers: same(config, &["num_hidden_layers", "n_layer"])?,
        intermediate_size,
        state_size,
        conv_kernel,
        norm_eps: config.positive("layer_norm_epsilon")?.unwrap_or(1e-5),
        projection_bias: config.flag_or("use_bias", false)?,
        conv_bias: config.flag_or("use_conv_bias", true)?,
        tied_head: config.flag_or("tie_word_embeddings", tied)?,
        generation,
    })
}

/// Refuses values of keys that would change the mathematics.
fn refuse_unsupported(config: &mut ConfigReader) -> Result<(), ModelError> {
    for key in INERT {
        config.get(key);
    }
    let act = config.text_or("hidden_act", "silu")?;
    if !matches!(act, "silu" | "swish") {
        return Err(config.error("hidden_act", format!("`{act}` is not supported; supported: silu")));
    }
    if !config.flag_or("rms_norm", true)? {
        return Err(config.error("rms_norm", "only true is supported"));
    }
    Ok(())
}

/// Reads a number that has two names; if both are present, they must agree.
fn same(config: &mut ConfigReader, [name, other]: &[&'static str; 2]) -> Result<usize, ModelError> {
    let count = config.count(name)?;
    agree(config, other, count)?;
    Ok(count)
}

/// Refuses a key that is present and contradicts the value of other keys.
fn agree(config: &mut ConfigReader, key: &'static str, expected: usize) -> Result<(), ModelError> {
    let value = config.count_or(key, expected)?;
    if value != expected {
        return Err(config.error(key, format!("{value}, but other keys imply {expected}")));
    }
    Ok(())
}

/// Reads the minimum and maximum time step; the maximum is usually infinite.
fn time_step_limit(config: &mut ConfigReader) -> Result<(f64, f64), ModelError> {
    let Some(value) = config.get("time_step_limit") else { return Ok((0.0, f64::INFINITY)) };
    let limits: Option<Vec<f64>> = value.as_array().and_then(|limits| limits.iter().map(number).collect());
    match limits.as_deref() {
        Some(&[least, most]) if 0.0 <= least && least <= most => Ok((least, most)),
        _ => {
            Err(config
                .error("time_step_limit", format!("expected two numbers, 0 <= minimum <= maximum, found {value}")))
        }
    }
}

/// A number, or an infinity in the form that [`crate::models::config_reader::standard_json`] produces.
fn number(value: &Value) -> Option<f64> {
    match value.get("__float__") {
        Some(word) => (word == "Infinity").then_some(f64::INFINITY),
        None => value.as_f64(),
    }
}
