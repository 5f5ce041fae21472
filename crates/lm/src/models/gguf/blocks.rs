//! The types of quantised tensors that the kernels do not multiply by: blocks of consecutive elements of a row, each with scales
//! of its own. The others are those of [`BlockFormat`](kernels::packed::BlockFormat).
//!
//! A dequantised element is computed in f32 in the order of operations of ggml and of Python's `gguf` (scale times
//! sub-scale, times the stored integer, then plus or minus the offset), so it has the same bits.

use half::f16;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Elements of a block of the K types and of IQ4_XS.
const SUPER: usize = 256;

/// Elements of a block of the other types.
const SMALL: usize = 32;

/// The type of such a tensor, by its name in ggml.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumString, IntoStaticStr, VariantArray)]
pub enum BlockType {
    #[strum(serialize = "Q4_0")]
    Q40,
    #[strum(serialize = "Q4_1")]
    Q41,
    #[strum(serialize = "Q5_0")]
    Q50,
    #[strum(serialize = "Q5_1")]
    Q51,
    #[strum(serialize = "Q2_K")]
    Q2K,
    #[strum(serialize = "Q3_K")]
    Q3K,
    #[strum(serialize = "IQ4_NL")]
    Iq4Nl,
    #[strum(serialize = "IQ4_XS")]
    Iq4Xs,
}

impl BlockType {
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Elements of a block.
    pub fn elements(self) -> usize {
        match self {
            Self::Q40 | Self::Q41 | Self::Q50 | Self::Q51 | Self::Iq4Nl => SMALL,
            Self::Q2K | Self::Q3K | Self::Iq4Xs => SUPER,
        }
    }

    /// Bytes of a block.
    pub fn bytes(self) -> usize {
        match self {
            Self::Q40 | Self::Iq4Nl => 18,
            Self::Q41 => 20,
            Self::Q50 => 22,
            Self::Q51 => 24,
            Self::Q2K => 84,
            Self::Q3K => 110,
            Self::Iq4Xs => 136,
        }
    }

    /// Writes the elements of whole blocks; `out` has [`BlockType::elements`] for each of them.
    pub fn dequantise(self, blocks: &[u8], out: &mut [f32]) {
        match self {
            Self::Q40 => each(blocks, out, q4_0),
            Self::Q41 => each(blocks, out, q4_1),
            Self::Q50 => each(blocks, out, q5_0),
            Self::Q51 => each(blocks, out, q5_1),
            Self::Q2K => each(blocks, out, q2_k),
            Self::Q3K => each(blocks, out, q3_k),
            Self::Iq4Nl => each(blocks, out, iq4_nl),
            Self::Iq4Xs => each(blocks, out, iq4_xs),
        }
    }
}

fn each<const B: usize, const N: usize>(blocks: &[u8], out: &mut [f32], one: fn(&[u8; B], &mut [f32; N])) {
    out.as_chunks_mut().0.iter_mut().zip(blocks.as_chunks().0).for_each(|(out, block)| one(block, out));
}

