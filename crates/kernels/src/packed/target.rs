//! Where products are written.

#[cfg(target_arch = "x86_64")]
use super::matrix::LANES;
use crate::shared_mut::SharedMut;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Where results are written: rows `stride` apart, added to the existing values or replacing them.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub out: SharedMut,
    pub stride: usize,
    pub accumulate: bool,
    /// Values added before the products, one for each column of `out` from its first on; `None` for no bias.
    pub bias: Option<&'a [f32]>,
}

impl Target<'_> {
    /// The same from a row and a column on.
    pub fn from(self, row: usize, column: usize) -> Self {
        let out = SharedMut(self.out.0.wrapping_add(row * self.stride + column));
        Self { out, bias: self.bias.map(|bias| &bias[column..]), ..self }
    }

    /// Writes a result.
    ///
    /// # Safety
    /// The place is inside the allocation, no other thread accesses it, and what is added to is initialised.
    pub unsafe fn write(self, row: usize, column: usize, sum: f32) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let out = self.out.add(row * self.stride + column);
            *out = match (self.accumulate, self.bias) {
                (true, Some(bias)) => *out + bias[column] + sum,
                (true, None) => *out + sum,
                (false, Some(bias)) => bias[column] + sum,
                (false, None) => sum,
            };
        }
    }

    /// Writes the first lanes of sixteen results side by side, all of them if there are more.
    ///
    /// # Safety
    /// As for [`Target::write`], for each of the lanes.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub unsafe fn write_vector(self, row: usize, column: usize, sum: __m512, lanes: usize) {
        let mask = ((1u32 << lanes.min(LANES)) - 1) as __mmask16;
        // SAFETY: guaranteed by the caller; masked lanes are not accessed.
        unsafe { _mm512_mask_storeu_ps(self.address(row, column), mask, self.vector(row, column, sum, mask)) };
    }

    /// Writes sixteen results side by side past the caches.
    ///
    /// # Safety
    /// As for [`Target::write`]; and their place is aligned to 64 bytes.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub unsafe fn stream_vector(self, row: usize, column: usize, sum: __m512) {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_stream_ps(self.address(row, column), self.vector(row, column, sum, __mmask16::MAX)) };
    }

    /// Computes the values that [`Target::write`] would write, in the lanes of a mask.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn vector(self, row: usize, column: usize, sum: __m512, mask: __mmask16) -> __m512 {
        // SAFETY: guaranteed by the caller; masked lanes are not accessed, and a bias has all columns.
        let (there, bias) = unsafe {
            (
                self.accumulate.then(|| _mm512_maskz_loadu_ps(mask, self.address(row, column))),
                self.bias.map(|bias| _mm512_maskz_loadu_ps(mask, bias.as_ptr().wrapping_add(column))),
            )
        };
        match (there, bias) {
            (Some(there), Some(bias)) => _mm512_add_ps(_mm512_add_ps(there, bias), sum),
            (Some(other), None) | (None, Some(other)) => _mm512_add_ps(other, sum),
            (None, None) => sum,
        }
    }

    /// An address that is outside the allocation where no lane is inside.
    #[cfg(target_arch = "x86_64")]
    fn address(self, row: usize, column: usize) -> *mut f32 {
        self.out.0.wrapping_add(row * self.stride + column)
    }

    /// The target of further sums: they are added to the results, without the bias.
    pub fn further(self) -> Self {
        Self { accumulate: true, bias: None, ..self }
    }
}
