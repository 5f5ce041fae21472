//! Every program compiles for every generation of GPUs from Turing to Blackwell.

use candle_core::cuda_backend::cudarc::nvrtc;
use pdr_audit::models::cuda::program::{self, Program, ScanTiling};
use pdr_audit::models::cuda::ptx;
use pdr_audit::models::kernels::scan::{ScanShape, TimeStep};

const CAPABILITIES: [&str; 5] = ["75", "80", "89", "90", "120"];

fn scans() -> Vec<Program> {
    let shapes = [1, 5, 16, 33, 64, 128, 257, 512].into_iter().flat_map(|states| {
        [TimeStep::PerChannel, TimeStep::PerHead].map(|time_step| {
            let shape = ScanShape { heads: 2, head_dim: 64, groups: 1, states, time_step };
            program::selective_scan(&shape, &ScanTiling::for_shape(&shape).unwrap())
        })
    });
    shapes.collect()
}

#[test]
fn every_program_compiles_for_every_generation() {
    // SAFETY: this loads NVRTC, whose initialiser is trusted.
    if !unsafe { nvrtc::sys::is_culib_present() } {
        eprintln!("SKIPPED, nothing was checked: libnvrtc was not found");
        return;
    }
    let mut programs = scans();
    programs.extend([program::row_statistics(), program::causal_conv()]);
    for program in &programs {
        for capability in CAPABILITIES {
            let ptx = ptx(program, capability).unwrap_or_else(|why| panic!("{} {capability}: {why}", program.name));
            assert!(ptx.contains(".entry"), "{}", program.name);
        }
    }
    let broken = Program { source: "no C++", ..program::causal_conv() };
    assert!(ptx(&broken, "90").is_err());
}
