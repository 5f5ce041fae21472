//! The types of elements that kernels read and write.

use half::{bf16, f16};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Element {
    F32,
    F16,
    Bf16,
}

impl Element {
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    pub fn bytes(self, values: &[f32]) -> Vec<u8> {
        let one = |&x: &f32| -> Vec<u8> {
            match self {
                Self::F32 => x.to_ne_bytes().into(),
                Self::F16 => f16::from_f32(x).to_ne_bytes().into(),
                Self::Bf16 => bf16::from_f32(x).to_ne_bytes().into(),
            }
        };
        values.iter().flat_map(one).collect()
    }

    pub fn rounded(self, x: f32) -> f32 {
        match self {
            Self::F32 => x,
            Self::F16 => f16::from_f32(x).to_f32(),
            Self::Bf16 => bf16::from_f32(x).to_f32(),
        }
    }

    /// The largest relative error of rounding to the type.
    pub fn unit(self) -> f64 {
        match self {
            Self::F32 => 2f64.powi(-24),
            Self::F16 => 2f64.powi(-11),
            Self::Bf16 => 2f64.powi(-8),
        }
    }
}
