//! The programs compiled for a GPU: sources, and the numbers that are fixed at compile time. Plain data and part of
//! every build, so that the sources can be run and checked on a machine without a GPU.

use crate::activation::Activation;
use crate::math::EXP_MIN;
use crate::norm::NormKind;
use crate::scan::{ScanShape, TimeStep};
use crate::sigmoid::LN_1P_TERMS;
use std::ops::Range;

/// Functions that need an instruction of the GPU.
pub const INTRINSICS: &str = include_str!("../cuda/intrinsics.cu");
/// The same, with those for products of matrices.
const MATRIX_INTRINSICS: &str =
    concat!(include_str!("../cuda/intrinsics.cu"), include_str!("../cuda/matrix_intrinsics.cu"));

/// Threads per block of the statistics and of the convolution.
pub const THREADS: usize = 256;
/// Numbers per row that the statistics kernel returns: maximum, weight, mean (of distances from the maximum), squares,
/// target logit.
pub const ROW_NUMBERS: usize = 5;
/// Rows of at least this length get a block each; shorter ones get a warp each.
const LONG_ROW: usize = 4096;
const WARP: usize = 32;

/// Threads per block of a norm.
const NORM_THREADS: usize = 512;
/// Elements of a row that a thread of a norm keeps in registers.
const NORM_HELD: usize = 16;
/// Elements that kernels read at once where rows are whole vectors of them.
const VECTOR: usize = 8;
/// Elements that a thread of an activation or a rotation has at a time.
const AT_ONCE: usize = 16;
/// The largest heads that attention has tiles for.
const MOST_HEAD_DIM: usize = 256;

/// Threads per block of the scan.
const SCAN_THREADS: usize = 128;
/// States of a channel that a thread keeps, unless that takes more lanes than a warp has.
const STATES_OF_LANE: usize = 8;
/// With more states, a thread would run out of registers.
const MOST_STATES: usize = 512;
/// Shared memory per block of the scan, in f32: 32 KiB, so that several blocks fit on a multiprocessor.
const SCAN_SHARED: usize = 8192;
/// Maximum number of tokens that a block of the scan processes at a time.
const MOST_STEPS: usize = 32;

/// A source with the values of its macros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub name: String,
    /// Functions that need an instruction of the GPU, [`INTRINSICS`] and what else the source calls.
    pub intrinsics: &'static str,
    /// CUDA C++, to be appended to the intrinsics.
    pub source: &'static str,
    /// Macros and their values.
    pub defines: Vec<(&'static str, String)>,
    /// Bytes of shared memory that a launch asks for, beside what the source declares.
    pub shared_bytes: usize,
}

impl Program {
    fn new(name: String, source: &'static str, numbers: &[(&'static str, usize)]) -> Self {
        let mut defines = vec![("EXP_MIN", format!("{EXP_MIN:?}f")), ("LN_1P_TERMS", LN_1P_TERMS.to_string())];
        defines.extend(numbers.iter().map(|(name, value)| (*name, value.to_string())));
        Self { name, intrinsics: INTRINSICS, source, defines, shared_bytes: 0 }
    }

    /// The definitions as compiler options.
    pub fn options(&self) -> Vec<String> {
        self.defines.iter().map(|(name, value)| format!("-D{name}={value}")).collect()
    }
}

/// The statistics of rows of logits, with kernel `row_statistics`.
pub fn row_statistics() -> Program {
    Program::new("row_statistics".into(), include_str!("../cuda/logit_stats.cu"), &[("THREADS", THREADS)])
}

/// Threads per row of `columns` columns, and rows per block of the statistics.
pub fn rows_per_block(columns: usize) -> (usize, usize) {
    let lanes = if columns < LONG_ROW { WARP } else { THREADS };
    (lanes, THREADS / lanes)
}

/// The convolution before a scan, with kernel `causal_conv`.
pub fn causal_conv() -> Program {
    let source = concat!(include_str!("../cuda/math.cu"), include_str!("../cuda/conv.cu"));
    Program::new("causal_conv".into(), source, &[("THREADS", THREADS)])
}

