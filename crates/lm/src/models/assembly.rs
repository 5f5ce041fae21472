//! Builds canonical tensors from those on disk.

use super::arch::Arch;
use super::error::ModelError;
use super::gguf::TensorType;
use super::ops::{Form, Multiply, ProvideTensors, element};
use super::rows::StoredRows;
use super::storage::Storage;
use super::weights::{Stored, Weights};
use candle_core::{DType, Device, Tensor};
use half::vec::HalfBitsVecExt;
use half::{bf16, f16};
use kernels::packed::{BlockError, BlockFormat, Isa, Packed, PanelMemory, Products};
use rayon::prelude::*;
use safetensors::Dtype;
use std::collections::BTreeSet;

/// Reads tensors by their canonical names, and records which tensors on disk were used.
pub struct Assembly<'a> {
    weights: &'a Weights,
    storage: &'a Storage,
    /// The architecture of a decoder; the tensors of other architectures are stored in canonical order.
    arch: Option<&'a Arch>,
    used: BTreeSet<String>,
    /// Holds tensors before they are reordered: one buffer for all of them, so that loading does not fragment the heap.
    scratch: Vec<f32>,
    /// Memory of matrices that are no longer used, for the next ones in this order.
    memory: std::vec::IntoIter<PanelMemory>,
}

impl<'a> Assembly<'a> {
    pub fn new(weights: &'a Weights, storage: &'a Storage, arch: Option<&'a Arch>) -> Self {
        Self { weights, storage, arch, used: BTreeSet::new(), scratch: Vec::new(), memory: Vec::new().into_iter() }
    }

    /// Packs matrices into this memory, one after the other, where it has their size.
    pub fn reuse(&mut self, memory: Vec<PanelMemory>) {
        self.memory = memory.into_iter();
    }

    /// The tensors on disk that have been read so far.
    pub fn used(&self) -> &BTreeSet<String> {
        &self.used
    }

    /// The elements of a canonical tensor as f32, in row-major order.
    fn values(&mut self, canonical: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let (names, parts) = self.parts(canonical, shape)?;
        let transposed = self.storage.is_transposed(canonical);
        let order = self.arch.and_then(|arch| self.storage.row_order(arch, canonical));
        let reorders = transposed || order.is_some();
        let count = shape.iter().product();
        let mut values = if reorders { std::mem::take(&mut self.scratch) } else { Vec::with_capacity(count) };
        values.clear();
        for part in &parts {
            part.widen_into(&mut values)?;
        }
        self.used.extend(names);
        let columns = count / shape[0].max(1);
        if reorders {
            let ordered = if transposed {
                transpose(&values, columns)
            } else {
                pick_rows(&values, columns, &order.unwrap_or_default())
            };
            self.scratch = values;
            return Ok(ordered);
        }
        match self.storage.offset(canonical) {
            0.0 => {}
            offset => values.iter_mut().for_each(|value| *value += offset),
        }
        Ok(values)
    }

    /// A canonical tensor that is stored in this half type: read without a conversion to f32, which would need three times the
    /// memory of the tensor. `None` if its elements are stored in any other way than in canonical rows.
    fn as_stored(&mut self, canonical: &str, shape: &[usize], dtype: DType) -> Result<Option<Tensor>, ModelError> {
        let changed = self.storage.is_transposed(canonical) || self.storage.offset(canonical) != 0.0;
        if changed || dtype == DType::F32 || self.stored_type(canonical) != Some(dtype) {
            return Ok(None);
        }
        let (names, parts) = self.parts(canonical, shape)?;
        let mut bits = vec![0_u16; parts.iter().map(Stored::bytes).sum::<usize>() / size_of::<u16>()];
        let mut rest: &mut [u8] = bytemuck::cast_slice_mut(&mut bits);
        for part in &parts {
            let (bytes, others) = rest.split_at_mut(part.bytes());
            part.read_into(bytes)?;
            rest = others;
        }
        self.used.extend(names);
        if let Some(order) = self.arch.and_then(|arch| self.storage.row_order(arch, canonical)) {
            bits = pick_rows(&bits, bits.len() / shape[0].max(1), &order);
        }
        let tensor = match dtype {
            DType::F16 => Tensor::from_vec(bits.reinterpret_into::<f16>(), shape, &Device::Cpu),
            _ => Tensor::from_vec(bits.reinterpret_into::<bf16>(), shape, &Device::Cpu),
        };
        Ok(Some(tensor?))
    }

