//! Rotary positions (Su et al. 2021): element i of a head is paired with element i + half, and each pair is rotated by an
//! angle that grows with the position.

/// Cosines and sines of the first positions.
#[derive(Default)]
pub struct Angles {
    positions: usize,
    half: usize,
    /// `[positions, half]`
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Angles {
    /// The angles of the first `positions` positions for the frequency of each pair. The product of position and frequency
    /// is rounded to f32, as in the reference.
    pub fn new(frequencies: &[f32], positions: usize) -> Self {
        let angles = (0..positions).flat_map(|p| frequencies.iter().map(move |f| f64::from(p as f32 * f)));
        let (sin, cos) = angles.map(|a| (a.sin() as f32, a.cos() as f32)).unzip();
        Self { positions, half: frequencies.len(), cos, sin }
    }

    /// Number of positions.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Number of pairs.
    pub fn half(&self) -> usize {
        self.half
    }

    /// Cosines `[positions, half]`.
    pub fn cos(&self) -> &[f32] {
        &self.cos
    }

    /// Sines `[positions, half]`.
    pub fn sin(&self) -> &[f32] {
        &self.sin
    }

    /// Rotates one head's row in place.
    #[inline]
    pub fn rotate(&self, row: &mut [f32], position: usize) {
        let angles = position * self.half..(position + 1) * self.half;
        let (low, high) = row[..2 * self.half].split_at_mut(self.half);
        for (((a, b), &c), &s) in low.iter_mut().zip(high).zip(&self.cos[angles.clone()]).zip(&self.sin[angles]) {
            (*a, *b) = (*a * c - *b * s, *b * c + *a * s);
        }
    }

    /// Undoes [`Angles::rotate`]: a rotation by the opposite angles, which is its transpose.
    #[inline]
    pub fn rotate_back(&self, row: &mut [f32], position: usize) {
        let angles = position * self.half..(position + 1) * self.half;
        let (low, high) = row[..2 * self.half].split_at_mut(self.half);
        for (((a, b), &c), &s) in low.iter_mut().zip(high).zip(&self.cos[angles.clone()]).zip(&self.sin[angles]) {
            (*a, *b) = (*a * c + *b * s, *b * c - *a * s);
        }
    }
}
