//! Dropout from a seeded stream (Srivastava et al. 2014).

use candle_core::{Result, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::cell::RefCell;
use std::rc::Rc;

/// Zeroes each element with probability `share`, and scales the others by `1 / (1 - share)`. Clones draw from the same
/// stream, so the same calls in the same order drop the same elements on every machine.
#[derive(Clone)]
pub struct Dropout {
    share: f64,
    random: Rc<RefCell<ChaCha8Rng>>,
}

impl Dropout {
    /// `None` where nothing is dropped.
    pub fn new(share: f64, random: ChaCha8Rng) -> Option<Self> {
        (share > 0.0).then(|| Self { share, random: Rc::new(RefCell::new(random)) })
    }

    /// x with other elements dropped at each call.
    pub fn apply(&self, x: &Tensor) -> Result<Tensor> {
        let mut random = self.random.borrow_mut();
        let kept = (1.0 / (1.0 - self.share)) as f32;
        // 16 bits for each element: shares are hundredths, and a mask is as large as its input.
        let limit = (self.share * 65_536.0).round() as u32;
        let mut mask = Vec::with_capacity(x.elem_count());
        let mut bits = 0;
        for index in 0..x.elem_count() {
            bits = if index % 2 == 0 { random.next_u32() } else { bits >> 16 };
            mask.push(if bits & 0xFFFF < limit { 0.0 } else { kept });
        }
        x.mul(&Tensor::from_vec(mask, x.shape(), x.device())?.to_dtype(x.dtype())?)
    }
}