/// Norms of rows, with kernels `norm_FROM_TO` from one type to another: from f32 to each, and from each half type to
/// itself.
pub fn norm(kind: NormKind) -> Program {
    let source = concat!(
        include_str!("../cuda/elements.cu"),
        include_str!("../cuda/groups.cu"),
        include_str!("../cuda/norm.cu")
    );
    let rms = usize::from(kind == NormKind::Rms);
    Program::new(format!("norm_{rms}"), source, &[("RMS", rms), ("THREADS", NORM_THREADS), ("HELD", NORM_HELD)])
}

/// Threads per segment of `width` elements, and segments per block of a norm.
pub fn norm_blocks(width: usize) -> (usize, usize) {
    // Widths that are not a multiple of `VECTOR` are read element by element; a thread holds fewer elements.
    let held = if width.is_multiple_of(VECTOR) { NORM_HELD } else { 8 };
    let lanes = match width.div_ceil(held) {
        few @ 0..=WARP => few.next_power_of_two().max(8),
        many => many.next_multiple_of(WARP).min(NORM_THREADS),
    };
    (lanes, (128 / lanes).max(1))
}

/// Bias, activation and gate, with kernels `activate_{f32,f16,bf16}` and `gate_{f32,f16,bf16}`.
pub fn activation(activation: Option<Activation>) -> Program {
    let source = concat!(
        include_str!("../cuda/elements.cu"),
        include_str!("../cuda/groups.cu"),
        include_str!("../cuda/activation.cu")
    );
    let number = match activation {
        None => 0,
        Some(Activation::Gelu) => 1,
        Some(Activation::GeluTanh) => 2,
        Some(Activation::Relu) => 3,
        Some(Activation::Silu) => 4,
    };
    let numbers = [("ACTIVATION", number), ("THREADS", THREADS), ("AT_ONCE", AT_ONCE)];
    Program::new(format!("activation_{number}"), source, &numbers)
}

/// Threads per row, rows per block, and the blocks of the grid over rows and over columns, for activations of rows of
/// `width` elements.
pub fn row_blocks(rows: usize, width: usize) -> [usize; 4] {
    let items = width.div_ceil(AT_ONCE);
    let lanes = match items {
        few @ 0..=WARP => few.next_power_of_two(),
        many => many.div_ceil(many.div_ceil(THREADS)).next_multiple_of(WARP),
    };
    let per_block = THREADS / lanes;
    [lanes, per_block, rows.div_ceil(per_block), width.div_ceil(lanes * AT_ONCE)]
}

/// Bias and rotation of queries, keys and values, with kernels `rotate_{f32,f16,bf16}`.
pub fn rotation() -> Program {
    let source = concat!(
        include_str!("../cuda/elements.cu"),
        include_str!("../cuda/groups.cu"),
        include_str!("../cuda/rotate.cu")
    );
    Program::new("rotation".into(), source, &[("THREADS", THREADS)])
}

/// Threads per token of the rotation of rows of `width` elements.
pub fn rotation_threads(width: usize) -> usize {
    width.div_ceil(AT_ONCE).next_multiple_of(WARP).min(THREADS)
}

/// Division of attention into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionTiling {
    pub head_dim: usize,
    /// Queries per block.
    pub queries: usize,
    /// Keys per tile.
    pub keys: usize,
    /// Blocks that share a multiprocessor.
    pub blocks: usize,
}

impl AttentionTiling {
    /// The tiling for heads of a size, in a half type; `None` if there is no kernel for them.
    pub fn new(head_dim: usize) -> Option<Self> {
        if !head_dim.is_multiple_of(8) || !(8..=MOST_HEAD_DIM).contains(&head_dim) {
            return None;
        }
        // As many as fit without registers spilled to memory, by what ptxas says of compute capabilities 8.0 and 9.0.
        let (keys, blocks) = match head_dim {
            ..=64 => (64, 3),
            120 => (32, 2),
            72..=128 => (32, 3),
            240 | 248 => (16, 2),
            _ => (32, 2),
        };
        Some(Self { head_dim, queries: 64, keys, blocks })
    }

