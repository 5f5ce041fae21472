//! Where products are written.

use crate::models::kernels::shared_mut::SharedMut;

/// Where results are written: rows `stride` apart, added to the existing values or replacing them.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub out: SharedMut,
    pub stride: usize,
    pub accumulate: bool,
    /// What is added before the products, for each column that `out` has from its first on.
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

    /// The same for what is added to results that are there.
    pub fn further(self) -> Self {
        Self { accumulate: true, bias: None, ..self }
    }
}
