//! Which device the models run on.

use super::ModelError;
use crate::config::Device as Wanted;
use candle_core::Device;

/// Opens the device that the settings ask for; `auto` is the first GPU where there is one that works, else the CPU.
///
/// # Errors
/// [`ModelError::Device`] where a GPU is asked for by name and cannot be had.
pub fn open(wanted: &Wanted) -> Result<Device, ModelError> {
    match wanted {
        Wanted::Cpu => Ok(Device::Cpu),
        Wanted::Cuda(index) => cuda(*index).map_err(ModelError::Device),
        Wanted::Auto => Ok(cuda(0).unwrap_or_else(|why| {
            tracing::info!(why, "running on the CPU");
            Device::Cpu
        })),
    }
}

#[cfg(not(feature = "cuda"))]
fn cuda(_index: usize) -> Result<Device, String> {
    Err("this program was built without the feature `cuda`".into())
}

#[cfg(feature = "cuda")]
fn cuda(index: usize) -> Result<Device, String> {
    use candle_core::cuda_backend::cudarc::{cublas, curand, driver, nvrtc};
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
    Device::new_cuda(index).map_err(|e| e.to_string())
}
