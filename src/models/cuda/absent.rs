//! The kernels of a build without the feature `cuda`: there are none.

use super::inputs::{Columns, Rows, ScanInput, ScanPlaces};
use crate::models::kernels::scan::ScanShape;
use candle_core::{DType, Device, Result, Tensor};

/// The kernel for products of one type.
pub enum RowStatistics {}

/// The kernels for scans of one shape.
pub enum Scans {}

impl RowStatistics {
    /// None.
    ///
    /// # Errors
    /// Never.
    pub fn new(_device: &Device, _dtype: DType) -> Result<Option<Self>> {
        Ok(None)
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn reduce(&self, _rows: &Rows) -> Result<Tensor> {
        match *self {}
    }
}

impl Scans {
    /// None.
    ///
    /// # Errors
    /// Never.
    pub fn new(_device: &Device, _shape: ScanShape) -> Result<Option<Self>> {
        Ok(None)
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn conv(&self, _x: Columns, _taps: &Tensor, _bias: &Tensor, _places: &ScanPlaces) -> Result<Tensor> {
        match *self {}
    }

    /// Never called.
    ///
    /// # Errors
    /// Never.
    pub fn scan(&self, _input: &ScanInput, _places: &ScanPlaces) -> Result<Tensor> {
        match *self {}
    }
}
