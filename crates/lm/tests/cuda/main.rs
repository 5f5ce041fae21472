//! Runs the GPU kernels on a GPU and compares them with candle's operations there and with the CPU. Without a GPU, each
//! test reports that it was skipped; the compilation of the kernels needs only NVRTC.
//!
//!     cargo test --features cuda --test cuda -- --nocapture --test-threads=1
//!
//! One after another, since some take all the memory of the GPU.

#[path = "../it/common/columns.rs"]
mod columns;
mod decoder;
mod faults;
#[path = "../it/common/goldens.rs"]
mod goldens;
mod mamba;
mod parity;
mod programs;
mod row_statistics;

use candle_core::Device;
use lm::models::device::{ComputeDevice, DeviceChoice};
use mia::TokenStats;

/// The first GPU; if there is none, the calling test is skipped.
fn gpu() -> Option<Device> {
    let opened = ComputeDevice::open(DeviceChoice::Cuda(0)).map(|gpu| gpu.device);
    opened.inspect_err(|why| eprintln!("SKIPPED, nothing was checked: {why}")).ok()
}

/// Deterministic pseudo-random numbers, uniform in [-scale, scale).
fn noise(count: usize, scale: f32, mut seed: u64) -> Vec<f32> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| scale * next()).collect()
}

/// The largest difference of statistics, relative to one plus their size; panics if any exceeds `tolerance`.
fn compare(got: &[TokenStats], want: &[TokenStats], tolerance: f64, what: &str) -> f64 {
    assert_eq!(got.len(), want.len(), "{what}");
    let mut worst = 0f64;
    for (row, (got, want)) in got.iter().zip(want).enumerate() {
        let pairs = [(got.lp, want.lp), (got.mu, want.mu), (got.var, want.var), (got.max_lp, want.max_lp)];
        for (got_one, want_one) in pairs {
            let error = (got_one - want_one).abs() / (1.0 + want_one.abs());
            // Written as a comparison that fails for NaN.
            assert!(error <= tolerance, "{what}, row {row}: {got:?}, not {want:?}");
            worst = worst.max(error);
        }
    }
    worst
}
