//! A tensor and its location in the file.

use super::elements;
use safetensors::Dtype;
use std::borrow::Cow;
use std::ops::Range;

/// One tensor of the file: a view of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTensor {
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<usize>,
    /// Distance between neighbours along each dimension, in elements.
    pub strides: Vec<usize>,
    /// Byte range in the file: from the tensor's first element to the end of its storage.
    pub data: Range<usize>,
}

impl StoredTensor {
    /// The tensor's elements in row-major order, little-endian as stored; borrowed if they are stored in that order.
    /// `file` must be the file that the tensor was read from.
    pub fn elements<'f>(&self, file: &'f [u8]) -> Cow<'f, [u8]> {
        elements::row_major(&file[self.data.clone()], element_size(self.dtype), &self.shape, &self.strides)
    }
}

/// Bytes per element of the types supported by [`super::globals`].
pub fn element_size(dtype: Dtype) -> usize {
    dtype.bitsize() / 8
}
