//! The table of model families: the meaning of `config.json` and of the tensors on disk for each `model_type`.

mod gpt;
pub mod gpt_neox;
mod keys;
mod llama;
mod opt;

use super::arch::Arch;
use super::config_reader::ConfigReader;
use super::error::ModelError;
use super::mamba::MambaArch;
use super::mamba::arch::{mamba, mamba2};
use super::masked::{self, Blueprint};
use super::storage::{Layout, Storage};
use serde_json::{Map, Value};

/// Reads the network of a family; every relevant key must be read.
type ReadNetwork = fn(&mut ConfigReader) -> Result<Network, ModelError>;

/// The families by their `model_type`.
const FAMILIES: [(&str, ReadNetwork); 15] = [
    ("gpt_neox", |c| Ok(Network::Decoder(gpt_neox::arch(c)?, gpt_neox::STORAGE))),
    ("llama", |c| Ok(Network::Decoder(llama::llama(c)?, llama::STORAGE))),
    ("mistral", |c| Ok(Network::Decoder(llama::mistral(c)?, llama::STORAGE))),
    ("qwen2", |c| Ok(Network::Decoder(llama::qwen2(c)?, llama::STORAGE))),
    ("qwen3", |c| Ok(Network::Decoder(llama::qwen3(c)?, llama::STORAGE))),
    ("phi3", |c| Ok(Network::Decoder(llama::phi3(c)?, llama::STORAGE))),
    ("gemma2", |c| Ok(Network::Decoder(llama::gemma2(c)?, llama::GEMMA2_STORAGE))),
    ("opt", |c| Ok(Network::Decoder(opt::arch(c)?, opt::STORAGE))),
    ("gptj", |c| Ok(Network::Decoder(gpt::gptj(c)?, gpt::GPTJ_STORAGE))),
    ("gpt_neo", |c| Ok(Network::Decoder(gpt::gpt_neo(c)?, gpt::GPT_NEO_STORAGE))),
    ("gpt2", |c| Ok(Network::Decoder(gpt::gpt2(c)?, gpt::GPT2_STORAGE))),
    ("mamba", |c| Ok(Network::Mamba(mamba(c)?, MAMBA_STORAGE))),
    ("mamba2", |c| Ok(Network::Mamba(mamba2(c)?, MAMBA_STORAGE))),
    ("bert", |c| Ok(Network::Masked(masked::bert::blueprint(c)?))),
    ("modernbert", |c| Ok(Network::Masked(masked::modernbert::blueprint(c)?))),
];

/// The authors' own files name the embedding without an s.
const MAMBA_STORAGE: Storage = Storage {
    roots: &["backbone."],
    names: &[
        ("embedding", &["embeddings"]),
        ("embedding", &["embedding"]),
        ("layers.*.norm", &["layers.*.norm"]),
        ("layers.*.in_proj", &["layers.*.mixer.in_proj"]),
        ("layers.*.conv", &["layers.*.mixer.conv1d"]),
        ("layers.*.x_proj", &["layers.*.mixer.x_proj"]),
        ("layers.*.time_proj", &["layers.*.mixer.dt_proj"]),
        ("layers.*.gated_norm", &["layers.*.mixer.norm"]),
        ("layers.*.out_proj", &["layers.*.mixer.out_proj"]),
        // Parameters without a module of their own: A_log, D and, in Mamba-2, dt_bias.
        ("layers.*", &["layers.*.mixer"]),
        ("final_norm", &["norm_f"]),
    ],
    head: &["lm_head"],
    layout: Layout::Canonical,
};

/// Finds the family of a configuration and reads its architecture.
pub fn read_config(config: &Map<String, Value>) -> Result<ModelDescription, ModelError> {
    let mut reader = ConfigReader::new(config);
    let wanted = reader.text_or("model_type", "")?;
    let Some((model_type, read)) = FAMILIES.into_iter().find(|(model_type, _)| *model_type == wanted) else {
        let known = FAMILIES.map(|(model_type, _)| model_type).join(", ");
        return Err(reader.error("model_type", format!("`{wanted}` is not supported; supported: {known}")));
    };
    refuse_quantized(&reader, config)?;
    let network = read(&mut reader)?;
    reader.finish()?;
    Ok(ModelDescription { model_type, network })
}

