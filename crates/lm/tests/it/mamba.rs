//! Mamba and Mamba-2 in shapes that the goldens lack: both forms against each other, and independence of the batch.

use crate::common::goldens::directory;
use crate::common::{bits, stats_columns};
use candle_core::{DType, Device, Tensor};
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::mamba::Mamba;
use lm::models::mamba::arch::{Generation, MambaArch};
use lm::models::ops::{Form, Multiply};
use lm::models::{CausalLm, ModelError};

/// Two f32 forwards of random models, whose statistics reach some tens: each errs by a few 1e-6 of that.
const FORMS: f64 = 2e-4;

const GOLDENS: [&str; 2] = ["mamba", "mamba2"];

fn golden(name: &str, form: Form) -> Box<dyn CausalLm> {
    let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory(name))).unwrap();
    checkpoint.load_in(form, DType::F32, &Device::Cpu).unwrap().causal().unwrap()
}

/// A model with pseudo-random weights of a size that keeps states and logits in a realistic range.
fn random(arch: &MambaArch, form: Form) -> Mamba {
    let mut seed = 1u64;
    let mut source = |name: &str, shape: &[usize]| -> Result<Tensor, ModelError> {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 40) as f32 / 16_777_216.0 - 0.5
        };
        let centre = match name.rsplit_once("norm.").map_or(name, |_| "norm") {
            "norm" => 1.0,
            name if name.ends_with("time_proj.bias") || name.ends_with("dt_bias") => -3.0,
            name if name.ends_with("A_log") => 0.7,
            _ => 0.0,
        };
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| centre + 1.5 * next()).collect();
        Ok(Tensor::from_vec(values, shape, &Device::Cpu)?)
    };
    Mamba::new(arch.clone(), form, &Device::Cpu, &mut source).unwrap()
}

/// Shapes with every width that is no multiple of a block, kernels of 1 and 5, with and without biases.
fn odd_shapes() -> Vec<MambaArch> {
    let first = |hidden_size, state_size, conv_kernel, time_step_rank, bias| MambaArch {
        vocab_size: 61,
        hidden_size,
        layers: 2,
        intermediate_size: 2 * hidden_size,
        state_size,
        conv_kernel,
        norm_eps: 1e-5,
        projection_bias: bias,
        conv_bias: !bias,
        tied_head: bias,
        generation: Generation::Mamba { time_step_rank },
    };
    let second = |heads, head_dim, groups, state_size, limit| {
        let hidden_size = heads * head_dim / 2;
        let generation = Generation::Mamba2 { heads, head_dim, groups, time_step_limit: limit };
        MambaArch { generation, ..first(hidden_size, state_size, 4, 1, head_dim == 40) }
    };
    vec![
        first(16, 16, 4, 1, false),
        first(21, 5, 1, 2, true),
        first(50, 3, 5, 4, false),
        second(4, 8, 2, 16, (0.0, f64::INFINITY)),
        second(6, 40, 3, 7, (0.0, f64::INFINITY)),
        second(2, 64, 1, 33, (0.02, 0.2)),
    ]
}

fn ids(length: usize, salt: usize, vocab: usize) -> Vec<u32> {
    (0..length).map(|t| ((salt * 7919 + t * 104_729 + t * t * 31 + 17) % vocab) as u32).collect()
}

/// The largest difference between two columns, which must be as long as each other.
fn worst(what: &str, got: &[f64], want: &[f64], tolerance: f64) -> f64 {
    assert_eq!(got.len(), want.len(), "{what}: scored tokens");
    got.iter().zip(want).fold(0.0, |worst, (got, want)| {
        assert!((got - want).abs() <= tolerance, "{what}: {got} but wanted {want}");
        worst.max((got - want).abs())
    })
}

#[test]
fn both_forms_agree_on_models_of_odd_shapes() {
    for arch in odd_shapes() {
        let sequences: Vec<_> = [40, 1, 0, 2, 65, 7].iter().enumerate().map(|(i, &n)| ids(n, i, 61)).collect();
        let batch: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
        let fused = random(&arch, Form::Fused(Multiply::Gemm)).token_stats(&batch).unwrap();
        let plain = random(&arch, Form::Plain).token_stats(&batch).unwrap();
        let mut error = 0f64;
        for (fused, plain) in fused.iter().zip(&plain) {
            for ((column, got), (_, want)) in stats_columns(fused).into_iter().zip(stats_columns(plain)) {
                error = error.max(worst(&format!("{column} of {arch:?}"), &got, &want, FORMS));
            }
        }
        println!("{:?}: worst difference {error:.1e}", arch.generation);
    }
}

#[test]
fn neither_the_batch_nor_the_number_of_threads_changes_a_bit() {
    for (number, arch) in odd_shapes().into_iter().enumerate() {
        let model = random(&arch, Form::Fused(Multiply::Gemm));
        let sequences: Vec<_> = (0..65).map(|i| ids((i * 37) % 120, i, arch.vocab_size)).collect();
        let batch: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| model.token_stats(&batch).unwrap())
        };
        let together = with(1);
        for threads in [2, 3, 7] {
            assert!(together.iter().zip(with(threads)).all(|(a, b)| bits(a) == bits(&b)), "{threads} threads");
        }
        for (sequence, together) in batch.iter().zip(&together) {
            let alone = model.token_stats(&[sequence]).unwrap().remove(0);
            assert_eq!(alone.len(), sequence.len().saturating_sub(1));
            assert!(bits(&alone) == bits(together), "model {number}: {} ids", sequence.len());
        }
    }
}

#[test]
fn a_text_sees_what_came_before_it_and_nothing_else() {
    for name in GOLDENS {
        for form in [Form::Fused(Multiply::Gemm), Form::Plain] {
            let model = golden(name, form);
            let text = ids(30, 3, 420);
            let mut changed = text.clone();
            changed[20] = (changed[20] + 1) % 420;
            let stats = model.token_stats(&[&text, &changed]).unwrap();
            // Statistics t belong to the token at t + 1, given all up to t; those at 19 score the changed token itself.
            assert!(bits(&stats[0][..19]) == bits(&stats[1][..19]), "{name} {form:?}");
            assert_eq!(stats[0][19].mu.to_bits(), stats[1][19].mu.to_bits(), "{name} {form:?}");
            let differs = |t: usize| (stats[0][t].mu - stats[1][t].mu).abs() > 1e-6;
            assert!(differs(20) && differs(28), "{name} {form:?}: the state forgets at once");
        }
    }
}

#[test]
fn a_long_text_and_texts_without_a_scored_token_are_no_trouble() {
    for name in GOLDENS {
        let model = golden(name, Form::Fused(Multiply::Gemm));
        let long = ids(2_000, 1, 420);
        let stats = model.token_stats(&[&long]).unwrap().remove(0);
        assert_eq!(stats.len(), 1_999);
        assert!(stats.iter().all(|s| s.lp.is_finite() && s.lp <= 0.0 && s.mu.is_finite() && s.var >= 0.0));
        assert!(bits(&stats[..99]) == bits(&model.token_stats(&[&long[..100]]).unwrap()[0]));
        for batch in [&[][..], &[&[][..]], &[&[5][..]], &[&[][..], &[5], &[]]] {
            let stats = model.token_stats(batch).unwrap();
            assert!(stats.len() == batch.len() && stats.iter().all(Vec::is_empty));
        }
        assert!(model.token_stats(&[&[1, 9_999]]).is_err(), "an id beyond the vocabulary");
    }
}
