//! Stand-ins for the GPU kernels in a build without the feature `cuda`, in which there are none.

use super::inputs::{GpuColumns, GpuScanInput, LogitRows, ScanPlaces};
use crate::models::kernels::scan::ScanShape;
use candle_core::{DType, Device, Result, Tensor};

/// The reduction kernel for products of one type.
pub enum RowStatistics {}

/// The scan kernels for one shape.
pub enum Scans {}

impl RowStatistics {
    /// Always returns `None`.
    ///
    /// # Errors
    /// Never.
    pub fn new(_device: &Device, _dtype: DType) -> Result<Option<Self>> {
        Ok(None)
    }

    /// Cannot be called, since the type has no values.
    ///
    /// # Errors
    /// Never.
    pub fn reduce(&self, _rows: &LogitRows) -> Result<Tensor> {
        match *self {}
    }
}

impl Scans {
    /// Always returns `None`.
    ///
    /// # Errors
    /// Never.
    pub fn new(_device: &Device, _shape: ScanShape) -> Result<Option<Self>> {
        Ok(None)
    }

    /// Cannot be called, since the type has no values.
    ///
    /// # Errors
    /// Never.
    pub fn conv(&self, _x: GpuColumns, _taps: &Tensor, _bias: &Tensor, _places: &ScanPlaces) -> Result<Tensor> {
        match *self {}
    }

    /// Cannot be called, since the type has no values.
    ///
    /// # Errors
    /// Never.
    pub fn scan(&self, _input: &GpuScanInput, _places: &ScanPlaces) -> Result<Tensor> {
        match *self {}
    }
}
