//! Gradients by kernels against those by candle's operations, which finite differences confirm in f64.

use super::{Form, Linear, Multiply, Norm, Weight, activate, gate};
use crate::models::arch::{Activation, NormKind};
use crate::models::attention::AttentionPlan;
use crate::models::batch::PackedBatch;
use crate::models::rotary::{Rotary, RotaryTable};
use candle_core::{DType, Device, Tensor, Var};
use kernels::attention::{AttentionShape, Visibility};
use kernels::packed::{BlockFormat, Isa, Packed, Products};

fn values(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / 16_777_216.0 * 6.0 - 3.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn tensor(shape: &[usize], seed: u64, dtype: DType) -> Tensor {
    let tensor = Tensor::from_vec(values(shape.iter().product(), seed), shape, &Device::Cpu).unwrap();
    tensor.to_dtype(dtype).unwrap()
}

/// The result of a function of one variable, and the gradient of the result's product with fixed numbers.
fn run(shape: [usize; 2], dtype: DType, function: &dyn Fn(&Tensor, DType) -> Tensor) -> [Vec<f64>; 2] {
    let x = Var::from_tensor(&tensor(&shape, 1, dtype)).unwrap();
    let y = function(x.as_tensor(), dtype);
    let weights = tensor(y.dims(), 2, dtype);
    let gradients = y.mul(&weights).unwrap().sum_all().unwrap().backward().unwrap();
    let numbers = |t: &Tensor| t.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1().unwrap();
    [numbers(&y), numbers(gradients.get(&x).expect("a gradient"))]
}

/// In f32 the plain form runs on kernels, in f64 in candle's operations.
fn assert_same(name: &str, shape: [usize; 2], function: &dyn Fn(&Tensor, DType) -> Tensor) {
    let (kernels, reference) = (run(shape, DType::F32, function), run(shape, DType::F64, function));
    for (what, (ours, theirs)) in ["value", "gradient"].iter().zip(kernels.iter().zip(&reference)) {
        let size = theirs.iter().map(|x| x * x).sum::<f64>().sqrt();
        let error = ours.iter().zip(theirs).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt() / size;
        // f32 rounds to 6e-8; the sums here have up to some hundred terms of both signs.
        assert!(error < 3e-6, "{name}: the {what} is off by {error:.1e}");
    }
}

#[test]
fn activations_and_gates() {
    for activation in [Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu] {
        assert_same(&format!("{activation:?}"), [37, 50], &|x, _| {
            activate(activation, x.clone(), Form::Plain).unwrap()
        });
        assert_same(&format!("gated {activation:?}"), [9, 34], &|x, _| gate(activation, x, Form::Plain).unwrap());
    }
}

#[test]
fn norms() {
    for kind in [NormKind::Layer, NormKind::Rms] {
        assert_same(&format!("{kind:?}"), [21, 48], &|x, dtype| {
            let bias = (kind == NormKind::Layer).then(|| tensor(&[48], 4, dtype));
            Norm { weight: tensor(&[48], 3, dtype), bias, kind, eps: 1e-5 }.forward(x, Form::Plain).unwrap()
        });
    }
}

#[test]
fn products() {
    assert_same("product", [19, 24], &|x, dtype| {
        let weight = Weight::Plain(tensor(&[40, 24], 3, dtype));
        Linear { weight, bias: Some(tensor(&[40], 4, dtype)) }.forward(x, Form::Plain).unwrap()
    });
}

/// Parts in blocks of one type, which could as well be one matrix.
#[test]
fn parts_have_the_products_of_the_whole() {
    let (isa, form) = (Isa::Scalar, Form::Fused(Multiply::Packed(Products::F32, Isa::Scalar)));
    let rows: Vec<Vec<u8>> =
        (0..60u8).map(|row| [[0, 0x2c].to_vec(), vec![row.wrapping_mul(37); 32]].concat()).collect();
    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
    let packed = |rows: &[&[u8]]| Packed::of_blocks(rows, 32, BlockFormat::Q8_0, isa).unwrap();
    let bias = tensor(&[60], 4, DType::F32);
    let [whole, parts] = [Weight::Packed(packed(&rows)), Weight::Parts(vec![packed(&rows[..7]), packed(&rows[7..])])]
        .map(|weight| Linear { weight, bias: Some(bias.clone()) });
    assert_eq!(whole.weight.dims().unwrap(), parts.weight.dims().unwrap());
    let x = tensor(&[9, 32], 1, DType::F32);
    let bits = |y: Tensor| y.to_vec2::<f32>().unwrap().concat().into_iter().map(f32::to_bits).collect::<Vec<_>>();
    let residual = || tensor(&[9, 60], 5, DType::F32);
    let results = |linear: &Linear| {
        let activated = linear.forward_activated(&x, Activation::Silu, form).unwrap();
        [bits(linear.forward(&x, form).unwrap()), bits(activated)]
    };
    assert_eq!(results(&whole), results(&parts));
    let sum = |linear: &Linear| linear.add_to(residual(), &x, form).unwrap().to_vec2::<f32>().unwrap().concat();
    let errors = sum(&whole).into_iter().zip(sum(&parts)).map(|(one, other)| (one - other).abs());
    // The residual is added first in the one and last in the other.
    assert!(errors.fold(0.0, f32::max) < 1e-3);
}

#[test]
fn attention() {
    let lengths = [1, 70, 9, 130];
    let ids: Vec<Vec<u32>> = lengths.iter().map(|&length| vec![0; length]).collect();
    let batch = PackedBatch::new(&ids.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let tokens = lengths.iter().sum();
    let shape = AttentionShape { heads: 4, kv_heads: 2, head_dim: 8, scale: 0.35, soft_cap: None };
    let rotary = RotaryTable::new(&Rotary::plain(6, 10_000.0));
    for (name, shape, visibility, rotary) in [
        ("attention", shape, Visibility::Past, None),
        ("rotated", shape, Visibility::Past, Some(&rotary)),
        ("window", shape, Visibility::Window(20), Some(&rotary)),
        ("soft cap", AttentionShape { soft_cap: Some(2.0), ..shape }, Visibility::Past, Some(&rotary)),
        ("every head its own", AttentionShape { kv_heads: 4, ..shape }, Visibility::Window(3), None),
    ] {
        assert_same(name, [tokens, shape.qkv_width()], &|x, _| {
            let plan = AttentionPlan::new(Form::Plain, shape, &batch, rotary, &Device::Cpu).unwrap();
            plan.forward(x, None, None, visibility).unwrap()
        });
    }
}
