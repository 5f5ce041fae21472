//! Causal attention in f16 and bf16, without scores in memory.

use super::compile::{Kernel, kernel};
use super::inputs::{QueryBlocks, attention_tiling, to_u32};
use super::tensor::{TensorAddress, allocate, cuda_storage, elements, without_gradients};
use candle_core::cuda_backend::WrapErr;
use candle_core::cuda_backend::cudarc::driver::{CudaView, LaunchConfig, PushKernelArg};
use candle_core::op::BackpropOp;
use candle_core::{DType, Device, Layout, Result, Shape, Storage, Tensor, bail};
use kernels::attention::{AttentionShape, Visibility};
use kernels::cuda::{self, AttentionTiling};

/// The oldest generation of GPUs with the instructions of the kernel: Ampere.
const LEAST_CAPABILITY: (i32, i32) = (8, 0);

/// The attention kernel for heads of one size and elements of one type.
pub struct FlashAttention {
    kernel: Kernel,
    tiling: AttentionTiling,
    dtype: DType,
}

impl FlashAttention {
    /// `None` if the device is not a GPU or an old one, there is no kernel for the heads and the type, or it cannot be
    /// compiled.
    pub fn new(device: &Device, head_dim: usize, dtype: DType) -> Result<Option<Self>> {
        let (Device::Cuda(device), Some(tiling)) = (device, attention_tiling(head_dim, dtype)) else {
            return Ok(None);
        };
        if device.cuda_stream().context().compute_capability().w()? < LEAST_CAPABILITY {
            return Ok(None);
        }
        let name = if dtype == DType::F16 { "attention_f16" } else { "attention_bf16" };
        let Some(kernel) = kernel(device, &cuda::attention(&tiling), name)? else { return Ok(None) };
        Ok(Some(Self { kernel, tiling, dtype }))
    }

    /// The number of queries of a block.
    pub fn queries(&self) -> usize {
        self.tiling.queries
    }

    /// Maps qkv `[tokens, qkv_width]`, with its bias and rotated, to `[tokens, heads * head_dim]`.
    pub fn attend(
        &self,
        qkv: &Tensor,
        blocks: &QueryBlocks,
        shape: AttentionShape,
        visibility: Visibility,
    ) -> Result<Tensor> {
        without_gradients([qkv])?;
        let (tokens, width) = qkv.dims2()?;
        let count = blocks.blocks.dim(0)?;
        let (heads, kv_heads) = (shape.heads, shape.kv_heads);
        let is_tiled = shape.head_dim == self.tiling.head_dim && qkv.dtype() == self.dtype;
        if !is_tiled || width != shape.qkv_width() || tokens != blocks.tokens || !heads.is_multiple_of(kv_heads) {
            bail!("attention: qkv {:?} {:?} and {shape:?} do not match", qkv.dtype(), qkv.shape());
        }
        let device = qkv.device().as_cuda_device()?;
        let stream = device.cuda_stream();
        let (storage, layout) = qkv.storage_and_layout();
        let qkv = TensorAddress::new((cuda_storage(&storage)?, layout), tokens * width, &stream)?;
        let (storage, layout) = blocks.blocks.storage_and_layout();
        let places: CudaView<u32> = elements(&storage, layout, 0)?;
        if !qkv.address.is_multiple_of(16) {
            bail!("attention: qkv does not start at a multiple of 16 bytes");
        }
        let out_shape = (tokens, shape.out_width());
        // SAFETY: the kernel writes every row, since the blocks cover the whole batch.
        let result = unsafe { allocate(device, self.dtype, tokens * shape.out_width())? };
        if count > 0 {
            let layout = Layout::contiguous(out_shape);
            let out = TensorAddress::new((&result, &layout), tokens * shape.out_width(), &stream)?;
            let config = LaunchConfig {
                grid_dim: (to_u32(count)?, to_u32(heads)?, 1),
                block_dim: (to_u32(self.tiling.threads())?, 1, 1),
                shared_mem_bytes: to_u32(self.tiling.shared_bytes())?,
            };
            let window = match visibility {
                Visibility::Past => 0,
                Visibility::Window(0) => bail!("attention: a window of no keys"),
                // A window beyond every sequence hides nothing.
                Visibility::Window(keys) => u32::try_from(keys).unwrap_or(0),
            };
            let (cap, heads, kv_heads) = (shape.soft_cap.unwrap_or(0.0), to_u32(heads)?, to_u32(kv_heads)?);
            let mut launch = self.kernel.launch();
            launch.arg(&qkv.address).arg(&places).arg(&out.address).arg(&heads).arg(&kv_heads);
            launch.arg(&shape.scale).arg(&cap).arg(&window);
            // SAFETY: these are the arguments of the kernel, and the tensors are as large as it reads and writes.
            unsafe { launch.launch(config) }.w()?;
        }
        Ok(Tensor::from_storage(Storage::Cuda(result), Shape::from(out_shape), BackpropOp::none(), false))
    }
}
