//! Both reductions compared with the definition in f64.

use super::*;
use crate::models::ops::{Form, Multiply, Weight};
use kernels::packed::{Isa, Products};
use kernels::row_statistics::Partial;
use kernels::simd::at_each_level;
use std::sync::Arc;

fn plain(weight: Tensor) -> Arc<Weight> {
    Weight::Plain(weight).into()
}

/// Deterministic pseudo-random numbers with an approximately normal distribution.
fn noise(count: usize, scale: f32, mut seed: u64) -> Vec<f32> {
    let mut uniform = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / 16_777_216.0
    };
    (0..count).map(|_| scale * ((0..6).map(|_| uniform()).sum::<f32>() - 3.0)).collect()
}

/// The definition, computed from f64 logits.
fn defined(logits: &[f64], target: usize) -> TokenStats {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lse = max + logits.iter().map(|x| (x - max).exp()).sum::<f64>().ln();
    let weighted = |f: &dyn Fn(f64) -> f64| -> f64 {
        logits.iter().filter(|x| x.is_finite()).map(|x| (x - lse).exp() * f(x - lse)).sum()
    };
    let mu = weighted(&|lp| lp);
    TokenStats { lp: logits[target] - lse, mu, var: weighted(&|lp| (lp - mu).powi(2)), max_lp: max - lse }
}

fn close(got: &TokenStats, want: &TokenStats, tolerance: f64) -> f64 {
    let pairs = [(got.lp, want.lp), (got.mu, want.mu), (got.var, want.var), (got.max_lp, want.max_lp)];
    pairs.iter().fold(0f64, |worst, (g, w)| {
        let error = (g - w).abs() / (1.0 + w.abs());
        assert!(error <= tolerance, "{got:?} against {want:?}");
        worst.max(error)
    })
}

/// `scale` spreads the logits: 0.01 is flat, 3 is spiky. Weights of size 1 / sqrt(width) keep logits near `scale`.
fn check(rows: usize, vocab: usize, scale: f32, with_bias: bool) {
    const WIDTH: usize = 24;
    let device = Device::Cpu;
    let (h, w) = (noise(rows * WIDTH, scale, 7), noise(vocab * WIDTH, 1.0, 11));
    let b = noise(vocab, scale, 13);
    let targets: Vec<u32> = (0..rows).map(|i| (i * 7919 % vocab) as u32).collect();
    let bias = with_bias.then(|| Tensor::from_slice(&b, vocab, &device).unwrap());
    let head = Head { weight: plain(Tensor::from_slice(&w, (vocab, WIDTH), &device).unwrap()), bias, soft_cap: None };
    let hidden = Tensor::from_slice(&h, (rows, WIDTH), &device).unwrap();
    let fused = cpu::logit_stats(&hidden, &head, &targets).unwrap();
    let plain = tensor::logit_stats(&hidden, &head, &targets).unwrap();
    let ways = |products| Isa::available(products).into_iter().map(move |isa| Multiply::Packed(products, isa));
    let packed: Vec<Vec<TokenStats>> = ways(Products::F32)
        .map(|multiply| {
            let form = Form::Fused(multiply);
            let weight = Weight::new(head.weight.tensor().unwrap().clone(), form).unwrap().into();
            let head = Head { weight, bias: head.bias.clone(), soft_cap: None };
            cpu::logit_stats(&hidden, &head, &targets).unwrap()
        })
        .collect();
    assert_eq!((fused.len(), plain.len()), (rows, rows));
    for (i, &target) in targets.iter().enumerate() {
        let dot = |v: usize| (0..WIDTH).map(|k| f64::from(h[i * WIDTH + k]) * f64::from(w[v * WIDTH + k])).sum::<f64>();
        let logit = |v: usize| dot(v) + if with_bias { f64::from(b[v]) } else { 0.0 };
        let want = defined(&(0..vocab).map(logit).collect::<Vec<_>>(), target as usize);
        // f32 logits of size up to 40 have 4e-6 of rounding; squares of distances up to 40 amplify it.
        close(&fused[i], &want, 3e-5);
        close(&plain[i], &want, 3e-5);
        packed.iter().for_each(|packed| _ = close(&packed[i], &want, 3e-5));
    }
}

