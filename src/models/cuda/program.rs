//! The programs compiled for a GPU: sources, and the numbers that are fixed at compile time. Plain data and part of
//! every build, so that the sources can be run and checked on a machine without a GPU.

use crate::models::kernels::math::EXP_MIN;
use crate::models::kernels::scan::{ScanShape, TimeStep};
use crate::models::kernels::sigmoid::LN_1P_TERMS;

/// Precedes every source: functions that need an instruction of the GPU.
pub const INTRINSICS: &str = include_str!("sources/intrinsics.cu");

/// Threads per block of the statistics and of the convolution.
pub const THREADS: usize = 256;
/// Numbers per row that the statistics kernel returns: maximum, weight, mean (of distances from the maximum), squares,
/// target logit.
pub const ROW_NUMBERS: usize = 5;
/// LogitRows of at least this length get a block each; shorter ones get a warp each.
const LONG_ROW: usize = 4096;
const WARP: usize = 32;

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
    /// Identifies the program.
    pub name: String,
    /// CUDA C++, to be appended to [`INTRINSICS`].
    pub source: &'static str,
    /// Macros and their values.
    pub defines: Vec<(&'static str, String)>,
}

impl Program {
    fn new(name: String, source: &'static str, numbers: &[(&'static str, usize)]) -> Self {
        let mut defines = vec![("EXP_MIN", format!("{EXP_MIN:?}f")), ("LN_1P_TERMS", LN_1P_TERMS.to_string())];
        defines.extend(numbers.iter().map(|(name, value)| (*name, value.to_string())));
        Self { name, source, defines }
    }

    /// The definitions as compiler options.
    pub fn options(&self) -> Vec<String> {
        self.defines.iter().map(|(name, value)| format!("-D{name}={value}")).collect()
    }
}

/// The statistics of rows of logits, with kernels `row_statistics_{f32,f16,bf16}`.
pub fn row_statistics() -> Program {
    Program::new("row_statistics".into(), include_str!("sources/logit_stats.cu"), &[("THREADS", THREADS)])
}

/// Threads per row of `columns` columns, and rows per block of the statistics.
pub fn rows_per_block(columns: usize) -> (usize, usize) {
    let lanes = if columns < LONG_ROW { WARP } else { THREADS };
    (lanes, THREADS / lanes)
}

/// The convolution before a scan, with kernel `causal_conv`.
pub fn causal_conv() -> Program {
    let source = concat!(include_str!("sources/math.cu"), include_str!("sources/conv.cu"));
    Program::new("causal_conv".into(), source, &[("THREADS", THREADS)])
}

/// How the scan is divided into blocks.
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
    let source = concat!(include_str!("sources/math.cu"), include_str!("sources/scan.cu"));
    Program::new(format!("selective_scan_{}_{per_head}", shape.states), source, &numbers)
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
    fn rows_of_a_block_are_whole_warps_that_fill_it() {
        for columns in [1, 31, 4095, 4096, 50_304] {
            let (lanes, rows) = rows_per_block(columns);
            assert_eq!((lanes % WARP, lanes * rows), (0, THREADS));
        }
        assert_eq!((rows_per_block(1024), rows_per_block(50_304)), ((32, 8), (256, 1)));
    }
}
