//! The forward pass on the CPU: the operations candle has only in slower forms, over plain slices of f32.
//!
//! Every kernel computes a row (a token) or a sequence from that row or sequence alone and in a fixed order, so that a
//! score is the same bit for bit whatever else is in the batch and however many threads run. Vector instructions are
//! chosen at run time (see [`simd`]). In element-wise kernels and packed products none of the choices changes a bit (see
//! [`math`]); `gemm`, which runs where nothing is packed, sums in another order.

pub mod activation;
pub mod attention;
pub mod conv;
pub mod gemm;
pub mod math;
pub mod norm;
pub mod packed;
pub mod rms_norm;
pub mod scan;
pub mod sigmoid;
pub mod simd;
#[cfg(test)]
mod tests;

/// A pointer that threads may share because each writes a part of its own.
#[derive(Clone, Copy)]
pub(super) struct SharedMut(pub *mut f32);

// SAFETY: every user writes disjoint elements, which each `unsafe` block that uses it shows.
unsafe impl Send for SharedMut {}
// SAFETY: as above.
unsafe impl Sync for SharedMut {}

impl SharedMut {
    /// # Safety
    /// `offset` must lie inside the allocation that the pointer was taken from.
    pub unsafe fn at(self, offset: usize) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(offset) }
    }
}
