//! The devices that models run on.

use super::ModelError;
use crate::config::DeviceChoice as Wanted;
use candle_core::Device;

/// A device that works.
#[derive(Clone, Debug)]
pub struct ComputeDevice {
    /// What settings, logs and answers call it: `cpu`, `cuda:0` ...
    pub name: String,
    pub device: Device,
    /// Bytes that models may take; when it is opened all that the device has, or the machine where it is the CPU.
    pub memory: u64,
}

impl ComputeDevice {
    /// Opens the device that the settings ask for; `auto` is the first GPU where there is one that works, else the CPU.
    ///
    /// # Errors
    /// [`ModelError::Device`] where a GPU is asked for by name and cannot be had.
    pub fn open(wanted: Wanted) -> Result<Self, ModelError> {
        match wanted {
            Wanted::Cpu => Ok(Self::cpu()),
            Wanted::Cuda(index) => cuda::open(index).map_err(ModelError::Device),
            Wanted::Auto => Ok(cuda::open(0).unwrap_or_else(|why| {
                tracing::info!(why, "running on the CPU");
                Self::cpu()
            })),
        }
    }

    /// The CPU. From here on the process uses no huge pages: the end of every large block would fill one in vain, and a
    /// model would take up to an eighth more than its weights, which is what the pool counts. They made forward passes
    /// about 2 % faster.
    pub fn cpu() -> Self {
        #[cfg(target_os = "linux")]
        if let Err(why) = rustix::thread::disable_transparent_huge_pages(true) {
            tracing::debug!(%why, "models may take more memory than their weights");
        }
        // Where the system does not say, nothing is known to be too much.
        let memory = memory_of_the_machine().unwrap_or(u64::MAX);
        Self { name: "cpu".into(), device: Device::Cpu, memory }
    }

    /// What it is: the processor or the GPU as its maker calls it; nothing where that cannot be told.
    pub fn hardware(&self) -> String {
        let name = if self.device.is_cpu() { processor() } else { cuda::name(&self.device) };
        name.unwrap_or_default()
    }

    /// Gives the memory of dropped tensors back: to the system, or to other users of the GPU.
    pub fn trim(&self) {
        // SAFETY: it only returns what this process has freed; on a GPU that is where weights stood on their way.
        unsafe { libmimalloc_sys::mi_collect(true) };
        if !self.device.is_cpu()
            && let Err(why) = cuda::trim(&self.device)
        {
            tracing::warn!(device = self.name, why, "freed memory could not be given back");
        }
    }
}

fn memory_of_the_machine() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    // A container may have less than the machine.
    let limit = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory);
    Some(limit.min(system.total_memory())).filter(|bytes| *bytes > 0)
}

fn processor() -> Option<String> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_cpu_list(sysinfo::CpuRefreshKind::nothing());
    Some(system.cpus().first()?.brand().trim().to_owned())
}

#[cfg(not(feature = "cuda"))]
mod cuda {
    use super::{ComputeDevice, Device};

    const ABSENT: &str = "this program was built without the feature `cuda`";

    pub fn open(_index: usize) -> Result<ComputeDevice, String> {
        Err(ABSENT.into())
    }

    pub fn name(_device: &Device) -> Option<String> {
        None
    }

    pub fn trim(_device: &Device) -> Result<(), String> {
        Err(ABSENT.into())
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::{ComputeDevice, Device};
    use candle_core::cuda_backend::cudarc::{cublas, curand, driver, nvrtc};
    use std::mem::MaybeUninit;

    pub fn open(index: usize) -> Result<ComputeDevice, String> {
        // cudarc panics when it first needs a library that is not there: look before.
        // SAFETY: this loads the libraries of CUDA, whose initialisers are trusted.
        let libraries = unsafe {
            [
                ("libcuda (the driver)", driver::sys::is_culib_present()),
                ("libcublas", cublas::sys::is_culib_present()),
                ("libcurand", curand::sys::is_culib_present()),
                ("libnvrtc", nvrtc::sys::is_culib_present()),
            ]
        };
        let missing: Vec<_> = libraries.iter().filter(|(_, present)| !present).map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            return Err(format!("libraries not found: {}", missing.join(", ")));
        }
        let device = Device::new_cuda(index).map_err(|e| e.to_string())?;
        let context = device.as_cuda_device().map_err(|e| e.to_string())?.cuda_stream().context().clone();
        let (_, total) = context.mem_get_info().map_err(|e| e.to_string())?;
        Ok(ComputeDevice { name: format!("cuda:{index}"), device, memory: total as u64 })
    }

    pub fn name(device: &Device) -> Option<String> {
        device.as_cuda_device().ok()?.cuda_stream().context().name().ok()
    }

    /// The driver keeps what a stream has freed in a pool, until it is told to let it go.
    pub fn trim(device: &Device) -> Result<(), String> {
        let stream = device.as_cuda_device().map_err(|e| e.to_string())?.cuda_stream();
        stream.synchronize().map_err(|e| e.to_string())?;
        let context = stream.context();
        if !context.has_async_alloc() {
            return Ok(());
        }
        context.bind_to_thread().map_err(|e| e.to_string())?;
        let mut pool = MaybeUninit::uninit();
        // SAFETY: the first call fills `pool` where it succeeds, and only then is it read.
        unsafe {
            driver::sys::cuDeviceGetDefaultMemPool(pool.as_mut_ptr(), context.cu_device())
                .result()
                .map_err(|e| e.to_string())?;
            driver::sys::cuMemPoolTrimTo(pool.assume_init(), 0).result().map_err(|e| e.to_string())
        }
    }
}
