//! Opening a GPU, and the memory that its driver keeps.

use candle_core::Device;
use candle_core::cuda_backend::cudarc::cublas::sys::{cublasMath_t, cublasSetMathMode};
use candle_core::cuda_backend::cudarc::driver::sys::{CUmemPool_attribute_enum, CUmemoryPool};
use candle_core::cuda_backend::cudarc::driver::{CudaContext, sys};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// Opens a GPU; gives it with the bytes of its memory that are free.
pub fn open(index: usize) -> Result<(Device, u64), String> {
    let missing: Vec<_> =
        libraries::present().into_iter().filter_map(|(name, present)| (!present).then_some(name)).collect();
    if !missing.is_empty() {
        return Err(format!("libraries not found: {}", missing.join(", ")));
    }
    // With one stream for all threads, everything is done in the order in which it was queued.
    let device = Device::new_cuda_with_stream(index).map_err(|e| e.to_string())?;
    // SAFETY: events order several streams, and there is only one.
    unsafe { device.as_cuda_device().map_err(|e| e.to_string())?.disable_event_tracking() };
    sum_in_f32(&device)?;
    keep_freed_memory(&device)?;
    let free = free_memory(&device)?;
    Ok((device, free))
}

/// The bytes of a GPU's memory that nobody has, this process included.
pub fn free_memory(device: &Device) -> Result<u64, String> {
    let (free, _) = context(device)?.mem_get_info().map_err(|e| e.to_string())?;
    Ok(free as u64)
}

/// Returns true if programs can be compiled, which takes NVRTC and no GPU.
pub fn has_compiler() -> bool {
    libraries::present().iter().any(|(name, present)| *present && name.contains("nvrtc"))
}

/// The vendor's name of a GPU.
pub fn device_name(device: &Device) -> Option<String> {
    context(device).ok()?.name().ok()
}

/// Returns freed memory to other users of the GPU.
pub fn trim_memory(device: &Device) -> Result<(), String> {
    device.as_cuda_device().map_err(|e| e.to_string())?.cuda_stream().synchronize().map_err(|e| e.to_string())?;
    let Some(pool) = memory_pool(device)? else { return Ok(()) };
    // SAFETY: the pool is that of a device that is open.
    unsafe { sys::cuMemPoolTrimTo(pool, 0) }.result().map_err(|e| e.to_string())
}

/// Forbids cuBLAS to join partial sums of products in the half type that they end in.
fn sum_in_f32(device: &Device) -> Result<(), String> {
    let cublas = device.as_cuda_device().map_err(|e| e.to_string())?.cublas_handle();
    let mode = cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    // SAFETY: the handle is that of a device that is open.
    unsafe { cublasSetMathMode(*cublas.handle(), mode) }.result().map_err(|e| e.to_string())
}

/// Has the driver keep freed memory until it is trimmed. By default it returns all of it whenever the stream is waited
/// for, and the next pass would have to map it again.
fn keep_freed_memory(device: &Device) -> Result<(), String> {
    let Some(pool) = memory_pool(device)? else { return Ok(()) };
    let mut threshold = u64::MAX;
    let attribute = CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the pool is that of a device that is open, and the value of this attribute is a u64.
    let set = unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast::<c_void>()) };
    set.result().map_err(|e| e.to_string())
}

/// The pool that memory comes from; `None` if the device has none.
fn memory_pool(device: &Device) -> Result<Option<CUmemoryPool>, String> {
    let context = context(device)?;
    if !context.has_async_alloc() {
        return Ok(None);
    }
    context.bind_to_thread().map_err(|e| e.to_string())?;
    let mut pool = MaybeUninit::uninit();
    // SAFETY: the call initialises `pool` if it succeeds, and it is read only in that case.
    unsafe {
        let status = sys::cuDeviceGetDefaultMemPool(pool.as_mut_ptr(), context.cu_device());
        status.result().map_err(|e| e.to_string())?;
        Ok(Some(pool.assume_init()))
    }
}

fn context(device: &Device) -> Result<Arc<CudaContext>, String> {
    Ok(device.as_cuda_device().map_err(|e| e.to_string())?.cuda_stream().context().clone())
}

/// Detection of the libraries of CUDA.
mod libraries {
    /// For a program that is linked with the libraries, which would not have started without them. Where cudarc loads
    /// them when they are first needed, each has a function of this name, which takes precedence; a missing library
    /// would panic.
    ///
    /// # Safety
    /// None is needed; cudarc's functions load a library, whose initialiser has to be trusted.
    #[allow(dead_code, reason = "not called where libraries are loaded at run time")]
    unsafe fn is_culib_present() -> bool {
        true
    }

    macro_rules! is_present {
        ($library:ident) => {{
            #[allow(unused_imports, reason = "empty of what is called where libraries are linked")]
            use candle_core::cuda_backend::cudarc::$library::sys::*;
            // SAFETY: the initialisers of the libraries of CUDA are trusted.
            unsafe { is_culib_present() }
        }};
    }

    /// The libraries that candle needs, and whether they are there.
    pub fn present() -> [(&'static str, bool); 4] {
        [
            ("libcuda (the driver)", is_present!(driver)),
            ("libcublas", is_present!(cublas)),
            ("libcurand", is_present!(curand)),
            ("libnvrtc", is_present!(nvrtc)),
        ]
    }
}
