//! Compiles the GPU kernels with a C++ compiler for an emulated GPU (`tests/cuda_emulation/device.hpp`) and compares
//! them with their CPU counterparts. The tests need `g++`, or the compiler named by `CXX`, and so have to be requested:
//!
//!     cargo test --test cuda_emulation -- --ignored
//!
//! They cannot show the rounding of the GPU's own exponential and division, or the speed of a kernel.

mod activation;
mod assembler;
mod attention;
mod elements;
mod emulator;
mod norm;
mod rotation;
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

/// Asserts that both are equal within `tolerance` relative to one plus the expected size, or both NaN; returns the
/// error.
fn close(got: f64, want: f64, tolerance: f64, what: &str) -> f64 {
    if got == want || got.is_nan() && want.is_nan() {
        return 0.0;
    }
    let error = (got - want).abs() / (1.0 + want.abs());
    assert!(error <= tolerance, "{what}: {got:e}, not {want:e}");
    error
}
