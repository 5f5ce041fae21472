//! Settings that are one of a few words.

/// Where models run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// On the first GPU that the program can use, else on the CPU.
    Auto,
    /// On the CPU.
    Cpu,
    /// On the GPU of this index.
    Cuda(usize),
}

/// What models compute in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// On the CPU single precision, on a GPU what the weights are stored in.
    Auto,
    /// Single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
}

/// Vector instructions that the kernels of the CPU run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simd {
    /// The most that the machine has.
    Auto,
    /// AVX-512.
    Avx512,
    /// AVX2.
    Avx2,
    /// What every processor of the architecture has.
    Scalar,
}

/// When a model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// At start; the service is not ready before.
    Eager,
    /// By the first request.
    Lazy,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
