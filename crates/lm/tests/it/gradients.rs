//! The differentiable form: every parameter gets a gradient, and it is the right one.

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::loss::cross_entropy;
use lm::models::arch::{
    Activation, Arch, Attention, Biases, Embedding, HeadArch, NormKind, Positions, QueryKeyNorm, Residual, Sizes,
};
use lm::models::batch::PackedBatch;
use lm::models::decoder::Decoder;
use lm::models::ops::Form;
use lm::models::rotary::Rotary;
use std::collections::BTreeMap;

const STEP: f64 = 1e-5;

const SIZES: Sizes =
    Sizes { vocab: 17, hidden: 12, layers: 2, heads: 3, kv_heads: 3, head_dim: 4, inner: 20, context: 16 };

/// One architecture for each choice that some family makes.
fn archs() -> Vec<(&'static str, Arch)> {
    let biases = Biases { qkv: true, attention_out: true, mlp: true, head: true };
    let base = || Arch { biases, ..Arch::new(SIZES) };
    let partly = Positions::Rotary(Rotary::plain(2, 10_000.0));
    let tied = HeadArch { tied: true, soft_cap: None };
    let grouped = Arch::new(Sizes { heads: 4, kv_heads: 2, ..SIZES });
    let attention = |change: fn(&mut Attention)| {
        let mut attention = grouped.attention.clone();
        change(&mut attention);
        attention
    };
    vec![
        ("GPT-NeoX", Arch { residual: Residual::Parallel, positions: partly, ..base() }),
        (
            "GPT-2",
            Arch {
                positions: Positions::Learned { offset: 0 },
                activation: Activation::GeluTanh,
                head: tied,
                ..base()
            },
        ),
        (
            "OPT-350m",
            Arch {
                residual: Residual::Post,
                final_norm: false,
                embedding: Embedding { projected: Some(8), scale: None },
                positions: Positions::Learned { offset: 2 },
                activation: Activation::Relu,
                ..base()
            },
        ),
        (
            "Qwen 3 with windows",
            Arch {
                norm: NormKind::Rms,
                gated: true,
                activation: Activation::Silu,
                attention: attention(|a| {
                    a.query_key_norm = Some(QueryKeyNorm::Head);
                    a.windows = vec![Some(3), None];
                }),
                ..grouped.clone()
            },
        ),
        (
            "Gemma 2",
            Arch {
                norm: NormKind::Rms,
                residual: Residual::Sandwich,
                gated: true,
                activation: Activation::GeluTanh,
                embedding: Embedding { projected: None, scale: Some(3.5) },
                attention: attention(|a| a.soft_cap = Some(2.0)),
                head: HeadArch { tied: true, soft_cap: Some(3.0) },
                ..grouped.clone()
            },
        ),
    ]
}

/// A decoder in f64 over variables with pseudo-random values.
fn decoder(arch: &Arch) -> (Decoder, BTreeMap<String, Var>) {
    let (mut vars, mut seed) = (BTreeMap::new(), 1u64);
    let mut source = |name: &str, shape: &[usize]| {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f64 / 16_777_216.0 - 0.5
        };
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| next()).collect();
        let var = Var::from_tensor(&Tensor::from_vec(values, shape, &Device::Cpu)?)?;
        let tensor = var.as_tensor().clone();
        vars.insert(name.to_owned(), var);
        Ok(tensor)
    };
    let decoder = Decoder::new(arch.clone(), Form::Plain, &Device::Cpu, &mut source).unwrap();
    (decoder, vars)
}

/// Mean cross-entropy over the scored tokens of two sequences of different lengths.
fn loss(decoder: &Decoder) -> Tensor {
    let batch = PackedBatch::new(&[&[3, 1, 4, 1, 5, 9, 2], &[6, 5, 3, 16]]);
    let (rows, targets) = batch.scored();
    let rows = Tensor::new(rows, &Device::Cpu).unwrap();
    let hidden = decoder.hidden(&batch, None).unwrap().index_select(&rows, 0).unwrap();
    let logits = decoder.logits(&hidden).unwrap();
    assert_eq!(logits.dtype(), DType::F64);
    cross_entropy(&logits, &Tensor::new(targets, &Device::Cpu).unwrap()).unwrap()
}

fn check(arch: &Arch) -> f64 {
    let (decoder, vars) = decoder(arch);
    let gradients = loss(&decoder).backward().unwrap();
    let mut worst = 0f64;
    for (name, var) in &vars {
        let gradient = gradients.get(var.as_tensor()).unwrap_or_else(|| panic!("{name} has no gradient"));
        let gradient: Vec<f64> = gradient.flatten_all().unwrap().to_vec1().unwrap();
        let values: Vec<f64> = var.flatten_all().unwrap().to_vec1().unwrap();
        let at_value = |index: usize, shift: f64| {
            let mut moved = values.clone();
            moved[index] += shift;
            var.set(&Tensor::from_vec(moved, var.shape(), &Device::Cpu).unwrap()).unwrap();
            loss(&decoder).to_scalar::<f64>().unwrap()
        };
        // Every element of the small parameters and an even sample of the large ones.
        for index in (0..values.len()).step_by(values.len().div_ceil(24)) {
            let numeric = (at_value(index, STEP) - at_value(index, -STEP)) / (2.0 * STEP);
            let error = (numeric - gradient[index]).abs() / (1e-3 + numeric.abs());
            // Central differences in f64 err by about STEP^2 and by 1e-16 / STEP: together below 1e-9 absolute.
            assert!(error < 1e-5, "{name}[{index}]: gradient {} but differences give {numeric}", gradient[index]);
            worst = worst.max(error);
        }
        var.set(&Tensor::from_vec(values, var.shape(), &Device::Cpu).unwrap()).unwrap();
        let key_bias = name.ends_with("qkv.bias");
        // A bias of the keys moves all scores of a query alike and so has no effect; the others do.
        assert!(key_bias || gradient.iter().any(|g| g.abs() > 1e-8), "{name} has a zero gradient");
    }
    worst
}

#[test]
fn every_parameter_has_the_gradient_that_finite_differences_give() {
    for (name, arch) in archs() {
        println!("{name}: worst relative error {:.1e}", check(&arch));
    }
}