#[test]
fn both_forms_equal_the_definition_on_flat_and_spiky_rows() {
    for (rows, vocab) in [(1, 3), (2, 16), (5, 432), (7, 513), (3, 2500)] {
        for scale in [0.01, 0.3, 3.0] {
            check(rows, vocab, scale, false);
            check(rows, vocab, scale, true);
        }
    }
}

/// The logits consist of biases only; none, some or many are not finite or not normal.
#[test]
fn the_reduction_has_the_same_bits_at_every_level() {
    let device = Device::Cpu;
    let special = [f32::NEG_INFINITY, f32::NAN, f32::INFINITY, 1e-40, -0.0, f32::MIN];
    for vocab in (1..71).chain([511, 1100]) {
        for (kinds, one_in) in [(0, 1), (1, 2), (1, 13), (6, 7)] {
            let mut logits = noise(vocab, 4.0, vocab as u64);
            let places = logits.iter_mut().step_by(one_in);
            places.zip(special[..kinds].iter().cycle()).for_each(|(logit, &special)| *logit = special);
            let head = Head {
                weight: plain(Tensor::zeros((vocab, 2), DType::F32, &device).unwrap()),
                bias: Some(Tensor::from_vec(logits, vocab, &device).unwrap()),
                soft_cap: (vocab % 2 == 0).then_some(30.0),
            };
            let hidden = Tensor::zeros((1, 2), DType::F32, &device).unwrap();
            let results = at_each_level(|| cpu::logit_stats(&hidden, &head, &[vocab as u32 / 2]).unwrap()[0]);
            // The compiler chooses the bits of a NaN.
            let bits = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
            let bits_of = |stats: &TokenStats| [stats.lp, stats.mu, stats.var, stats.max_lp].map(bits);
            for (level, stats) in &results {
                assert_eq!(bits_of(stats), bits_of(&results[0].1), "{vocab} logits at {level:?}: {stats:?}");
            }
        }
    }
}

#[test]
fn an_impossible_token_has_no_weight_and_a_nan_shows() {
    let device = Device::Cpu;
    let bias = [0.0, f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY];
    let head = |bias: &[f32]| Head {
        weight: plain(Tensor::zeros((bias.len(), 2), candle_core::DType::F32, &device).unwrap()),
        bias: Some(Tensor::new(bias, &device).unwrap()),
        soft_cap: None,
    };
    let hidden = Tensor::zeros((1, 2), candle_core::DType::F32, &device).unwrap();
    let got = logit_stats(&hidden, &head(&bias), &[2]).unwrap();
    close(&got[0], &defined(&bias.map(f64::from), 2), 1e-6);
    let got = logit_stats(&hidden, &head(&[0.0, f32::NAN]), &[0]).unwrap();
    assert!(got[0].lp.is_nan());
    assert!(logit_stats(&hidden, &head(&bias), &[4]).is_err());
}

#[test]
fn one_dominant_token_leaves_a_variance_of_zero_not_below() {
    let device = Device::Cpu;
    let mut bias = vec![-30f32; 5000];
    bias[17] = 30.0;
    let head = Head {
        weight: plain(Tensor::zeros((5000, 2), candle_core::DType::F32, &device).unwrap()),
        bias: Some(Tensor::from_vec(bias, 5000, &device).unwrap()),
        soft_cap: None,
    };
    let hidden = Tensor::zeros((1, 2), candle_core::DType::F32, &device).unwrap();
    let got = logit_stats(&hidden, &head, &[17]).unwrap()[0];
    assert!(got.var >= 0.0 && got.var < 1e-18 && got.lp <= 0.0 && got.lp > -1e-20, "{got:?}");
}

