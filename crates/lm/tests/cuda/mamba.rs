//! Mamba and Mamba-2 on a GPU: with the kernels, with candle's operations, and on the CPU.

use crate::{compare, gpu, noise};
use candle_core::{DType, Device, Tensor, Var};
use kernels::gemm::MatrixView;
use kernels::scan::{ScanInput, ScanShape, ScanWeights, TimeStep, selective_scan};
use lm::models::batch::PackedBatch;
use lm::models::cuda::{Columns, Scan, ScanColumns, ScanPlaces, Scans};
use lm::models::mamba::Mamba;
use lm::models::mamba::arch::{Generation, MambaArch};
use lm::models::ops::{Form, Multiply};
use lm::models::{CausalLm, ModelError};

/// As on the CPU between both forms: f32 forward passes of random models, whose statistics are as large as several
/// tens, each with a relative error of a few 1e-6. Here the products differ as well.
const FORMS: f64 = 2e-4;
const LENGTHS: [usize; 7] = [40, 1, 0, 2, 65, 7, 130];

/// A model with pseudo-random weights whose size keeps states and logits in a realistic range.
fn random(arch: &MambaArch, form: Form, device: &Device, trained: bool) -> Mamba {
    random_with_tensors(arch, form, device, trained).0
}

/// Like [`random`], also returning the tensors by name.
fn random_with_tensors(arch: &MambaArch, form: Form, device: &Device, trained: bool) -> (Mamba, Vec<(String, Tensor)>) {
    let mut tensors = Vec::new();
    let mut seed = 1;
    let mut source = |name: &str, shape: &[usize]| -> Result<Tensor, ModelError> {
        seed += 1;
        let centre = match name.rsplit_once("norm.").map_or(name, |_| "norm") {
            "norm" => 1.0,
            name if name.ends_with("time_proj.bias") || name.ends_with("dt_bias") => -3.0,
            name if name.ends_with("A_log") => 0.7,
            _ => 0.0,
        };
        let values = noise(shape.iter().product(), 0.75, seed).into_iter().map(|x| centre + x).collect();
        let tensor = Tensor::from_vec::<_, f32>(values, shape, device)?;
        let tensor = if trained { Var::from_tensor(&tensor)?.into_inner() } else { tensor };
        tensors.push((name.to_owned(), tensor.clone()));
        Ok(tensor)
    };
    let model = Mamba::new(arch.clone(), form, device, &mut source).unwrap();
    (model, tensors)
}

fn archs() -> Vec<MambaArch> {
    let first = |hidden_size, state_size, conv_kernel, time_step_rank| MambaArch {
        vocab_size: 61,
        hidden_size,
        layers: 2,
        intermediate_size: 2 * hidden_size,
        state_size,
        conv_kernel,
        norm_eps: 1e-5,
        projection_bias: conv_kernel == 5,
        conv_bias: conv_kernel != 5,
        tied_head: true,
        generation: Generation::Mamba { time_step_rank },
    };
    let second = |heads, head_dim, groups, state_size, limit| {
        let generation = Generation::Mamba2 { heads, head_dim, groups, time_step_limit: limit };
        MambaArch { generation, ..first(heads * head_dim / 2, state_size, 4, 1) }
    };
    vec![
        first(96, 16, 4, 6),
        first(21, 5, 1, 2),
        first(50, 3, 5, 4),
        second(4, 64, 1, 128, (0.0, f64::INFINITY)),
        second(6, 40, 3, 7, (0.0, f64::INFINITY)),
        second(2, 64, 1, 33, (0.02, 0.2)),
    ]
}

#[test]
fn models_by_the_kernels_by_candle_and_on_the_cpu_agree() {
    let Some(gpu) = gpu() else { return };
    for arch in archs() {
        assert!(Scans::new(&gpu, arch.scan_shape()).unwrap().is_some(), "no kernel for {arch:?}");
        let sequences: Vec<Vec<u32>> = LENGTHS
            .iter()
            .enumerate()
            .map(|(i, &n)| (0..n).map(|t| ((i * 7919 + t * 104_729 + t * t * 31 + 17) % 61) as u32).collect())
            .collect();
        let batch: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
        let stats = |model: Mamba| model.token_stats(&batch).unwrap().concat();
        let kernels = stats(random(&arch, Form::Gpu(DType::F32), &gpu, false));
        let plain = stats(random(&arch, Form::Plain, &gpu, false));
        let cpu = stats(random(&arch, Form::Fused(Multiply::Gemm), &Device::Cpu, false));
        let what = format!("{:?}", arch.generation);
        let (to_plain, to_cpu) = (compare(&kernels, &plain, FORMS, &what), compare(&kernels, &cpu, FORMS, &what));
        println!("{what}: {to_plain:.1e} from candle's operations, {to_cpu:.1e} from the CPU");
    }
}