    /// Provides the tensors in the types that a form computes in, on a device.
    pub fn source<'b>(&'b mut self, form: Form, dtype: DType, device: &'b Device) -> AssembledTensors<'a, 'b> {
        AssembledTensors { assembly: self, form, dtype, device }
    }

    /// Checks that a canonical tensor is stored in this shape and in a supported type, reads nothing of it, and counts it as
    /// used.
    pub fn check(&mut self, canonical: &str, shape: &[usize]) -> Result<(), ModelError> {
        let (names, parts) = self.parts(canonical, shape)?;
        parts.iter().try_for_each(Stored::check_type)?;
        self.used.extend(names);
        Ok(())
    }

    /// A matrix in the blocks that its parts are stored in, in canonical order: as one, or one for each part if these are in blocks
    /// of different types. `None` if a part is stored in any other way.
    pub fn as_blocks(
        &mut self,
        canonical: &str,
        shape: [usize; 2],
        isa: Isa,
    ) -> Result<Option<Vec<Packed>>, ModelError> {
        let changed = self.storage.is_transposed(canonical) || self.storage.offset(canonical) != 0.0;
        let candidates = self.storage.candidates(canonical);
        let formats = candidates.iter().find_map(|names| self.weights.block_formats(names));
        let Some(mut formats) = formats.filter(|_| !changed) else { return Ok(None) };
        let (names, parts) = self.parts(canonical, &shape)?;
        let mut counts: Vec<usize> = parts.iter().map(|part| part.shape[0]).collect();
        let row_bytes = |format: BlockFormat| (shape[1] / format.weights() * format.bytes()).max(1);
        let read = |part: &Stored| -> Result<Vec<u8>, ModelError> {
            let mut bytes = vec![0; part.bytes()];
            part.read_into(&mut bytes)?;
            Ok(bytes)
        };
        let stored: Vec<Vec<u8>> = parts.iter().map(read).collect::<Result<_, _>>()?;
        let stored = stored.iter().zip(&formats);
        let mut rows: Vec<&[u8]> = stored.flat_map(|(part, format)| part.chunks_exact(row_bytes(*format))).collect();
        if let Some(order) = self.arch.and_then(|arch| self.storage.row_order(arch, canonical)) {
            rows = order.iter().map(|&row| rows[row]).collect();
        }
        if formats.windows(2).all(|pair| pair[0] == pair[1]) {
            formats.truncate(1);
            counts = vec![shape[0]];
        }
        let fault = |fault: BlockError| ModelError::Tensor { name: names.join(" + "), reason: fault.to_string() };
        let mut packed = Vec::new();
        for (format, count) in formats.into_iter().zip(counts) {
            let rest = rows.split_off(count.min(rows.len()));
            packed.push(Packed::of_blocks(&rows, shape[1], format, isa).map_err(fault)?);
            rows = rest;
        }
        self.used.extend(names);
        Ok(Some(packed))
    }

    /// The rows of a matrix, if they are stored in this type and as its parts' rows.
    fn rows_as_stored(
        &mut self,
        canonical: &str,
        shape: [usize; 2],
        dtype: DType,
    ) -> Result<Option<StoredRows<'a>>, ModelError> {
        let changed = self.storage.is_transposed(canonical) || self.storage.offset(canonical) != 0.0;
        if changed || self.stored_type(canonical) != Some(dtype) {
            return Ok(None);
        }
        let (names, parts) = self.parts(canonical, &shape)?;
        let Some(places) = parts.iter().map(Stored::contiguous).collect::<Option<Vec<_>>>() else { return Ok(None) };
        self.used.extend(names);
        let order = self.arch.and_then(|arch| self.storage.row_order(arch, canonical));
        Ok(Some(StoredRows::new(places, order, shape[1] * dtype.size_in_bytes())))
    }

    /// The type that every part of a canonical tensor is stored in, if all have the same one and it is not in blocks.
    fn stored_type(&self, canonical: &str) -> Option<DType> {
        let parts = |names: Vec<String>| names.iter().map(|name| self.weights.kind(name)).collect::<Option<Vec<_>>>();
        let parts = self.storage.candidates(canonical).into_iter().find_map(parts)?;
        let stored_in = |dtype| parts.iter().all(|part| *part == TensorType::Plain(dtype));
        match () {
            () if stored_in(Dtype::F16) => Some(DType::F16),
            () if stored_in(Dtype::BF16) => Some(DType::BF16),
            () if stored_in(Dtype::F32) => Some(DType::F32),
            () => None,
        }
    }

    /// The number of rows of each part.
    fn rows(&self, canonical: &str, shape: &[usize], parts: usize) -> Vec<usize> {
        match self.arch {
            Some(arch) => self.storage.part_rows(arch, canonical, shape[0], parts),
            None => vec![shape[0]],
        }
    }

    /// The parts of a canonical tensor with their names, checked against the expected shape: nothing of the size that
    /// config.json claims is allocated before the files confirm it.
    fn parts(&self, canonical: &str, shape: &[usize]) -> Result<(Vec<String>, Vec<Stored<'a>>), ModelError> {
        let (names, parts) = self.find(canonical)?;
        let transposed = self.storage.is_transposed(canonical);
        for ((name, part), rows) in names.iter().zip(&parts).zip(self.rows(canonical, shape, parts.len())) {
            check_shape(name, part, shape, rows, transposed)?;
        }
        Ok((names, parts))
    }

    /// The parts of a canonical tensor, under the first of its possible names that exists.
    fn find(&self, canonical: &str) -> Result<(Vec<String>, Vec<Stored<'a>>), ModelError> {
        let candidates = self.storage.candidates(canonical);
        for names in &candidates {
            let parts: Option<Vec<_>> = names.iter().map(|name| self.weights.find(name)).collect();
            if let Some(parts) = parts {
                return Ok((names.clone(), parts));
            }
        }
        // Name the missing parts of a tensor that is stored in parts, otherwise every name it could have.
        let is_missing = |name: &&String| self.weights.shape(name).is_none();
        let partly = candidates.iter().find(|names| names.iter().any(|name| !is_missing(&name)));
        let name = match partly {
            Some(names) => names.iter().filter(is_missing).cloned().collect::<Vec<_>>().join(" and "),
            None => candidates.iter().map(|names| names.join(" + ")).collect::<Vec<_>>().join(" or "),
        };
        Err(ModelError::Tensor { name, reason: "missing".into() })
    }
}

