//! Programs as functions of a device.

use super::program::{INTRINSICS, Program};
use crate::models::is_out_of_memory;
use candle_core::cuda_backend::DeviceId;
use candle_core::cuda_backend::cudarc::driver::{CudaFunction, CudaStream, LaunchArgs};
use candle_core::cuda_backend::cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use candle_core::{CudaDevice, Result};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A program that was compiled and has been loaded once, or None where that failed.
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
    /// A launch behind all that is queued, to be given arguments.
    pub fn launch(&self) -> LaunchArgs<'_> {
        self.stream.launch_builder(&self.function)
    }
}

/// The kernel of a program; None where it cannot be compiled for the device, which the log says once.
///
/// # Errors
/// Where there is no memory for it, or a kernel that ran before can no longer be had: the device has failed.
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
            // There may be memory for it later, or after another model has gone.
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

/// The assembly of a program for GPUs of a compute capability (`90`) and later. It takes no GPU, but NVRTC.
///
/// # Errors
/// What NVRTC says of the source.
pub fn ptx(program: &Program, capability: &str) -> std::result::Result<String, String> {
    let mut options = program.options();
    // Numbers below 1e-38 are not worth the instructions that they take.
    options.extend([format!("--gpu-architecture=compute_{capability}"), "--ftz=true".into()]);
    let options = CompileOptions { options, name: Some(program.name.clone()), ..CompileOptions::default() };
    let source = format!("{INTRINSICS}\n{}", program.source);
    compile_ptx_with_opts(source, options).map(|ptx| ptx.to_src()).map_err(|e| e.to_string())
}
