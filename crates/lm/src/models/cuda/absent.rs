//! Stand-ins for the GPU kernels in a build without the feature `cuda`, in which there are none.

use super::inputs::{Columns, LogitRows, QueryBlocks, Scan, ScanColumns, ScanPlaces};
use crate::models::arch::{Activation, NormKind};
use candle_core::{DType, Device, Result, Tensor, bail};
use kernels::attention::{AttentionShape, Visibility};
use kernels::scan::ScanShape;

const ABSENT: &str = "this program was built without the feature `cuda`";

pub fn open(_index: usize) -> std::result::Result<(Device, u64), String> {
    Err(ABSENT.into())
}

pub fn device_name(_device: &Device) -> Option<String> {
    None
}

pub fn trim_memory(_device: &Device) -> std::result::Result<(), String> {
    Err(ABSENT.into())
}

pub fn has_kernels(
    _device: &Device,
    _norm: NormKind,
    _activation: Activation,
    _head_dim: usize,
    _dtype: DType,
) -> Result<bool> {
    Ok(false)
}

pub fn product(_left: &Tensor, _right: &Tensor, _is_transposed: bool, _out: DType) -> Result<Tensor> {
    bail!("{ABSENT}")
}

/// The values as a tensor `[values]`.
pub fn upload(values: &[u32], device: &Device) -> Result<Tensor> {
    Tensor::new(values, device)
}

/// Numbers on their way from a GPU.
pub enum ReadBack {}

impl ReadBack {
    pub fn queue(_numbers: &Tensor) -> Result<Self> {
        bail!("{ABSENT}")
    }

    pub fn wait(&self) -> Result<Vec<f32>> {
        match *self {}
    }
}

/// The attention kernel for heads of one size and elements of one type.
pub enum FlashAttention {}

/// The reduction kernel.
pub enum RowStatistics {}

/// The scan kernels for one shape.
pub enum Scans {}

impl FlashAttention {
    pub fn new(_device: &Device, _head_dim: usize, _dtype: DType) -> Result<Option<Self>> {
        Ok(None)
    }

    pub fn queries(&self) -> usize {
        match *self {}
    }

    pub fn attend(
        &self,
        _qkv: &Tensor,
        _blocks: &QueryBlocks,
        _shape: AttentionShape,
        _visibility: Visibility,
    ) -> Result<Tensor> {
        match *self {}
    }
}

impl RowStatistics {
    pub fn new(_device: &Device) -> Result<Option<Self>> {
        Ok(None)
    }

    pub fn reduce(&self, _rows: &LogitRows) -> Result<Tensor> {
        match *self {}
    }
}

impl Scans {
    pub fn new(_device: &Device, _shape: ScanShape) -> Result<Option<Self>> {
        Ok(None)
    }

    pub fn conv(&self, _x: Columns, _taps: &Tensor, _bias: &Tensor, _places: &ScanPlaces) -> Result<Tensor> {
        match *self {}
    }

    pub fn scan(&self, _columns: &ScanColumns, _scan: &Scan, _places: &ScanPlaces) -> Result<Tensor> {
        match *self {}
    }
}