#[test]
fn tiles_of_impossible_tokens_alone_contribute_nothing() {
    let device = Device::Cpu;
    let mut bias = vec![f32::NEG_INFINITY; 5000];
    bias[4000..4003].copy_from_slice(&[1.0, 2.0, 3.0]);
    let head = |bias: &[f32]| Head {
        weight: plain(Tensor::zeros((bias.len(), 2), candle_core::DType::F32, &device).unwrap()),
        bias: Some(Tensor::new(bias, &device).unwrap()),
        soft_cap: None,
    };
    let hidden = Tensor::zeros((1, 2), candle_core::DType::F32, &device).unwrap();
    let got = logit_stats(&hidden, &head(&bias), &[4001]).unwrap();
    close(&got[0], &defined(&[1.0, 2.0, 3.0], 1), 1e-6);
    let got = tensor::reduce(&Tensor::new(&[[f32::NEG_INFINITY; 3], [1.0, f32::NEG_INFINITY, 1.0]], &device).unwrap());
    let [nothing, something]: [Partial; 2] = got.unwrap().try_into().unwrap();
    assert_eq!((nothing.max, nothing.weight, something.max, something.weight), (f64::NEG_INFINITY, 0.0, 1.0, 2.0));
    assert_eq!(nothing.join(something).weight, 2.0);
    assert_eq!(something.join(nothing).weight, 2.0);
    let got = tensor::reduce(&Tensor::new(&[[f32::NEG_INFINITY, f32::NAN], [0.0, f32::NAN]], &device).unwrap());
    assert!(got.unwrap().iter().all(|row| row.weight.is_nan()));
    // A NaN among them is propagated.
    bias[17] = f32::NAN;
    assert!(logit_stats(&hidden, &head(&bias), &[4001]).unwrap()[0].lp.is_nan());
}

/// Logits that consist of biases alone, `rows` times.
fn chosen(bias: &[f32], rows: usize) -> [Vec<choices::FirstChoice>; 2] {
    let device = Device::Cpu;
    let head = Head {
        weight: plain(Tensor::zeros((bias.len(), 2), DType::F32, &device).unwrap()),
        bias: Some(Tensor::new(bias, &device).unwrap()),
        soft_cap: None,
    };
    let hidden = Tensor::zeros((rows, 2), DType::F32, &device).unwrap();
    [cpu::first_choices(&hidden, &head).unwrap(), choices::first_choices(&hidden, &head).unwrap()]
}

#[test]
fn the_first_choice_is_the_lowest_of_the_largest() {
    for vocab in [1, 15, 16, 513, 1025, 5000] {
        for scale in [0.0, 1.0, 5.0] {
            // In halves, so that many are equal, also in different tiles.
            let bias: Vec<f32> =
                noise(vocab, scale, vocab as u64).into_iter().map(|x| (2.0 * x).round() / 2.0).collect();
            let largest = bias.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let lowest = bias.iter().position(|x| *x == largest).unwrap() as u32;
            let expected = choices::FirstChoice { logit: largest.into(), id: lowest };
            for (way, choices) in chosen(&bias, 3).into_iter().enumerate() {
                assert_eq!(choices, [expected; 3], "{vocab} {scale} way {way}");
            }
        }
    }
}

#[test]
fn the_first_choice_has_the_largest_of_products_too() {
    const WIDTH: usize = 24;
    let device = Device::Cpu;
    for (rows, vocab) in [(1, 3), (5, 432), (7, 513), (1100, 700)] {
        let (h, w) = (noise(rows * WIDTH, 1.0, 7), noise(vocab * WIDTH, 1.0, 11));
        let head = Head {
            weight: plain(Tensor::from_slice(&w, (vocab, WIDTH), &device).unwrap()),
            bias: None,
            soft_cap: Some(30.0),
        };
        let hidden = Tensor::from_slice(&h, (rows, WIDTH), &device).unwrap();
        let logits: Vec<Vec<f32>> = head.logits(&hidden).unwrap().to_vec2().unwrap();
        for choices in [cpu::first_choices(&hidden, &head).unwrap(), choices::first_choices(&hidden, &head).unwrap()] {
            assert_eq!(choices.len(), rows);
            for (choice, logits) in choices.iter().zip(&logits) {
                let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                // Other sums have other last bits.
                assert!(
                    logits[choice.id as usize] > largest - 1e-4 && (choice.logit - f64::from(largest)).abs() < 1e-4
                );
            }
        }
    }
}

#[test]
fn impossible_tokens_are_chosen_last_and_a_nan_shows() {
    let (nothing, nan) = (f32::NEG_INFINITY, f32::NAN);
    let mut late = vec![nothing; 5000];
    late[4321] = -3.0;
    for (bias, id) in [(vec![nothing, -1e30, nothing], 1), (vec![nothing; 3], 0), (late.clone(), 4321)] {
        chosen(&bias, 2).iter().flatten().for_each(|choice| assert_eq!(choice.id, id));
    }
    for place in [0, 17, 4999] {
        let mut bias = late.clone();
        bias[place] = nan;
        assert!(chosen(&bias, 2).iter().flatten().all(|choice| choice.logit.is_nan()), "{place}");
    }
}
