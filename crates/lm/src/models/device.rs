//! The devices that models run on.

use super::cuda;
use super::error::ModelError;
use candle_core::Device;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use std::fmt;

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

/// A device that works.
#[derive(Clone, Debug)]
pub struct ComputeDevice {
    /// The name in settings, logs and responses: `cpu`, `cuda:0` ...
    pub name: String,
    pub device: Device,
    /// Bytes that models may use; when the device is opened, what is free of the memory of a GPU, or all that the machine
    /// has for the CPU.
    pub memory: u64,
    /// Threads that a forward pass on this device uses; when the device is opened, one per available core.
    pub threads: usize,
}

impl ComputeDevice {
    /// Opens the device that the settings request; `auto` is the first GPU if there is one that works, otherwise the
    /// CPU.
    pub fn open(wanted: DeviceChoice) -> Result<Self, ModelError> {
        match wanted {
            DeviceChoice::Cpu => Ok(Self::cpu()),
            DeviceChoice::Cuda(index) => Self::gpu(index).map_err(ModelError::Device),
            DeviceChoice::Auto => Ok(Self::gpu(0).unwrap_or_else(|why| {
                tracing::info!(why, "running on the CPU");
                Self::cpu()
            })),
        }
    }

    /// The CPU. From here on, the process uses no huge pages: the end of every large block would needlessly fill one,
    /// and a model would take up to an eighth more than its weights, which is the size that the pool accounts for. Huge
    /// pages made forward passes about 2 % faster.
    pub fn cpu() -> Self {
        #[cfg(target_os = "linux")]
        if let Err(why) = rustix::thread::disable_transparent_huge_pages(true) {
            tracing::debug!(%why, "models may take more memory than their weights");
        }
        // If the system does not report its memory, nothing is known to be too large.
        let memory = machine_memory().unwrap_or(u64::MAX);
        Self { name: "cpu".into(), device: Device::Cpu, memory, threads: available_threads() }
    }

    fn gpu(index: usize) -> Result<Self, String> {
        let (device, memory) = cuda::open(index)?;
        Ok(Self { name: format!("cuda:{index}"), device, memory, threads: available_threads() })
    }

    /// The device with this number of threads for forward passes; 0 leaves it unchanged.
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads: if threads > 0 { threads } else { self.threads }, ..self }
    }

    /// The hardware: the vendor's name of the processor or GPU; empty if it is unknown.
    pub fn hardware(&self) -> String {
        let name = if self.device.is_cpu() { processor() } else { cuda::device_name(&self.device) };
        name.unwrap_or_default()
    }

    /// Returns the memory of dropped tensors to the system, or to other users of the GPU.
    pub fn trim(&self) {
        // On a GPU, this is memory that weights passed through while loading.
        release_freed();
        if !self.device.is_cpu()
            && let Err(why) = cuda::trim_memory(&self.device)
        {
            tracing::warn!(device = self.name, why, "freed memory could not be returned");
        }
    }
}

/// Returns the main memory of dropped tensors to the system at once, which the allocator would do later.
pub fn release_freed() {
    // SAFETY: it only returns what this process has freed.
    unsafe { libmimalloc_sys::mi_collect(true) };
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

fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn machine_memory() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    // A container may have less memory than the machine, and so may a service that systemd bounds.
    let container = system.cgroup_limits().map(|limits| limits.total_memory);
    let process = sysinfo::get_current_pid().ok().and_then(|pid| {
        system.refresh_processes(sysinfo::ProcessesToUpdate::Some(&[pid]), false);
        Some(system.process(pid)?.cgroup_limits()?.total_memory)
    });
    let limit = container.into_iter().chain(process).min().unwrap_or(u64::MAX);
    Some(limit.min(system.total_memory())).filter(|bytes| *bytes > 0)
}

fn processor() -> Option<String> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_cpu_list(sysinfo::CpuRefreshKind::nothing());
    Some(system.cpus().first()?.brand().trim().to_owned())
}