/// Compares the shape of a part of `rows` rows with the expected shape.
fn check_shape(name: &str, part: &Stored, shape: &[usize], rows: usize, transposed: bool) -> Result<(), ModelError> {
    let mut expected = shape.to_vec();
    expected[0] = rows;
    if transposed {
        expected.reverse();
    }
    if part.shape == expected {
        return Ok(());
    }
    let reason = format!("shape {:?}, but the configuration requires {expected:?}", part.shape);
    Err(ModelError::Tensor { name: name.to_owned(), reason })
}

/// Turns `[columns, rows]` into `[rows, columns]`, several rows at a time, since these are adjacent in the source.
fn transpose(values: &[f32], columns: usize) -> Vec<f32> {
    const ROWS: usize = 16;
    let rows = values.len() / columns.max(1);
    let mut transposed = vec![0f32; values.len()];
    transposed.par_chunks_mut(ROWS * columns.max(1)).enumerate().for_each(|(block, out)| {
        for (column, values) in values.chunks_exact(rows).enumerate() {
            let values = &values[block * ROWS..];
            out.chunks_exact_mut(columns).zip(values).for_each(|(row, &value)| row[column] = value);
        }
    });
    transposed
}

/// The rows with these indices, in this order.
fn pick_rows<T: Copy>(values: &[T], columns: usize, order: &[usize]) -> Vec<T> {
    let mut picked = Vec::with_capacity(values.len());
    order.iter().for_each(|row| picked.extend_from_slice(&values[row * columns..(row + 1) * columns]));
    picked
}

/// The tensors on disk, in the types that a form computes in.
pub struct AssembledTensors<'a, 'b> {
    assembly: &'b mut Assembly<'a>,
    form: Form,
    dtype: DType,
    device: &'b Device,
}

impl AssembledTensors<'_, '_> {
    /// The type of a tensor in memory.
    fn dtype(&self, canonical: &str, shape: &[usize]) -> DType {
        match self.form {
            // Norms are computed in f32 in any case, and are too small to matter.
            Form::Plain | Form::Gpu(_) if canonical.contains("norm") => DType::F32,
            // Kernels read biases in f32, whatever the type of the sums.
            Form::Gpu(_) if canonical.ends_with(".bias") => DType::F32,
            Form::Plain | Form::Gpu(_) => self.dtype,
            Form::Fused(Multiply::Packed(products, _)) if Storage::is_matrix(canonical, shape) => match products {
                // In the type they are stored in, which takes no more memory and rounds nothing.
                Products::F32 => self.assembly.stored_type(canonical).unwrap_or(DType::F32),
                Products::Bf16 => DType::BF16,
            },
            Form::Fused(_) => DType::F32,
        }
    }
}

