//! The architecture of a Mamba model as plain data.

use kernels::scan::{ScanShape, TimeStep};

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
