//! The kernels for GPUs, compiled by a C++ compiler against a GPU in small (`tests/cuda_emulation/device.hpp`), against their twins on
//! the CPU. They need `g++`, or what `CXX` names, and so are run by hand:
//!
//!     cargo test --test cuda_emulation -- --ignored
//!
//! What this cannot show: the rounding of the GPU's own exponential and division, and how fast a kernel is.

mod emulator;
mod row_statistics;
mod scan;

/// Deterministic pseudo-random numbers, uniform in [-1, 1).
fn noise(count: usize, mut seed: u64) -> Vec<f32> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Asserts that both are equal within `tolerance` of the size of what is wanted, or both NaN; gives the largest error.
fn close(got: f64, want: f64, tolerance: f64, what: &str) -> f64 {
    if got == want || got.is_nan() && want.is_nan() {
        return 0.0;
    }
    let error = (got - want).abs() / (1.0 + want.abs());
    assert!(error <= tolerance, "{what}: {got:e}, not {want:e}");
    error
}
