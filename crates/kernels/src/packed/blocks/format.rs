//! The formats of blocks, and how each becomes f32: loops over the columns of a panel, which the compiler vectorises.
//!
//! A line `[u8; N]` holds one byte of a block for each of N columns, and a step `[f32; N]` their weights at a step of k.

use crate::packed::panels::COLUMNS;
use crate::simd::vectorised;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Formats of blocks of weights, as GGML defines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumString, IntoStaticStr, VariantArray)]
pub enum BlockFormat {
    /// 32 weights in 34 bytes: `d q` of a scale d in f16 and q in i8.
    #[strum(serialize = "Q8_0")]
    Q8_0,
    /// 256 weights in 144 bytes: `d s q - dmin m` of d and dmin in f16, and for every 32 weights s and m of 6 bits, and q
    /// of 4 bits.
    #[strum(serialize = "Q4_K")]
    Q4K,
    /// 256 weights in 176 bytes: as Q4_K, with q of 5 bits.
    #[strum(serialize = "Q5_K")]
    Q5K,
    /// 256 weights in 210 bytes: `d s (q - 32)` of d in f16, and for every 16 weights s in i8, and q of 6 bits.
    #[strum(serialize = "Q6_K")]
    Q6K,
}

impl BlockFormat {
    /// The name in GGML.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Weights of a block.
    pub const fn weights(self) -> usize {
        match self {
            Self::Q8_0 => 32,
            Self::Q4K | Self::Q5K | Self::Q6K => 256,
        }
    }

    /// Bytes of a block.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Q8_0 => 2 + 32,
            Self::Q4K => 2 + 2 + 12 + 128,
            Self::Q5K => 2 + 2 + 12 + 32 + 128,
            Self::Q6K => 128 + 64 + 16 + 2,
        }
    }

    /// Bytes of weights `[n, k]` once packed; with the largest number if they are more.
    pub fn packed_bytes(self, [n, k]: [usize; 2]) -> usize {
        let blocks = n.div_ceil(COLUMNS).saturating_mul(k.div_ceil(self.weights()));
        blocks.saturating_mul(self.bytes()).saturating_mul(COLUMNS)
    }

    /// Where the scales in f16 begin in a block.
    pub(super) const fn scales(self) -> &'static [usize] {
        match self {
            Self::Q8_0 => &[0],
            Self::Q4K | Self::Q5K => &[0, 2],
            Self::Q6K => &[208],
        }
    }

    /// Writes the weights of whole blocks of one column; `out` has [`BlockFormat::weights`] for each of them.
    pub fn dequantise_column(self, blocks: &[u8], out: &mut [f32]) {
        let (blocks, steps) = (blocks.as_chunks::<1>().0, out.as_chunks_mut().0);
        vectorised!(self.dequantise(blocks, steps));
    }

    /// Writes the weights of the blocks of some columns.
    #[inline(always)]
    pub(super) fn dequantise<const N: usize>(self, blocks: &[[u8; N]], steps: &mut [[f32; N]]) {
        for block in 0..(blocks.len() / self.bytes()).min(steps.len() / self.weights()) {
            let lines = &blocks[block * self.bytes()..(block + 1) * self.bytes()];
            let steps = &mut steps[block * self.weights()..(block + 1) * self.weights()];
            match self {
                Self::Q8_0 => dequantise_q8(lines, steps),
                Self::Q4K => dequantise_with_minima(lines, steps, None, &lines[16..144]),
                Self::Q5K => dequantise_with_minima(lines, steps, Some(&lines[16..48]), &lines[48..176]),
                Self::Q6K => dequantise_q6(lines, steps),
            }
        }
    }
}

#[inline(always)]
fn dequantise_q8<const N: usize>(block: &[[u8; N]], steps: &mut [[f32; N]]) {
    let scale = halves(&block[0], &block[1]);
    for (quants, weights) in block[2..].iter().zip(steps) {
        for column in 0..N {
            weights[column] = f32::from(quants[column] as i8) * scale[column];
        }
    }
}