    /// Threads per block.
    pub fn threads(&self) -> usize {
        2 * self.queries
    }

    /// Bytes of dynamic shared memory per block: two tiles of keys and of values, whose rows have a vector more than
    /// whole steps of 16 elements.
    pub fn shared_bytes(&self) -> usize {
        4 * self.keys * (2 * self.head_dim.div_ceil(16) + 1) * 16
    }
}

/// Attention with a tiling, with kernels `attention_{f16,bf16}`.
pub fn attention(tiling: &AttentionTiling) -> Program {
    let source = concat!(include_str!("../cuda/elements.cu"), include_str!("../cuda/attention.cu"));
    let AttentionTiling { head_dim, queries, keys, blocks } = *tiling;
    let numbers = [("HEAD_DIM", head_dim), ("QUERIES", queries), ("KEYS", keys), ("BLOCKS", blocks)];
    Program {
        intrinsics: MATRIX_INTRINSICS,
        shared_bytes: tiling.shared_bytes(),
        ..Program::new(format!("attention_{head_dim}"), source, &numbers)
    }
}

/// Division of the scan into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanTiling {
    /// Threads per block.
    pub threads: usize,
    /// Threads that share the states of a channel.
    pub lanes: usize,
    /// States in each of these threads.
    pub per_lane: usize,
    /// Channels per thread.
    pub each: usize,
    /// Tokens per step.
    pub steps: usize,
}

impl ScanTiling {
    /// The tiling for scans of a shape; `None` if it has more states than the registers hold.
    pub fn for_shape(shape: &ScanShape) -> Option<Self> {
        if !(1..=MOST_STATES).contains(&shape.states) {
            return None;
        }
        let lanes = shape.states.div_ceil(STATES_OF_LANE).next_power_of_two().min(WARP);
        let per_lane = shape.states.div_ceil(lanes);
        let each = match shape.time_step {
            TimeStep::PerChannel => 1,
            // Channels with the same decay share their reads of b and c: the more states, the more that saves.
            TimeStep::PerHead => (shape.states / 32).next_power_of_two().clamp(1, 4),
        };
        let tiling = Self { threads: SCAN_THREADS, lanes, per_lane, each, steps: 0 };
        // x, y and a time step of every channel; b and c of every state.
        let per_token = 3 * tiling.channels() + 2 * lanes * per_lane;
        Some(Self { steps: (SCAN_SHARED / per_token).clamp(1, MOST_STEPS), ..tiling })
    }

    /// Channels per block.
    pub fn channels(&self) -> usize {
        self.threads / self.lanes * self.each
    }

    /// Blocks per sequence.
    pub fn blocks(&self, shape: &ScanShape) -> usize {
        shape.heads * shape.head_dim.div_ceil(self.channels())
    }
}

/// The scan of a shape, with kernel `selective_scan`.
pub fn selective_scan(shape: &ScanShape, tiling: &ScanTiling) -> Program {
    let per_head = usize::from(shape.time_step == TimeStep::PerHead);
    let ScanTiling { threads, lanes, per_lane, each, steps } = *tiling;
    let numbers = [
        ("STATES", shape.states),
        ("PER_HEAD", per_head),
        ("THREADS", threads),
        ("LANES", lanes),
        ("PER_LANE", per_lane),
        ("EACH", each),
        ("STEPS", steps),
    ];
    let source = concat!(include_str!("../cuda/math.cu"), include_str!("../cuda/scan.cu"));
    Program::new(format!("selective_scan_{}_{per_head}", shape.states), source, &numbers)
}

