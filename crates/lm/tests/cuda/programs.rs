//! Every program compiles for every generation of GPUs from Turing to Blackwell.

use kernels::cuda::{self, AttentionTiling, Program, ScanTiling};
use kernels::scan::{ScanShape, TimeStep};
use lm::models::arch::{Activation, NormKind};
use lm::models::cuda::ptx;

const CAPABILITIES: [&str; 5] = ["75", "80", "89", "90", "120"];

const ACTIVATIONS: [Option<Activation>; 5] =
    [None, Some(Activation::Gelu), Some(Activation::GeluTanh), Some(Activation::Relu), Some(Activation::Silu)];

/// The names that kernels are launched by.
fn kernels(program: &str) -> &'static [&'static str] {
    match program.split('_').next().unwrap() {
        "row" => &["row_statistics"],
        "causal" => &["causal_conv"],
        "selective" => &["selective_scan"],
        "rotation" => &["rotate_f32", "rotate_f16", "rotate_bf16"],
        "norm" => &["norm_f32_f32", "norm_f32_f16", "norm_f32_bf16", "norm_f16_f16", "norm_bf16_bf16"],
        "activation" => &["activate_f32", "activate_f16", "activate_bf16", "gate_f32", "gate_f16", "gate_bf16"],
        "attention" => &["attention_f16", "attention_bf16"],
        other => panic!("{other} has no kernels that are known"),
    }
}

fn heads() -> impl Iterator<Item = AttentionTiling> {
    [8, 64, 80, 96, 120, 128, 240, 256].into_iter().filter_map(AttentionTiling::new)
}

fn scans() -> Vec<Program> {
    let shapes = [1, 5, 16, 33, 64, 128, 257, 512].into_iter().flat_map(|states| {
        [TimeStep::PerChannel, TimeStep::PerHead].map(|time_step| {
            let shape = ScanShape { heads: 2, head_dim: 64, groups: 1, states, time_step };
            cuda::selective_scan(&shape, &ScanTiling::for_shape(&shape).unwrap())
        })
    });
    shapes.collect()
}

#[test]
fn every_program_compiles_for_every_generation() {
    if !lm::models::cuda::has_compiler() {
        eprintln!("SKIPPED, nothing was checked: libnvrtc was not found");
        return;
    }
    let mut programs = scans();
    programs.extend([cuda::row_statistics(), cuda::causal_conv(), cuda::rotation()]);
    programs.extend([NormKind::Layer, NormKind::Rms].map(cuda::norm));
    programs.extend(ACTIVATIONS.map(cuda::activation));
    let attention = heads().map(|tiling| cuda::attention(&tiling));
    let generations = programs.iter().map(|program| (program, &CAPABILITIES[..]));
    let attention: Vec<Program> = attention.collect();
    // Its instructions are those of Ampere and later.
    for (program, capabilities) in generations.chain(attention.iter().map(|program| (program, &CAPABILITIES[1..]))) {
        for capability in capabilities {
            let ptx = ptx(program, capability).unwrap_or_else(|why| panic!("{} {capability}: {why}", program.name));
            for name in kernels(&program.name) {
                assert!(ptx.contains(&format!(".entry {name}(")), "{} has no kernel {name}", program.name);
            }
        }
    }
    let broken = Program { source: "no C++", ..cuda::causal_conv() };
    assert!(ptx(&broken, "90").is_err());
}
