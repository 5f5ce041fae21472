//! Settings that are one of a few names.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use std::fmt;
use strum::{EnumString, VariantNames};

/// Where models run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    /// On the first GPU that the program can use, else on the CPU.
    Auto,
    /// On the CPU.
    Cpu,
    /// On the GPU of this index.
    Cuda(usize),
}

/// What models compute in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, EnumString, VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Simd {
    /// The most that the machine has.
    Auto,
    /// AVX-512, and the tile registers of AMX.
    Amx,
    /// AVX-512.
    Avx512,
    /// AVX2.
    Avx2,
    /// What every processor of the architecture has.
    Scalar,
}

/// How products of models in single precision are taken on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum F32Products {
    /// As exact as sums in single precision.
    Exact,
    /// With AMX, of numbers that are split in two: faster, and less exact.
    Split,
}

/// What serves a model that another process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ServedKind {
    /// Another process of this program.
    PdrAudit,
    /// vLLM.
    Vllm,
}

/// When a model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadPolicy {
    /// At start; the service is not ready before.
    Eager,
    /// By the first request.
    Lazy,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl<'de> Deserialize<'de> for DeviceChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let index = |name: &str| {
            name.strip_prefix("cuda:").filter(|index| index.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
        };
        match name.as_str() {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            other => index(other).map(Self::Cuda).ok_or_else(|| {
                D::Error::invalid_value(Unexpected::Str(other), &"\"auto\", \"cpu\", \"cuda\" or \"cuda:N\"")
            }),
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Cpu => formatter.write_str("cpu"),
            Self::Cuda(index) => write!(formatter, "cuda:{index}"),
        }
    }
}