/// For each block of queries: the first row of its sequence, its own first row, and the row after the last of its
/// sequence. Those with most keys come first, so that none of them begins when the others are done.
pub fn query_blocks(sequences: &[Range<usize>], queries: usize) -> Vec<[usize; 3]> {
    let blocks = sequences.iter().flat_map(|s| s.clone().step_by(queries).map(|first| [s.start, first, s.end]));
    let mut blocks: Vec<_> = blocks.collect();
    blocks.sort_by_key(|[start, first, end]| std::cmp::Reverse((first + queries).min(*end) - start));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scan_fits_in_a_block() {
        for time_step in [TimeStep::PerChannel, TimeStep::PerHead] {
            for states in 1..=MOST_STATES {
                let shape = ScanShape { heads: 3, head_dim: 40, groups: 1, states, time_step };
                let tiling = ScanTiling::for_shape(&shape).unwrap();
                let held = tiling.lanes * tiling.per_lane;
                assert!(held >= states && held < states + tiling.lanes, "{tiling:?}");
                assert!(WARP.is_multiple_of(tiling.lanes) && tiling.per_lane * tiling.each <= 64, "{tiling:?}");
                // 48 KiB is the limit of a block that does not request more.
                let floats = tiling.steps * (3 * tiling.channels() + 2 * held);
                assert!(floats * 4 <= 48 << 10 && tiling.steps > 0, "{tiling:?}");
                assert!(tiling.blocks(&shape) * tiling.channels() >= shape.channels());
            }
            let shape = ScanShape { heads: 1, head_dim: 8, groups: 1, states: MOST_STATES + 1, time_step };
            assert_eq!(ScanTiling::for_shape(&shape), None);
        }
    }

    #[test]
    fn attention_fits_in_a_block_for_every_head() {
        let tilings = (0..=300).filter_map(AttentionTiling::new);
        let mut sizes = Vec::new();
        for tiling in tilings {
            // 99 KiB are what a block may ask for on the generations that have least.
            assert!(tiling.shared_bytes() <= 99 << 10, "{tiling:?}");
            // 163 KiB are what blocks share on a multiprocessor of compute capability 8.0.
            assert!(tiling.blocks * (tiling.shared_bytes() + 1024) <= 163 << 10, "{tiling:?}");
            assert!(tiling.queries.is_multiple_of(16) && tiling.keys.is_multiple_of(16), "{tiling:?}");
            // Results pass through the tiles.
            assert!(tiling.queries <= 4 * tiling.keys, "{tiling:?}");
            sizes.push(tiling.head_dim);
        }
        assert_eq!(sizes, (8..=256).step_by(8).collect::<Vec<_>>());
        assert_eq!(AttentionTiling::new(128).unwrap().shared_bytes(), 34_816);
    }

    #[test]
    fn blocks_of_steps_are_whole_warps_and_cover_every_row() {
        for width in [1, 5, 8, 50, 64, 100, 768, 4096, 5120, 16_384, 50_257] {
            let (lanes, per_block) = norm_blocks(width);
            let threads = lanes * per_block;
            assert!(threads.is_multiple_of(WARP) && threads <= NORM_THREADS && WARP.max(lanes) % lanes.min(WARP) == 0);
            for rows in [1, 3, 1000] {
                let [lanes, per_block, across, down] = row_blocks(rows, width);
                assert!(lanes * per_block <= THREADS && across * per_block >= rows && down * lanes * AT_ONCE >= width);
            }
            assert!(rotation_threads(width).is_multiple_of(WARP) && rotation_threads(width) <= THREADS);
        }
    }

    #[test]
    fn rows_of_a_block_are_whole_warps_that_fill_it() {
        for columns in [1, 31, 4095, 4096, 50_304] {
            let (lanes, rows) = rows_per_block(columns);
            assert_eq!((lanes % WARP, lanes * rows), (0, THREADS));
        }
        assert_eq!((rows_per_block(1024), rows_per_block(50_304)), ((32, 8), (256, 1)));
    }

    #[test]
    fn blocks_cover_every_query_once_and_the_longest_come_first() {
        let sequences = [0..5, 5..5, 5..6, 6..15];
        let blocks = query_blocks(&sequences, 4);
        assert_eq!(blocks, [[6, 14, 15], [6, 10, 15], [0, 4, 5], [0, 0, 5], [6, 6, 15], [5, 5, 6]]);
        let mut rows: Vec<usize> = blocks.iter().flat_map(|&[_, first, end]| first..(first + 4).min(end)).collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..15).collect::<Vec<_>>());
    }
}