#[test]
fn a_model_in_training_on_a_gpu_has_gradients() {
    let Some(gpu) = gpu() else { return };
    for arch in archs() {
        let (model, tensors) = random_with_tensors(&arch, Form::Plain, &gpu, true);
        let hidden = model.hidden(&PackedBatch::new(&[&[1, 2, 3, 4], &[5, 6]])).unwrap();
        let gradients = hidden.sqr().unwrap().sum_all().unwrap().backward().unwrap();
        for (name, tensor) in &tensors {
            assert!(gradients.get(tensor).is_some(), "no gradient for {name} of {:?}", arch.generation);
        }
    }
}

#[test]
fn the_scan_equals_that_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let shape = |heads, head_dim, groups, states, time_step| ScanShape { heads, head_dim, groups, states, time_step };
    for shape in [
        shape(1, 1536, 1, 16, TimeStep::PerChannel),
        shape(1, 130, 1, 5, TimeStep::PerChannel),
        shape(24, 64, 1, 128, TimeStep::PerHead),
        shape(6, 40, 3, 64, TimeStep::PerHead),
    ] {
        let ids: Vec<Vec<u32>> = LENGTHS.iter().map(|&n| vec![0; n]).collect();
        let batch = PackedBatch::new(&ids.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let (tokens, steps) = (batch.ids.len(), shape.time_steps());
        let widths = [shape.channels(), shape.channels(), steps, shape.mixing_width(), shape.mixing_width()];
        let varying: Vec<Vec<f32>> =
            widths.iter().zip(1..).map(|(width, seed)| noise(tokens * (width + 1), 1.5, seed)).collect();
        let rates = if shape.time_step == TimeStep::PerHead { steps } else { steps * shape.states };
        let a: Vec<f32> = noise(rates, 4.0, 6).iter().map(|x| -x.exp()).collect();
        let (d, bias) = (noise(steps, 1.0, 7), noise(steps, 1.0, 8));

        let mut want = vec![0f32; tokens * shape.channels()];
        let view = |i: usize| MatrixView::rows(&varying[i][1..], widths[i] + 1);
        let input = ScanInput { x: view(0), gate: view(1), time_steps: view(2), b: view(3), c: view(4) };
        let weights = ScanWeights { a: &a, d: &d, time_bias: &bias, time_limit: (0.01, 0.7) };
        selective_scan(&mut want, &input, &weights, &batch.sequences, shape);

        let tensor = |values: &[f32], shape: (usize, usize)| Tensor::from_slice(values, shape, &gpu).unwrap();
        let on_gpu: Vec<Tensor> =
            varying.iter().zip(widths).map(|(values, width)| tensor(values, (tokens, width + 1))).collect();
        let [d, time_bias] = [&d, &bias].map(|values| Tensor::from_slice(values, steps, &gpu).unwrap());
        let from = |i: usize| Columns { tensor: &on_gpu[i], first: 1 };
        let input = ScanColumns { x: from(0), gate: from(1), time_steps: from(2), b: from(3), c: from(4) };
        let a = tensor(&a, (rates / steps, steps));
        let learned = Scan { shape, a, d, time_bias, time_limit: (0.01, 0.7) };
        let scans = Scans::new(&gpu, shape).unwrap().unwrap();
        let got = scans.scan(&input, &learned, &ScanPlaces::new(&batch, &gpu).unwrap()).unwrap();
        let got: Vec<f32> = got.flatten_all().unwrap().to_vec1().unwrap();
        // f32 sums of up to 128 products of size 1 and more in different orders, and states kept over 130 tokens.
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            assert!((got - want).abs() <= 3e-5 * (1.0 + want.abs()), "{shape:?} {i}: {got} but wanted {want}");
        }
    }
}
