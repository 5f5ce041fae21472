//! Shared writes to disjoint parts of one slice.

/// A pointer that threads may share because each of them writes to a separate part.
#[derive(Clone, Copy)]
pub(crate) struct SharedMut(pub *mut f32);

// SAFETY: every user writes disjoint elements, as shown at each `unsafe` block that uses it.
unsafe impl Send for SharedMut {}
// SAFETY: as above.
unsafe impl Sync for SharedMut {}

impl SharedMut {
    /// # Safety
    /// `offset` must lie inside the allocation that the pointer was taken from.
    pub unsafe fn add(self, offset: usize) -> *mut f32 {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.add(offset) }
    }
}
