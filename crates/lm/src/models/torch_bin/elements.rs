//! The elements of a strided view in row-major order.

use std::borrow::Cow;

/// `bytes` starts with the view's first element and contains every element.
pub fn row_major<'b>(bytes: &'b [u8], size: usize, shape: &[usize], strides: &[usize]) -> Cow<'b, [u8]> {
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
