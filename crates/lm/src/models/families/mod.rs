//! The table of model families: the meaning of `config.json` and of the tensors on disk for each `model_type`.

mod gpt2;
mod gpt_neo;
pub mod gpt_neox;
mod gptj;
mod llama;
mod mamba;
mod network;
mod opt;
mod rope;
mod shape;
mod windows;

pub use network::{ModelDescription, Network};

use super::config_reader::ConfigReader;
use super::error::ModelError;
use super::masked;
use network::{Family, FamilyKind};
use serde_json::{Map, Value};

const FAMILIES: &[&[Family]] = &[
    &[gpt_neox::FAMILY],
    llama::FAMILIES,
    &[opt::FAMILY, gptj::FAMILY, gpt_neo::FAMILY, gpt2::FAMILY],
    mamba::FAMILIES,
    &[
        Family { model_type: "bert", kind: FamilyKind::Masked { blueprint: masked::bert::blueprint } },
        Family { model_type: "modernbert", kind: FamilyKind::Masked { blueprint: masked::modernbert::blueprint } },
    ],
];

/// Finds the family of a configuration and reads its architecture.
pub fn read_config(config: &Map<String, Value>) -> Result<ModelDescription, ModelError> {
    let mut reader = ConfigReader::new(config);
    let model_type = reader.text_or("model_type", "")?;
    let families = || FAMILIES.iter().copied().flatten();
    let Some(family) = families().find(|f| f.model_type == model_type) else {
        let known: Vec<_> = families().map(|f| f.model_type).collect();
        return Err(
            reader.error("model_type", format!("`{model_type}` is not supported; supported: {}", known.join(", ")))
        );
    };
    let network = match family.kind {
        FamilyKind::Decoder { arch, storage } => Network::Decoder(arch(&mut reader)?, storage),
        FamilyKind::Mamba { arch } => Network::Mamba(arch(&mut reader)?, mamba::STORAGE),
        FamilyKind::Masked { blueprint } => Network::Masked(blueprint(&mut reader)?),
    };
    reader.finish()?;
    Ok(ModelDescription { model_type: family.model_type, network })
}
