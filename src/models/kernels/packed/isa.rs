//! The kinds of products, and the instructions that they run on.

use crate::models::kernels::simd::Level;
use strum::VariantArray;

/// How products are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// In f32, with the weights unchanged.
    F32,
    /// Of activations and weights rounded to bf16, summed in f32.
    Bf16,
}

/// The instruction set that a product runs on, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Isa {
    /// No special instructions: the reference definition, too slow for anything but tests.
    Scalar,
    /// AVX-512, and AVX512-BF16 for [`Products::Bf16`].
    Avx512,
}

impl Isa {
    /// The fastest one that this machine has within a level; `None` if packing does not pay off.
    pub fn best(products: Products, level: Level) -> Option<Self> {
        (level >= Level::Avx512 && Self::Avx512.runs(products)).then_some(Self::Avx512)
    }

    /// Those that this machine has, slowest first.
    pub fn available(products: Products) -> Vec<Self> {
        Self::VARIANTS.iter().copied().filter(|isa| isa.runs(products)).collect()
    }

    /// Whether this machine has the instructions.
    pub fn runs(self, products: Products) -> bool {
        match (self, products) {
            (Self::Scalar, _) => true,
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, Products::F32) => is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, Products::Bf16) => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16")
            }
            #[cfg(not(target_arch = "x86_64"))]
            (Self::Avx512, _) => false,
        }
    }
}
