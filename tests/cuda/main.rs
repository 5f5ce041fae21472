//! The kernels for GPUs on a GPU, against candle's operations there and against the CPU. Without a GPU each test says so
//! and checks nothing; that the kernels compile takes NVRTC alone.
//!
//!     cargo test --features cuda --test cuda -- --nocapture

mod mamba;
mod programs;
mod row_statistics;

use candle_core::Device;
use pdr_audit::config::DeviceChoice as Wanted;
use pdr_audit::models::device::ComputeDevice;
use pdr_audit::token_stats::TokenStats;

/// The first GPU; where there is none the test that asks is skipped.
fn gpu() -> Option<Device> {
    let opened = ComputeDevice::open(Wanted::Cuda(0)).map(|gpu| gpu.device);
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

/// The largest difference of statistics, relative to one more than their size; none may be beyond `tolerance`.
fn compare(got: &[TokenStats], want: &[TokenStats], tolerance: f64, what: &str) -> f64 {
    assert_eq!(got.len(), want.len(), "{what}");
    let mut worst = 0f64;
    for (row, (got, want)) in got.iter().zip(want).enumerate() {
        let pairs = [(got.lp, want.lp), (got.mu, want.mu), (got.var, want.var), (got.max_lp, want.max_lp)];
        for (got_one, want_one) in pairs {
            let error = (got_one - want_one).abs() / (1.0 + want_one.abs());
            // As a comparison that a NaN fails.
            assert!(error <= tolerance, "{what}, row {row}: {got:?}, not {want:?}");
            worst = worst.max(error);
        }
    }
    worst
}