/// Q4_K, and Q5_K with fifth bits.
#[inline(always)]
fn dequantise_with_minima<const N: usize>(
    block: &[[u8; N]],
    steps: &mut [[f32; N]],
    fifth: Option<&[[u8; N]]>,
    quants: &[[u8; N]],
) {
    let (d, d_min) = (halves(&block[0], &block[1]), halves(&block[2], &block[3]));
    for part in 0..8 {
        let [scale, min] = six_bits(&block[4..16], part);
        let scale: [f32; N] = each_column(|column| d[column] * f32::from(scale[column]));
        let min: [f32; N] = each_column(|column| d_min[column] * f32::from(min[column]));
        // Two parts share 32 bytes, the first in their lower halves; all of them share those of fifth bits.
        let (quants, steps) = (&quants[part / 2 * 32..][..32], &mut steps[part * 32..][..32]);
        let lower = |quant: u8| u32::from(quant) >> (part % 2 * 4) & 15;
        let weight = |column: usize, quant: u32| scale[column] * quant as i32 as f32 - min[column];
        let Some(fifth) = fifth else {
            for (weights, quants) in steps.iter_mut().zip(quants) {
                *weights = each_column(|column| weight(column, lower(quants[column])));
            }
            continue;
        };
        for ((weights, quants), fifth) in steps.iter_mut().zip(quants).zip(fifth) {
            let upper = |fifth: u8| (u32::from(fifth) >> part & 1) << 4;
            *weights = each_column(|column| weight(column, lower(quants[column]) | upper(fifth[column])));
        }
    }
}

#[inline(always)]
fn dequantise_q6<const N: usize>(block: &[[u8; N]], steps: &mut [[f32; N]]) {
    let d = halves(&block[208], &block[209]);
    for part in 0..16 {
        let scale = &block[192 + part];
        let scale: [f32; N] = each_column(|column| d[column] * f32::from(scale[column] as i8));
        // The lower 4 bits of 128 weights share 64 bytes, and the upper 2 bits 32.
        let (half, first) = (part / 8, 16 * part);
        let (low_shift, high_shift) = (part / 4 % 2 * 4, part / 2 % 4 * 2);
        let low = &block[64 * half + first % 64..][..16];
        let high = &block[128 + 32 * half + first % 32..][..16];
        for ((weights, low), high) in steps[first..][..16].iter_mut().zip(low).zip(high) {
            *weights = each_column(|column| {
                let (low, high) = (u32::from(low[column]), u32::from(high[column]));
                let quant = (low >> low_shift & 15 | (high >> high_shift & 3) << 4) as i32 - 32;
                scale[column] * quant as f32
            });
        }
    }
}

/// The scale and the minimum of one of eight parts. Those of the first four are the lower 6 bits of the first eight bytes;
/// those of the others have their lower 4 bits in the last four bytes, and the upper 2 in the first eight.
#[inline(always)]
fn six_bits<const N: usize>(lines: &[[u8; N]], part: usize) -> [[u8; N]; 2] {
    if part < 4 {
        let (scale, min) = (&lines[part], &lines[part + 4]);
        return [each_column(|column| scale[column] & 63), each_column(|column| min[column] & 63)];
    }
    let (low, scale, min) = (&lines[part + 4], &lines[part - 4], &lines[part]);
    [
        each_column(|column| low[column] & 15 | scale[column] >> 6 << 4),
        each_column(|column| low[column] >> 4 | min[column] >> 6 << 4),
    ]
}

/// f16 of their lower and upper bytes.
#[inline(always)]
fn halves<const N: usize>(low: &[u8; N], high: &[u8; N]) -> [f32; N] {
    each_column(|column| widened(u32::from(low[column]) | u32::from(high[column]) << 8))
}

/// `std::array::from_fn`, always inlined.
#[inline(always)]
fn each_column<T: Copy + Default, const N: usize>(value: impl Fn(usize) -> T) -> [T; N] {
    let mut columns = [T::default(); N];
    for (column, place) in columns.iter_mut().enumerate() {
        *place = value(column);
    }
    columns
}

/// The number of an f16, like `half` but in a form that the compiler vectorises. A NaN may be a signalling one.
#[inline(always)]
fn widened(bits: u32) -> f32 {
    const SUBNORMAL: f32 = 1.0 / (1 << 24) as f32;
    let (sign, magnitude) = ((bits & 0x8000) << 16, bits & 0x7fff);
    let normal = (magnitude << 13) + (112 << 23);
    let normal = if magnitude < 0x7c00 { normal } else { normal | 0x7f80_0000 };
    let bits = if magnitude < 0x400 { (magnitude as f32 * SUBNORMAL).to_bits() } else { normal };
    f32::from_bits(bits | sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    #[test]
    fn every_f16_is_widened_as_half_does() {
        for half in (0..=u16::MAX).map(f16::from_bits) {
            let widened = widened(half.to_bits().into());
            assert!(widened.to_bits() == half.to_f32().to_bits() || widened.is_nan() && half.is_nan(), "{half}");
        }
    }
}
