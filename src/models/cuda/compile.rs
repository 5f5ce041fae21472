//! Compiles programs and loads them on a device.

use super::program::{INTRINSICS, Program};
use crate::models::error::is_out_of_memory;
use candle_core::cuda_backend::DeviceId;
use candle_core::cuda_backend::cudarc::driver::{CudaFunction, CudaStream, LaunchArgs};
use candle_core::cuda_backend::cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use candle_core::{CudaDevice, Result};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// The PTX of a program that has been compiled and loaded once, or `None` if that failed.
type Compiled = Option<Arc<str>>;
/// By device and program.
type All = HashMap<(DeviceId, String), Compiled>;

static ALL: LazyLock<Mutex<All>> = LazyLock::new(Mutex::default);

/// A function that is loaded on a device.
pub struct Kernel {
    function: CudaFunction,
    stream: Arc<CudaStream>,
}

impl Kernel {
    /// Begins a launch on the device's stream, behind all queued work; arguments are added to it.
    pub fn launch(&self) -> LaunchArgs<'_> {
        self.stream.launch_builder(&self.function)
    }
}

/// The kernel of a program, or `None` if it cannot be compiled for the device, which is logged once.
///
/// # Errors
/// If there is not enough memory for it, or if a kernel that ran before can no longer be loaded: the device has failed.
pub fn kernel(device: &CudaDevice, program: &Program, name: &str) -> Result<Option<Kernel>> {
    let load = |ptx: &str| -> Result<Kernel> {
        let function = device.get_or_load_custom_func(name, &program.name, ptx)?.into_cuda_function();
        Ok(Kernel { function, stream: device.cuda_stream() })
    };
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (device.id(), program.name.clone());
    if let Some(compiled) = all.get(&key) {
        return compiled.as_deref().map(load).transpose();
    }
    let loaded = match compile(device, program) {
        Err(why) => Err(why),
        Ok(ptx) => match load(&ptx) {
            Ok(kernel) => Ok((ptx, kernel)),
            // There may be enough memory later, or after another model was unloaded.
            Err(error) if is_out_of_memory(&error.to_string()) => return Err(error),
            Err(error) => Err(error.to_string()),
        },
    };
    let loaded = loaded.map_err(|why| tracing::warn!(program = program.name, why, "running without this kernel")).ok();
    let (ptx, kernel) = loaded.unzip();
    all.insert(key, ptx);
    Ok(kernel)
}

fn compile(device: &CudaDevice, program: &Program) -> std::result::Result<Arc<str>, String> {
    let context = device.cuda_stream().context().clone();
    let (major, minor) = context.compute_capability().map_err(|e| e.to_string())?;
    ptx(program, &format!("{major}{minor}")).map(Arc::from)
}

/// The PTX of a program for GPUs of a compute capability (such as `90`) and later. It needs NVRTC, but no GPU.
///
/// # Errors
/// The message of NVRTC about the source.
pub fn ptx(program: &Program, capability: &str) -> std::result::Result<String, String> {
    let mut options = program.options();
    // Numbers below 1e-38 are not worth the instructions they would take.
    options.extend([format!("--gpu-architecture=compute_{capability}"), "--ftz=true".into()]);
    let options = CompileOptions { options, name: Some(program.name.clone()), ..CompileOptions::default() };
    let source = format!("{INTRINSICS}\n{}", program.source);
    compile_ptx_with_opts(source, options).map(|ptx| ptx.to_src()).map_err(|e| e.to_string())
}
