//! Compiles programs and loads them on a device.

use super::fault::is_unusable_program;
use candle_core::cuda_backend::cudarc::driver::sys::CUfunction_attribute_enum;
use candle_core::cuda_backend::cudarc::driver::{CudaFunction, CudaStream, LaunchArgs};
use candle_core::cuda_backend::cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};
use candle_core::cuda_backend::{DeviceId, WrapErr};
use candle_core::{CudaDevice, Error, Result, bail};
use kernels::cuda::Program;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A function that is loaded on a device.
#[derive(Clone)]
pub struct Kernel {
    function: CudaFunction,
    stream: Arc<CudaStream>,
}

/// A kernel that has been asked for: nothing until it was loaded, and then no kernel if its program never runs there.
type Asked = Arc<Mutex<Option<Option<Kernel>>>>;
/// By device, program and name. Compiling one holds up those alone who wait for the same.
type All = HashMap<(DeviceId, String, &'static str), Asked>;
/// By program and compute capability.
type Compiled = HashMap<(String, (i32, i32)), Arc<str>>;

static ALL: LazyLock<Mutex<All>> = LazyLock::new(Mutex::default);
static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);

impl Kernel {
    /// Begins a launch on the device's stream, behind all queued work; arguments are added to it.
    pub fn launch(&self) -> LaunchArgs<'_> {
        self.stream.launch_builder(&self.function)
    }
}

/// The kernel of a program, or `None` if it cannot be compiled for the device, which is logged once.
///
/// # Errors
/// If it cannot be loaded for another reason than its code: there may be memory later, or the device has failed.
pub fn kernel(device: &CudaDevice, program: &Program, name: &'static str) -> Result<Option<Kernel>> {
    let key = (device.id(), program.name.clone(), name);
    let asked = Arc::clone(ALL.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*asked {
        return Ok(known.clone());
    }
    let kernel = match load(device, program, name) {
        Ok(kernel) => Some(kernel),
        Err(Unloaded::Unusable(why)) => {
            tracing::warn!(program = program.name, why, "running without this kernel");
            None
        }
        Err(Unloaded::Failed(error)) => return Err(error),
    };
    *asked = Some(kernel.clone());
    Ok(kernel)
}

/// The same, where a kernel is known to compile.
pub fn required_kernel(device: &CudaDevice, program: &Program, name: &'static str) -> Result<Kernel> {
    match kernel(device, program, name)? {
        Some(kernel) => Ok(kernel),
        None => bail!("the kernel {name} does not compile"),
    }
}

/// Why a kernel is not there.
enum Unloaded {
    /// The device or its driver never runs it.
    Unusable(String),
    Failed(Error),
}

impl From<Error> for Unloaded {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        if is_unusable_program(&text) { Self::Unusable(text) } else { Self::Failed(error) }
    }
}

fn load(device: &CudaDevice, program: &Program, name: &str) -> std::result::Result<Kernel, Unloaded> {
    let context = device.cuda_stream().context().clone();
    context.bind_to_thread().w()?;
    let capability = context.compute_capability().w()?;
    let ptx = compile(program, capability)?;
    let function = device.get_or_load_custom_func(name, &program.name, &ptx)?.into_cuda_function();
    if program.shared_bytes > 0 {
        let attribute = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        function.set_attribute(attribute, i32::try_from(program.shared_bytes).map_err(Error::wrap)?).w()?;
    }
    Ok(Kernel { function, stream: device.cuda_stream() })
}

/// A program compiled once for all of its kernels and all devices of a generation.
fn compile(program: &Program, capability: (i32, i32)) -> std::result::Result<Arc<str>, Unloaded> {
    let key = (program.name.clone(), capability);
    let known = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(ptx) = known().get(&key) {
        return Ok(Arc::clone(ptx));
    }
    let (major, minor) = capability;
    let ptx: Arc<str> = match compiled(program, &format!("{major}{minor}")) {
        Ok(ptx) => ptx.into(),
        Err(error @ CompileError::CompileError { .. }) => {
            return Err(Unloaded::Unusable(format!("{error:?}")));
        }
        Err(error) => return Err(Unloaded::Failed(Error::wrap(error))),
    };
    known().insert(key, Arc::clone(&ptx));
    Ok(ptx)
}

/// The PTX of a program for GPUs of a compute capability (such as `90`) and later. It needs NVRTC, but no GPU.
pub fn ptx(program: &Program, capability: &str) -> std::result::Result<String, String> {
    compiled(program, capability).map_err(|error| format!("{error:?}"))
}

fn compiled(program: &Program, capability: &str) -> std::result::Result<String, CompileError> {
    let mut options = program.options();
    // Numbers below 1e-38 are not worth the instructions they would take.
    options.extend([format!("--gpu-architecture=compute_{capability}"), "--ftz=true".into(), "--std=c++17".into()]);
    let options = CompileOptions { options, name: Some(program.name.clone()), ..CompileOptions::default() };
    let source = format!("{}\n{}", program.intrinsics, program.source);
    compile_ptx_with_opts(source, options).map(|ptx| ptx.to_src())
}