/// The number in half precision that begins at a byte.
fn half(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// The integers of two halves of a block that share bytes: the low nibbles, then the high ones.
fn nibbles(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let low = bytes.iter().map(|byte| byte & 15);
    low.chain(bytes.iter().map(|byte| byte >> 4))
}

fn q4_0(block: &[u8; 18], out: &mut [f32; SMALL]) {
    let scale = half(block, 0);
    out.iter_mut().zip(nibbles(&block[2..])).for_each(|(out, q)| *out = scale * f32::from(q as i8 - 8));
}

fn q4_1(block: &[u8; 20], out: &mut [f32; SMALL]) {
    let (scale, offset) = (half(block, 0), half(block, 2));
    out.iter_mut().zip(nibbles(&block[4..])).for_each(|(out, q)| *out = scale * f32::from(q) + offset);
}

/// The integers of five bits: nibbles with a fifth bit each, in the four bytes before them.
fn five_bits(bits: &[u8]) -> impl Iterator<Item = u8> {
    nibbles(&bits[4..]).enumerate().map(|(i, q)| q | (bits[i / 8] >> (i % 8) & 1) << 4)
}

fn q5_0(block: &[u8; 22], out: &mut [f32; SMALL]) {
    let scale = half(block, 0);
    out.iter_mut().zip(five_bits(&block[2..])).for_each(|(out, q)| *out = scale * f32::from(q as i8 - 16));
}

fn q5_1(block: &[u8; 24], out: &mut [f32; SMALL]) {
    let (scale, offset) = (half(block, 0), half(block, 2));
    out.iter_mut().zip(five_bits(&block[4..])).for_each(|(out, q)| *out = scale * f32::from(q) + offset);
}

/// Sixteen parts of 16 elements, each with four bits of scale and four of offset.
fn q2_k(block: &[u8; 84], out: &mut [f32; SUPER]) {
    let (scale, offset) = (half(block, 80), half(block, 82));
    for (part, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let factors = block[part];
        let (scale, offset) = (scale * f32::from(factors & 15), offset * f32::from(factors >> 4));
        let quants = &block[16 + two_bits_at(part)..];
        out.iter_mut()
            .zip(quants)
            .for_each(|(out, q)| *out = scale * f32::from(q >> two_bits_shift(part) & 3) - offset);
    }
}

/// Where the bytes with the two bits of the sixteen elements of a part begin: the four groups of 32 elements of each half of
/// a block share 32 bytes.
fn two_bits_at(part: usize) -> usize {
    part / 8 * 32 + part % 2 * 16
}

fn two_bits_shift(part: usize) -> usize {
    part % 8 / 2 * 2
}

/// Sixteen parts of 16 elements with scales of six bits. Where the third bit of an element is clear, four is subtracted.
fn q3_k(block: &[u8; 110], out: &mut [f32; SUPER]) {
    let (high, quants, factors, scale) = (&block[..32], &block[32..96], &block[96..108], half(block, 108));
    for (part, out) in out.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let low_bits = factors[part % 8] >> (part / 8 * 4) & 15;
        let high_bits = factors[8 + part % 4] >> (part / 4 * 2) & 3;
        let scale = scale * f32::from((low_bits | high_bits << 4) as i8 - 32);
        let (quants, high) = (&quants[two_bits_at(part)..], &high[part % 2 * 16..]);
        for (out, (q, high)) in out.iter_mut().zip(quants.iter().zip(high)) {
            let low = (q >> two_bits_shift(part) & 3) as i8;
            let is_set = high >> (part / 2) & 1 == 1;
            *out = scale * f32::from(if is_set { low } else { low - 4 });
        }
    }
}

/// The values that the integers of the IQ4 types stand for.
const IQ4: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

fn iq4_nl(block: &[u8; 18], out: &mut [f32; SMALL]) {
    let scale = half(block, 0);
    out.iter_mut().zip(nibbles(&block[2..])).for_each(|(out, q)| *out = scale * f32::from(IQ4[usize::from(q)]));
}

/// Eight parts of 32 elements with scales of six bits: two of each in bytes 2 and 3, four in bytes 4 to 7.
fn iq4_xs(block: &[u8; 136], out: &mut [f32; SUPER]) {
    let scale = half(block, 0);
    for (part, out) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let high_bits = block[2 + part / 4] >> (part % 4 * 2) & 3;
        let low_bits = block[4 + part / 2] >> (part % 2 * 4) & 15;
        let scale = scale * f32::from((low_bits | high_bits << 4) as i8 - 32);
        let quants = nibbles(&block[8 + part * 16..][..16]);
        out.iter_mut().zip(quants).for_each(|(out, q)| *out = scale * f32::from(IQ4[usize::from(q)]));
    }
}
