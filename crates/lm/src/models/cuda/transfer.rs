//! Copies between the host and a GPU that the host does not wait for. They go through page-locked memory: the driver
//! copies other memory in pieces, and may have the host wait until all that was queued before is done.

use super::tensor::{elements, tensor};
use candle_core::cuda_backend::cudarc::driver::{
    CudaContext, CudaEvent, CudaStream, CudaView, DevicePtr, DevicePtrMut, PinnedHostSlice, result, sys,
};
use candle_core::cuda_backend::{DeviceId, WrapErr};
use candle_core::{CudaDevice, Device, Result, Tensor};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The smallest buffer, in words.
const LEAST_WORDS: usize = 1 << 14;

/// Buffers that no copy will be queued for, unless it takes them. They are kept, since to free one waits for the GPU.
static IDLE: LazyLock<Mutex<HashMap<DeviceId, Vec<Buffer>>>> = LazyLock::new(Mutex::default);

/// Page-locked memory of the host, in words.
struct Buffer {
    memory: PinnedHostSlice<u32>,
    /// Recorded behind the copy that was queued last.
    copied: CudaEvent,
}

impl Buffer {
    /// Returns a buffer of at least `words` words that no copy uses.
    fn take(device: &CudaDevice, words: usize) -> Result<Self> {
        let mut idle = idle();
        let buffers = idle.entry(device.id()).or_default();
        let fits = |buffer: &Self| buffer.memory.len() >= words && buffer.copied.is_complete();
        let fitting = buffers.iter().enumerate().filter(|(_, buffer)| fits(buffer));
        match fitting.min_by_key(|(_, buffer)| buffer.memory.len()).map(|(place, _)| place) {
            Some(place) => Ok(buffers.swap_remove(place)),
            None => Self::new(device.cuda_stream().context(), words.max(LEAST_WORDS).next_power_of_two()),
        }
    }

    fn new(context: &Arc<CudaContext>, words: usize) -> Result<Self> {
        // SAFETY: all of it is written here.
        let mut memory = unsafe { context.alloc_pinned_with_flags::<u32>(words, 0) }.w()?;
        memory.as_mut_slice().w()?.fill(0);
        let copied = context.new_event(Some(sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC)).w()?;
        Ok(Self { memory, copied })
    }

    /// Leaves it to other copies.
    fn put_back(self, device: DeviceId) {
        idle().entry(device).or_default().push(self);
    }

    /// Copies the first words to a GPU, after all that is queued on the stream.
    fn copy_to(&self, words: usize, out: &mut impl DevicePtrMut<u32>, stream: &Arc<CudaStream>) -> Result<()> {
        assert!(words <= out.len());
        let (address, _order) = out.device_ptr_mut(stream);
        let memory = &self.memory.as_slice().w()?[..words];
        // SAFETY: both are as long, and the buffer is not written before `copied` is complete.
        unsafe { result::memcpy_htod_async(address, memory, stream.cu_stream()) }.w()?;
        self.copied.record(stream).w()
    }

    /// Copies as many words from a GPU, after all that is queued on the stream.
    fn copy_from(&mut self, from: &CudaView<f32>, words: usize, stream: &Arc<CudaStream>) -> Result<()> {
        let (address, _order) = from.device_ptr(stream);
        let memory = &mut self.memory.as_mut_slice().w()?[..words];
        // SAFETY: both are as long, and the buffer is not read before `copied` is complete.
        unsafe { result::memcpy_dtoh_async(memory, address, stream.cu_stream()) }.w()?;
        self.copied.record(stream).w()
    }
}

fn idle() -> MutexGuard<'static, HashMap<DeviceId, Vec<Buffer>>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The values as a tensor `[values]` on the device; the copy is queued there.
pub fn upload(values: &[u32], device: &Device) -> Result<Tensor> {
    let Device::Cuda(gpu) = device else { return Tensor::new(values, device) };
    if values.is_empty() {
        return Tensor::new(values, device);
    }
    let stream = gpu.cuda_stream();
    let mut buffer = Buffer::take(gpu, values.len())?;
    buffer.memory.as_mut_slice().w()?[..values.len()].copy_from_slice(values);
    // SAFETY: the copy writes every element.
    let mut out = unsafe { gpu.alloc::<u32>(values.len())? };
    buffer.copy_to(values.len(), &mut out, &stream)?;
    buffer.put_back(gpu.id());
    Ok(tensor(out, gpu, values.len()))
}

/// Numbers on their way from a GPU.
pub struct ReadBack {
    /// None once it is dropped.
    buffer: Option<Buffer>,
    device: DeviceId,
    count: usize,
}

impl ReadBack {
    /// Queues the copy of a contiguous tensor of f32 on a GPU.
    pub fn queue(numbers: &Tensor) -> Result<Self> {
        let gpu = numbers.device().as_cuda_device()?;
        let (storage, layout) = numbers.storage_and_layout();
        let from: CudaView<f32> = elements(&storage, layout, 0)?;
        let count = numbers.elem_count();
        let mut buffer = Buffer::take(gpu, count)?;
        buffer.copy_from(&from, count, &gpu.cuda_stream())?;
        Ok(Self { buffer: Some(buffer), device: gpu.id(), count })
    }

    /// Waits for everything that was queued up to the copy, and gives the numbers.
    pub fn wait(&self) -> Result<Vec<f32>> {
        let Some(Buffer { memory, copied }) = &self.buffer else { return Ok(Vec::new()) };
        copied.synchronize().w()?;
        Ok(memory.as_slice().w()?[..self.count].iter().map(|word| f32::from_bits(*word)).collect())
    }
}

impl Drop for ReadBack {
    /// The buffer is taken again when the copy is done.
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            buffer.put_back(self.device);
        }
    }
}
