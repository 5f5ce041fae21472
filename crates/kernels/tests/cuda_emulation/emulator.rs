//! Compiles and runs a GPU program as a CPU program.

use kernels::cuda::Program;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

pub struct Emulator {
    program: PathBuf,
    _directory: TempDir,
}

/// The arguments of a kernel, in order.
pub struct Arguments(Vec<Vec<u8>>);

impl Arguments {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    pub fn number(self, n: usize) -> Self {
        self.whole(&[n as u32])
    }

    pub fn floats(self, values: &[f32]) -> Self {
        self.bytes(values.iter().flat_map(|x| x.to_ne_bytes()).collect())
    }

    pub fn whole(self, values: &[u32]) -> Self {
        self.bytes(values.iter().flat_map(|x| x.to_ne_bytes()).collect())
    }

    pub fn bytes(mut self, bytes: Vec<u8>) -> Self {
        self.0.push(bytes);
        self
    }
}

impl Emulator {
    /// Compiles the kernels with the `main` of the given name in this directory.
    pub fn new(program: &Program, main: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let directory_of_sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda_emulation");
        let main = fs::read_to_string(directory_of_sources.join(main).with_extension("cpp")).unwrap();
        let source = directory.path().join("program.cpp");
        fs::write(&source, format!("#include \"matrix.hpp\"\n{}\n{main}", program.source)).unwrap();
        let compiled = directory.path().join("program");
        let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".into());
        let status = Command::new(&compiler)
            .args(["-std=c++17", "-O1", "-Wall", "-Wno-unknown-pragmas", "-Werror"])
            // Vectors that are not aligned end the program.
            .args(["-fsanitize=alignment", "-fsanitize-undefined-trap-on-error", "-I"])
            .arg(directory_of_sources)
            .args(program.options())
            .args([&source, Path::new("-o"), &compiled])
            .status();
        assert!(status.as_ref().is_ok_and(|status| status.success()), "{compiler}: {status:?}");
        Self { program: compiled, _directory: directory }
    }

    /// Runs the kernel and returns its results.
    pub fn run(&self, arguments: Arguments) -> Vec<f32> {
        let mut child = Command::new(&self.program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&(arguments.0.len() as u64).to_ne_bytes()).unwrap();
        for argument in &arguments.0 {
            input.write_all(&(argument.len() as u64).to_ne_bytes()).unwrap();
            input.write_all(argument).unwrap();
        }
        drop(input);
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        assert!(child.wait().unwrap().success());
        output.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes)).collect()
    }
}
