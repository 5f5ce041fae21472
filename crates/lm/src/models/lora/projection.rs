//! The projections of a layer that an adapter may change.

use crate::models::arch::Arch;
use strum::{EnumCount, IntoStaticStr, VariantArray};

/// A projection of a decoder's layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumCount, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum LayerProjection {
    /// Queries, keys and values together.
    Qkv,
    /// The output of attention.
    AttentionOut,
    /// Into the MLP; the gate first, if there is one.
    MlpUp,
    /// Out of the MLP.
    MlpDown,
}

impl LayerProjection {
    /// `[out, in]`
    pub fn shape(self, arch: &Arch) -> [usize; 2] {
        let sizes = arch.sizes;
        match self {
            Self::Qkv => [arch.qkv_width(), sizes.hidden],
            Self::AttentionOut => [sizes.hidden, sizes.queries()],
            Self::MlpUp => [arch.mlp_up_width(), sizes.hidden],
            Self::MlpDown => [sizes.hidden, sizes.inner],
        }
    }

    /// The canonical name of its weights in a layer.
    pub fn weight(self, layer: usize) -> String {
        let name: &str = self.into();
        format!("layers.{layer}.{name}.weight")
    }
}
