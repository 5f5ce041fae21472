//! A model from files in memory: opened, loaded and run, as the service does.

use crate::goldens::Files;
use lm::models::LoadedModel;
use lm::models::device::ComputeDevice;
use lm::models::files::{GgufFiles, ModelFiles};
use lm::models::masked::{Candidates, MaskedPosition};
use pdr_audit::config::{DeviceChoice, Dtype, LayersChoice};
use pdr_audit::pool::{Declaration, LocatedFiles, Model, OpenError, Origin};
use std::sync::{Arc, OnceLock};

/// Opens and loads a model, and runs a text of two tokens through it.
///
/// # Errors
/// [`OpenError`] naming what is wrong with the files.
///
/// # Panics
/// If the model gives another number of statistics than there are tokens, or an error says nothing.
pub fn open_and_run(files: Files) -> Result<(), OpenError> {
    checked(ModelFiles::Memory(files.into()))
}

/// As [`open_and_run`], of a file in GGUF.
///
/// # Errors
/// [`OpenError`] naming what is wrong with the file.
///
/// # Panics
/// As [`open_and_run`].
pub fn open_and_run_gguf(file: &[u8]) -> Result<(), OpenError> {
    let name = "model.gguf".to_owned();
    let among = ModelFiles::Memory([(name.clone(), file.to_vec())].into());
    checked(ModelFiles::Gguf(Box::new(GgufFiles { among, name, tokenizer: None })))
}

fn checked(files: ModelFiles) -> Result<(), OpenError> {
    let result = run(files);
    if let Err(error) = &result {
        assert!(!error.to_string().is_empty(), "{error:?}");
    }
    result
}

fn run(files: ModelFiles) -> Result<(), OpenError> {
    let declaration = Declaration {
        base: None,
        id: "fuzzed".to_owned(),
        origin: Origin::Files(files.clone()),
        dtype: Dtype::Auto,
        layers: LayersChoice::Auto,
        reference: None,
        eager: false,
        pinned: false,
        devices: vec![0],
    };
    let model = Model::open(&declaration, LocatedFiles { files, commit: None }, devices(), None)?;
    let loaded = (model.load)(0)?;
    if model.vocab_size < 2 || model.longest < 2 {
        return Ok(());
    }
    match loaded {
        LoadedModel::Causal(network) => {
            let stats = network.token_stats(&[&[0, 1]])?;
            assert_eq!(stats.iter().map(Vec::len).collect::<Vec<_>>(), [1]);
        }
        LoadedModel::Masked(network) => {
            let candidates = Candidates { mask: 0, allowed: [true].into(), best: 1 };
            let masked = MaskedPosition { ids: [0, 1].into(), position: 1, candidates: candidates.into() };
            assert_eq!(network.fill(&[&masked])?.len(), 1);
        }
    }
    Ok(())
}

/// The CPU, with one thread.
fn devices() -> &'static Arc<[ComputeDevice]> {
    static DEVICES: OnceLock<Arc<[ComputeDevice]>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let cpu = ComputeDevice::open(DeviceChoice::Cpu).expect("the CPU is there");
        [cpu.with_threads(1)].into()
    })
}