/// Refuses weights that were quantised by bitsandbytes, GPTQ, AWQ and the like, whose tensors have meanings of their own.
fn refuse_quantized(reader: &ConfigReader, config: &Map<String, Value>) -> Result<(), ModelError> {
    const KEY: &str = "quantization_config";
    let Some(quantized) = config.get(KEY).filter(|value| !value.is_null()) else { return Ok(()) };
    let method = quantized.get("quant_method").and_then(Value::as_str).unwrap_or("an unnamed method");
    let reason = format!(
        "weights that are quantised by {method} are not supported; use the model before it was quantised, or a GGUF file of it"
    );
    Err(reader.error(KEY, reason))
}

/// The model that a configuration describes.
pub struct ModelDescription {
    pub model_type: &'static str,
    pub network: Network,
}

/// The canonical names of the tensors of a decoder that belong to no layer.
const AROUND_LAYERS: [&str; 10] = [
    "embedding.weight",
    "positions.weight",
    "project_in.weight",
    "project_in.bias",
    "project_out.weight",
    "project_out.bias",
    "final_norm.weight",
    "final_norm.bias",
    "head.weight",
    "head.bias",
];

/// The architecture of a model, and how its tensors are stored.
pub enum Network {
    Decoder(Arch, Storage),
    Mamba(MambaArch, Storage),
    Masked(Blueprint),
}

impl Network {
    /// The number of outputs of the head.
    pub fn vocab_size(&self) -> usize {
        match self {
            Self::Decoder(arch, _) => arch.sizes.vocab,
            Self::Mamba(arch, _) => arch.vocab_size,
            Self::Masked(blueprint) => blueprint.shape.vocab_size,
        }
    }

    /// The maximum number of tokens in a text; `None` if there is no limit.
    pub fn context(&self) -> Option<usize> {
        match self {
            Self::Decoder(arch, _) => Some(arch.sizes.context),
            Self::Mamba(..) => None,
            Self::Masked(blueprint) => Some(blueprint.shape.context),
        }
    }

    /// Returns true for a tensor that is a matrix by `Storage::is_matrix`.
    pub fn is_matrix(&self, name: &str, shape: &[usize]) -> bool {
        let is_masked = matches!(self, Self::Masked(_));
        !is_masked && shape.len() == 2 && name.ends_with(".weight") && !self.holds("positions.weight", name)
    }

    /// Returns true if a tensor on disk is the embedding of a causal model.
    pub fn is_embedding(&self, name: &str) -> bool {
        self.holds("embedding.weight", name)
    }

    /// Returns true if a causal model's head has the weights of its embedding.
    pub fn has_tied_head(&self) -> bool {
        match self {
            Self::Decoder(arch, _) => arch.head.tied,
            Self::Mamba(arch, _) => arch.tied_head,
            Self::Masked(_) => false,
        }
    }

    /// The parts of the tensor of a causal model that a tensor on disk is a part of.
    pub fn parts_with(&self, name: &str) -> Vec<String> {
        match self {
            Self::Decoder(_, storage) | Self::Mamba(_, storage) => storage.parts_with(name),
            Self::Masked(_) => Vec::new(),
        }
    }

    /// Returns true if a tensor on disk belongs to a layer of a decoder.
    pub fn is_of_layer(&self, name: &str) -> bool {
        matches!(self, Self::Decoder(..)) && !AROUND_LAYERS.iter().any(|canonical| self.holds(canonical, name))
    }

    /// Returns true if a tensor on disk is a part of a tensor of a causal model.
    fn holds(&self, canonical: &str, name: &str) -> bool {
        match self {
            Self::Decoder(_, storage) | Self::Mamba(_, storage) => {
                storage.candidates(canonical).iter().flatten().any(|table| table == name)
            }
            Self::Masked(_) => false,
        }
    }

    /// Returns true if a tensor on disk is not part of the model.
    pub fn ignores(&self, name: &str) -> bool {
        match self {
            Self::Decoder(arch, storage) => storage.ignores(arch.head.tied, name),
            Self::Mamba(arch, storage) => storage.ignores(arch.tied_head, name),
            Self::Masked(blueprint) => (blueprint.ignores)(name),
        }
    }
}