impl ProvideTensors for AssembledTensors<'_, '_> {
    fn tensor(&mut self, canonical: &str, shape: &[usize]) -> Result<Tensor, ModelError> {
        let dtype = self.dtype(canonical, shape);
        let tensor = match self.assembly.as_stored(canonical, shape, dtype)? {
            Some(tensor) => tensor,
            None => Tensor::from_vec(self.assembly.values(canonical, shape)?, shape, &Device::Cpu)?,
        };
        Ok(tensor.to_dtype(dtype)?.to_device(self.device)?)
    }

    fn blocks(&mut self, canonical: &str, shape: [usize; 2]) -> Result<Option<Vec<Packed>>, ModelError> {
        self.form.isa_for_blocks().map_or(Ok(None), |isa| self.assembly.as_blocks(canonical, shape, isa))
    }

    fn packed(&mut self, canonical: &str, shape: [usize; 2]) -> Result<Option<Vec<Packed>>, ModelError> {
        if let Some(blocks) = self.blocks(canonical, shape)? {
            return Ok(Some(blocks));
        }
        let Form::Fused(Multiply::Packed(products, isa)) = self.form else { return Ok(None) };
        let dtype = self.dtype(canonical, &shape);
        let Some(rows) = self.assembly.rows_as_stored(canonical, shape, dtype)?.filter(|_| isa.runs(products)) else {
            return Ok(None);
        };
        let memory = self.assembly.memory.next().unwrap_or_default();
        let read = |range, buffer: &mut _, pack: &mut dyn FnMut(&[&[u8]])| rows.read(range, buffer, pack);
        Ok(Some(vec![Packed::read(shape, element(dtype), products, isa, memory, read)?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::checkpoint::Checkpoint;
    use crate::models::families::Network;
    use crate::models::files::ModelFiles;

    #[test]
    fn tensors_stored_in_the_requested_type_are_not_widened() {
        for (golden, stored, other) in
            [("gptneox-bf16", DType::BF16, DType::F16), ("gptneox-f16", DType::F16, DType::BF16)]
        {
            let directory = format!("{}/../../tests/fixtures/goldens/{golden}", env!("CARGO_MANIFEST_DIR"));
            let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory.into())).unwrap();
            let Network::Decoder(arch, storage) = &checkpoint.description.network else { panic!("a decoder") };
            let mut assembly = Assembly::new(&checkpoint.weights, storage, Some(arch));
            let shape = [arch.sizes.vocab, arch.sizes.hidden];
            let taken = assembly.as_stored("embedding.weight", &shape, stored).unwrap().unwrap();
            assert_eq!((taken.dtype(), assembly.used().len()), (stored, 1));
            let taken: Vec<f32> = taken.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            assert_eq!(taken, assembly.values("embedding.weight", &shape).unwrap());
            for dtype in [DType::F32, other] {
                assert!(assembly.as_stored("embedding.weight", &shape, dtype).unwrap().is_none());
            }
            // Its rows are stored head by head.
            let qkv = ("layers.0.qkv.weight", &[arch.qkv_width(), arch.sizes.hidden]);
            let taken = assembly.as_stored(qkv.0, qkv.1, stored).unwrap().unwrap();
            let taken: Vec<f32> = taken.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            assert_eq!(taken, assembly.values(qkv.0, qkv.1).unwrap());
            let refusal = assembly.as_stored("embedding.weight", &[1, 2], stored).unwrap_err();
            assert!(refusal.to_string().contains("shape"), "{refusal}");
        }
    }

    #[test]
    fn a_transpose_has_every_element_in_its_place() {
        for (rows, columns) in [(1, 1), (3, 5), (16, 2), (17, 40), (50, 1), (1, 9)] {
            let values: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
            let transposed = transpose(&values, columns);
            let place = |i: usize| values[i % columns * rows + i / columns];
            assert!(transposed.iter().enumerate().all(|(i, &value)| value == place(i)), "{rows} x {columns}");
        }
    }
}
