//! Every program as nvcc compiles it, for every generation of GPUs: registers, and nothing spilled to memory. It needs
//! `nvcc`, or what `NVCC` names, and is skipped without it.

use kernels::activation::Activation;
use kernels::cuda::{self, AttentionTiling, Program, ScanTiling};
use kernels::norm::NormKind;
use kernels::scan::{ScanShape, TimeStep};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Compute capabilities: Turing, Ampere, Ada, Hopper, Blackwell.
const CAPABILITIES: [u32; 5] = [75, 80, 89, 90, 120];
/// The first with the instructions of attention.
const LEAST_OF_ATTENTION: u32 = 80;

/// Maximum number of bytes that a program may spill on a generation: 0, except where ptxas has one register too few.
fn most_spilled(program: &Program, capability: u32) -> u32 {
    match (program.name.as_str(), capability) {
        ("attention_128", 120) => 4,
        ("attention_256", 120) => 8,
        _ => 0,
    }
}

fn programs() -> Vec<Program> {
    let mut programs = vec![cuda::row_statistics(), cuda::causal_conv(), cuda::rotation()];
    programs.extend([NormKind::Layer, NormKind::Rms].map(cuda::norm));
    let activations = [Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu];
    programs.push(cuda::activation(None));
    programs.extend(activations.map(|activation| cuda::activation(Some(activation))));
    for (states, time_step) in [(16, TimeStep::PerChannel), (128, TimeStep::PerHead)] {
        let shape = ScanShape { heads: 2, head_dim: 64, groups: 1, states, time_step };
        programs.push(cuda::selective_scan(&shape, &ScanTiling::for_shape(&shape).unwrap()));
    }
    let heads = [8, 64, 80, 96, 120, 128, 240, 256];
    programs.extend(heads.map(|head_dim| cuda::attention(&AttentionTiling::new(head_dim).unwrap())));
    programs
}

#[test]
#[ignore = "needs nvcc"]
fn nothing_is_spilled_on_any_generation() {
    let nvcc = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".into());
    if Command::new(&nvcc).arg("--version").output().is_err() {
        return eprintln!("SKIPPED, nothing was checked: there is no {nvcc}");
    }
    let directory = tempfile::tempdir().unwrap();
    for program in programs() {
        let source = directory.path().join("program.cu");
        fs::write(&source, format!("{}\n{}", program.intrinsics, program.source)).unwrap();
        let is_attention = program.name.starts_with("attention");
        for capability in CAPABILITIES.into_iter().filter(|&at| !is_attention || at >= LEAST_OF_ATTENTION) {
            let compiled = Command::new(&nvcc)
                .args(["-cubin", "-ftz=true", "-Xptxas", "-v", &format!("-arch=sm_{capability}")])
                .args(program.options())
                .args([source.as_path(), Path::new("-o"), &directory.path().join("program.cubin")])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&compiled.stderr);
            assert!(compiled.status.success(), "{} for {capability}: {said}", program.name);
            let number_before = |line: &str, what: &str| -> Option<u32> {
                line.split(what)
                    .next()
                    .filter(|before| before.len() < line.len())?
                    .split_whitespace()
                    .last()?
                    .parse()
                    .ok()
            };
            let spilled = said.lines().filter_map(|line| number_before(line, " bytes spill stores")).max().unwrap();
            let registers = said.lines().filter_map(|line| number_before(line, " registers")).max().unwrap();
            println!("{} for {capability}: up to {registers} registers, {spilled} bytes spilled", program.name);
            assert!(spilled <= most_spilled(&program, capability), "{} for {capability}: {said}", program.name);
        }
    }
}
