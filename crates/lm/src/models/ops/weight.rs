//! Where weights come from, and matrices of them in the form that products need.

use super::elements::elements;
use super::form::{Form, Multiply};
use crate::models::error::ModelError;
use candle_core::{CpuStorage, DType, Device, Result, Storage, Tensor, bail};
use kernels::packed::{Element, Isa, Matrix, Packed, PanelMemory, Products};
use rayon::prelude::*;
use std::sync::Arc;

/// Provides a model's tensors by their canonical names, in the shapes that the architecture requires.
///
/// Canonical names are `embedding.weight`, `positions.weight`, `project_in.weight`, `project_out.weight`,
/// `layers.N.{attention_norm,attention_branch_norm,mlp_norm,mlp_branch_norm,query_norm,key_norm}.{weight,bias}`,
/// `layers.N.{qkv,attention_out,mlp_up,mlp_down}.{weight,bias}`, `final_norm.{weight,bias}` and `head.{weight,bias}`.
/// Projections are `[out, in]`; the rows of `qkv` are all queries (head by head), then all keys, then all values; the
/// rows of a gated `mlp_up` are the gate and then its factor.
pub trait ProvideTensors {
    fn tensor(&mut self, name: &str, shape: &[usize]) -> std::result::Result<Tensor, ModelError>;

    /// A matrix in the blocks that it is stored in, if these are of different types in parts; `None` if it is to be a tensor.
    fn blocks(&mut self, name: &str, shape: [usize; 2]) -> std::result::Result<Option<Vec<Packed>>, ModelError> {
        let _ = (name, shape);
        Ok(None)
    }

    /// A matrix in the form that products take, if it is packed while it is read or in the blocks that it is stored in; `None`
    /// if it is to be a tensor.
    fn packed(&mut self, name: &str, shape: [usize; 2]) -> std::result::Result<Option<Vec<Packed>>, ModelError> {
        self.blocks(name, shape)
    }
}

impl<F: FnMut(&str, &[usize]) -> std::result::Result<Tensor, ModelError>> ProvideTensors for F {
    fn tensor(&mut self, name: &str, shape: &[usize]) -> std::result::Result<Tensor, ModelError> {
        self(name, shape)
    }
}

pub type TensorSource<'a> = &'a mut dyn ProvideTensors;

/// Weights `[out, in]`.
pub enum Weight {
    /// As a tensor: for training, for GPUs, and if packing does not pay off.
    Plain(Tensor),
    /// Packed for the CPU kernels.
    Packed(Packed),
    /// Packed, one part of the rows after the other: parts that are stored in blocks of different types.
    Parts(Vec<Packed>),
}

impl Weight {
    /// Converts a tensor `[out, in]` to the representation that a form multiplies by. f16 and bf16 keep their type when
    /// they are packed.
    pub fn new(tensor: Tensor, form: Form) -> Result<Self> {
        match form {
            Form::Fused(Multiply::Packed(products, isa)) => pack(&tensor, products, isa).map(Self::Packed),
            Form::Fused(Multiply::Gemm) | Form::Gpu(_) | Form::Plain => Ok(Self::Plain(tensor)),
        }
    }

    fn from_parts(mut parts: Vec<Packed>) -> Self {
        match parts.pop() {
            Some(only) if parts.is_empty() => Self::Packed(only),
            last => Self::Parts(parts.into_iter().chain(last).collect()),
        }
    }

    /// A matrix of a model: in the blocks that it is stored in, or as a form multiplies by it.
    pub fn load(
        name: &str,
        shape: [usize; 2],
        form: Form,
        source: TensorSource<'_>,
    ) -> std::result::Result<Self, ModelError> {
        match source.packed(name, shape)? {
            Some(parts) => Ok(Self::from_parts(parts)),
            None => Ok(Self::new(source.tensor(name, &shape)?, form)?),
        }
    }

    /// The embedding, and the weights of the head if the two are tied; only then are they packed for products. They are
    /// the same but where packing does not keep the weights of an embedding.
    pub fn embedding(
        is_tied: bool,
        shape: [usize; 2],
        form: Form,
        source: TensorSource<'_>,
    ) -> std::result::Result<(Arc<Self>, Option<Arc<Self>>), ModelError> {
        const NAME: &str = "embedding.weight";
        if let Some(parts) = source.blocks(NAME, shape)? {
            let weight = Arc::new(Self::from_parts(parts));
            return Ok((Arc::clone(&weight), is_tied.then_some(weight)));
        }
        let tensor = source.tensor(NAME, &shape)?;
        if !is_tied {
            return Ok((Self::Plain(tensor).into(), None));
        }
        if !Self::keeps_weights(&tensor, form) {
            let head = Self::new(tensor.clone(), form)?;
            return Ok((Self::Plain(tensor).into(), Some(head.into())));
        }
        let weight = Arc::new(Self::new(tensor, form)?);
        Ok((Arc::clone(&weight), Some(weight)))
    }

