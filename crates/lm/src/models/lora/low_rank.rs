//! Changes of rank r, as the decoder applies them.

use super::target::LayerProjection;
use crate::models::ops::{Form, Linear, Multiply, Weight};
use candle_core::{D, Result, Tensor};
use kernels::packed::{Isa, Products};
use kernels::simd::Level;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use strum::EnumCount;

/// The change of one projection: x `[tokens, in]` to `up (down x)`, `[tokens, out]`.
pub struct LowRank {
    /// `[r, in]` each; their results stand side by side. Several of them only while tuning, when each has an input of its
    /// own.
    down: Vec<Linear>,
    /// `[out, r of all]`, with the scale.
    up: Linear,
    dropout: Option<Dropout>,
    form: Form,
}

/// The changes of a layer, by projection.
#[derive(Default)]
pub struct LayerAdapter([Option<LowRank>; LayerProjection::COUNT]);

/// The changes of all layers, on a device and in the form of a model.
pub struct LoadedAdapter {
    pub layers: Vec<LayerAdapter>,
}

impl LowRank {
    /// A change for scoring in the form of the model: `down` `[r, in]`, `up` `[out, r]`.
    pub fn new(down: Tensor, up: Tensor, form: Form) -> Result<Self> {
        let form = precise(form);
        // The bits of a product with a single row depend on the batch.
        let (down, up) = match down.dim(0)? {
            1 => (down.pad_with_zeros(0, 0, 1)?, up.pad_with_zeros(1, 0, 1)?.contiguous()?),
            _ => (down, up),
        };
        let linear = |tensor| Ok::<_, candle_core::Error>(Linear { weight: Weight::new(tensor, form)?, bias: None });
        Ok(Self { down: vec![linear(down)?], up: linear(up)?, dropout: None, form })
    }

    /// A change for tuning, in differentiable operations: the down-projection of every module, and the up-projections of all as
    /// one. With dropout, every module has an input of its own.
    pub fn tuned(down: Vec<Tensor>, up: Tensor, dropout: Option<Dropout>) -> Self {
        let linear = |tensor| Linear { weight: Weight::Plain(tensor), bias: None };
        Self { down: down.into_iter().map(linear).collect(), up: linear(up), dropout, form: Form::Plain }
    }

    /// `y + up (down x)`; the fused form writes into y.
    pub fn add_to(&self, y: Tensor, x: &Tensor) -> Result<Tensor> {
        let narrow = |down: &Linear| match &self.dropout {
            Some(dropout) => down.forward(&dropout.apply(x)?, self.form),
            None => down.forward(x, self.form),
        };
        let narrowed = match self.down.as_slice() {
            [down] => narrow(down)?,
            several => Tensor::cat(&several.iter().map(narrow).collect::<Result<Vec<_>>>()?, D::Minus1)?,
        };
        self.up.add_to(y, &narrowed, self.form)
    }
}

impl LayerAdapter {
    pub fn get(&self, projection: LayerProjection) -> Option<&LowRank> {
        self.0[projection as usize].as_ref()
    }

    pub fn set(&mut self, projection: LayerProjection, change: LowRank) {
        self.0[projection as usize] = Some(change);
    }

    /// `y + change(x)` where the adapter changes this projection, else `y`.
    pub fn add_to(&self, projection: LayerProjection, y: Tensor, x: &Tensor) -> Result<Tensor> {
        match self.get(projection) {
            Some(change) => change.add_to(y, x),
            None => Ok(y),
        }
    }
}

/// The form in which changes are computed beside a model in this form: narrow products cost little, so they are not rounded
/// even where the model's own are.
fn precise(form: Form) -> Form {
    match form {
        Form::Fused(Multiply::Packed(Products::Bf16, _)) => {
            let isa = Isa::best(Products::F32, Level::in_use());
            Form::Fused(isa.map_or(Multiply::Gemm, |isa| Multiply::Packed(Products::F32, isa)))
        }
        form => form,
    }
}

/// The up-projections of the modules of one projection, each `[its rows, r]`, as one matrix `[rows, r of all]`: a module
/// changes its own rows by its own columns. `order` has the row on disk of each canonical row. Differentiable.
pub fn joined_up(
    modules: &[(Range<usize>, &Tensor)],
    rows: usize,
    order: Option<&[usize]>,
    scale: f64,
) -> Result<Tensor> {
    let columns = modules.iter().map(|(own, up)| {
        let zeros = |rows: usize| Tensor::zeros((rows, up.dim(1)?), up.dtype(), up.device());
        match (own.start, rows - own.end) {
            (0, 0) => Ok((*up).clone()),
            (before, after) => Tensor::cat(&[zeros(before)?, (*up).clone(), zeros(after)?], 0),
        }
    });
    let joined = Tensor::cat(&columns.collect::<Result<Vec<_>>>()?, 1)?;
    let ordered = match order {
        Some(order) => {
            let order: Vec<u32> = order.iter().map(|&row| row as u32).collect();
            joined.index_select(&Tensor::new(order, joined.device())?, 0)?
        }
        None => joined,
    };
    ordered * scale
}

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
