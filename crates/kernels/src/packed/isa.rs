//! The kinds of products, and the instructions that they run on.

use crate::simd::Level;
#[cfg(target_arch = "x86_64")]
use crate::tile_registers;
use strum::VariantArray;

/// Precision of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Products {
    /// As exact as sums in f32, with the weights unchanged.
    F32,
    /// Of activations and weights rounded to bf16, summed in f32.
    Bf16,
}

/// The instruction set that a product runs on, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Isa {
    /// No special instructions: the reference definition of AVX2 and AVX-512, too slow for anything but tests.
    Scalar,
    /// No special instructions: the reference definition of AMX, too slow for anything but tests, and compiled for them only.
    AmxEmulated,
    /// AVX2 with FMA, for weights in blocks only: packing others does not pay off.
    Avx2,
    /// AVX-512, and AVX512-BF16 for [`Products::Bf16`].
    Avx512,
    /// Tile registers.
    Amx,
}

impl Isa {
    /// The fastest one that this machine has within a level; `None` if packing does not pay off.
    pub fn best(products: Products, level: Level) -> Option<Self> {
        let candidates = [(Self::Amx, Level::Amx), (Self::Avx512, Level::Avx512)];
        candidates.into_iter().find(|(isa, least)| level >= *least && isa.runs(products)).map(|(isa, _)| isa)
    }

    /// The fastest one for weights in blocks that this machine has within a level; `None` if converting them to f32 when they
    /// are loaded pays off more than keeping them.
    pub fn best_for_blocks(level: Level) -> Option<Self> {
        let candidates = [(Self::Avx512, Level::Avx512), (Self::Avx2, Level::Avx2)];
        candidates.into_iter().find(|(isa, least)| level >= *least && isa.runs_blocks()).map(|(isa, _)| isa)
    }

    /// Those that this machine has, slowest first.
    pub fn available(products: Products) -> Vec<Self> {
        Self::VARIANTS.iter().copied().filter(|isa| isa.runs(products)).collect()
    }

    /// Those that this machine has and that give the same bits, each group beginning with the definition.
    pub fn groups(products: Products) -> Vec<Vec<Self>> {
        let available = Self::available(products);
        let group = |tiled| available.iter().copied().filter(|isa| isa.is_tiled() == tiled).collect();
        [false, true].map(group).into_iter().filter(|isas: &Vec<Self>| !isas.is_empty()).collect()
    }

    /// Returns true if products are computed from tiles of bf16 terms.
    pub fn is_tiled(self) -> bool {
        matches!(self, Self::Amx | Self::AmxEmulated)
    }

    /// Returns true if this machine has the instructions and they multiply weights in blocks; tiles do not.
    pub fn runs_blocks(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            _ => !self.is_tiled() && self.runs(Products::F32),
        }
    }

    /// Returns true if this machine has the instructions and they multiply packed weights.
    pub fn runs(self, products: Products) -> bool {
        match (self, products) {
            (Self::AmxEmulated, _) => cfg!(any(test, feature = "emulated-tiles")),
            (Self::Scalar, _) => true,
            (Self::Avx2, _) => false,
            #[cfg(target_arch = "x86_64")]
            (Self::Amx, _) => tile_registers::are_available(),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, Products::F32) => is_x86_feature_detected!("avx512f"),
            #[cfg(target_arch = "x86_64")]
            (Self::Avx512, Products::Bf16) => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bf16")
            }
            #[cfg(not(target_arch = "x86_64"))]
            (Self::Avx512 | Self::Amx, _) => false,
        }
    }
}