    /// `[out, in]`
    pub fn dims(&self) -> Result<[usize; 2]> {
        match self {
            Self::Plain(tensor) => tensor.dims2().map(|(n, k)| [n, k]),
            Self::Packed(packed) => Ok(packed.shape()),
            Self::Parts(parts) => {
                let width = parts.first().map_or(0, |part| part.shape()[1]);
                Ok([parts.iter().map(|part| part.shape()[0]).sum(), width])
            }
        }
    }

    /// Returns true if packing a tensor in a form keeps its weights, so that [`Weight::pick`] can give them back.
    fn keeps_weights(tensor: &Tensor, form: Form) -> bool {
        match form {
            Form::Fused(Multiply::Packed(Products::Bf16, isa)) => Packed::keeps_weights(Element::Bf16, isa),
            Form::Fused(Multiply::Packed(_, isa)) => Packed::keeps_weights(element(tensor.dtype()), isa),
            Form::Fused(Multiply::Gemm) | Form::Gpu(_) | Form::Plain => true,
        }
    }

    /// The type of its elements where it is a tensor; packed weights are multiplied in f32.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Plain(tensor) => tensor.dtype(),
            Self::Packed(_) | Self::Parts(_) => DType::F32,
        }
    }

    /// The rows with these ids, `[ids, in]`: for an embedding, which many models share with the head. f32 in all but
    /// the plain form.
    pub fn pick(&self, ids: &Tensor, form: Form) -> Result<Tensor> {
        match self {
            Self::Plain(tensor) if form == Form::Plain => tensor.index_select(ids, 0),
            Self::Plain(tensor) => tensor.index_select(ids, 0)?.to_dtype(DType::F32),
            Self::Packed(packed) => {
                let ids: Vec<u32> = ids.to_vec1()?;
                let [n, k] = packed.shape();
                if let Some(id) = ids.iter().find(|&&id| id as usize >= n) {
                    bail!("row {id} is outside a matrix of {n} rows");
                }
                let mut rows = vec![0f32; ids.len() * k];
                rows.par_chunks_exact_mut(k.max(1)).zip(&ids).for_each(|(row, &id)| packed.copy_row(row, id as usize));
                Tensor::from_vec(rows, (ids.len(), k), &Device::Cpu)
            }
            Self::Parts(_) => bail!("an embedding is one matrix"),
        }
    }

    /// The memory of the panels, for those of other weights.
    pub fn into_memory(self) -> PanelMemory {
        match self {
            Self::Packed(packed) => packed.into_memory(),
            Self::Plain(_) | Self::Parts(_) => PanelMemory::default(),
        }
    }

    /// The tensor `[out, in]`, which exists unless the form packs it.
    pub fn tensor(&self) -> Result<&Tensor> {
        match self {
            Self::Plain(tensor) => Ok(tensor),
            Self::Packed(_) | Self::Parts(_) => bail!("packed weights have no plain form"),
        }
    }
}

/// The type that weights are packed in.
pub fn element(dtype: DType) -> Element {
    match dtype {
        DType::F16 => Element::F16,
        DType::BF16 => Element::Bf16,
        _ => Element::F32,
    }
}

fn pack(tensor: &Tensor, products: Products, isa: Isa) -> Result<Packed> {
    if !isa.runs(products) {
        bail!("this machine does not have {isa:?} for {products:?} products");
    }
    let (n, k) = tensor.dims2()?;
    let tensor = match products {
        Products::F32 => tensor.contiguous()?,
        Products::Bf16 => tensor.to_dtype(DType::BF16)?.contiguous()?,
    };
    let packed = |matrix| Packed::new(matrix, [n, k], products, isa);
    let (storage, layout) = tensor.storage_and_layout();
    match (&*storage, layout.contiguous_offsets()) {
        (Storage::Cpu(CpuStorage::BF16(values)), Some((start, end))) => Ok(packed(Matrix::Bf16(&values[start..end]))),
        (Storage::Cpu(CpuStorage::F16(values)), Some((start, end))) => Ok(packed(Matrix::F16(&values[start..end]))),
        (Storage::Cpu(storage), _) => Ok(packed(Matrix::F32(elements(storage, layout)?))),
        _ => bail!("only weights on the CPU are packed"),
    }
}
