//! A tensor and its location in the file.

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
        row_major(&file[self.data.clone()], element_size(self.dtype), &self.shape, &self.strides)
    }
}

/// Bytes per element of the types supported by [`super::globals`].
pub fn element_size(dtype: Dtype) -> usize {
    dtype.bitsize() / 8
}

/// The elements of a strided view in row-major order. `bytes` starts with the view's first element and contains every element.
fn row_major<'b>(bytes: &'b [u8], size: usize, shape: &[usize], strides: &[usize]) -> Cow<'b, [u8]> {
    let count: usize = shape.iter().product();
    if count == 0 || is_contiguous(shape, strides) {
        return Cow::Borrowed(&bytes[..count * size]);
    }
    let mut gathered = Vec::with_capacity(count * size);
    let mut index = vec![0; shape.len()];
    for _ in 0..count {
        let offset: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        gathered.extend_from_slice(&bytes[offset * size..][..size]);
        advance(&mut index, shape);
    }
    Cow::Owned(gathered)
}

fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    let mut step = 1;
    shape.iter().zip(strides).rev().all(|(&dimension, &stride)| {
        let fits = dimension == 1 || stride == step;
        step *= dimension;
        fits
    })
}

/// The next index in row-major order; the first one after the last.
fn advance(index: &mut [usize], shape: &[usize]) {
    for (position, dimension) in index.iter_mut().zip(shape).rev() {
        *position += 1;
        if *position < *dimension {
            return;
        }
        *position = 0;
    }
}
