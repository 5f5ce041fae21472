//! Files that are not what they should be, each refused by the name of what is wrong; and how metadata are understood.

mod hostile;
mod meanings;

use super::*;

/// The content of a file, as pieces of bytes.
#[derive(Clone)]
struct Writer {
    version: u32,
    metadata: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// A metadata entry of a type with these bytes.
fn entry(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
    [&text(key), &kind.to_le_bytes()[..], value].concat()
}

fn string(key: &str, value: &str) -> Vec<u8> {
    entry(key, 8, &text(value))
}

fn count(key: &str, value: u32) -> Vec<u8> {
    entry(key, 4, &value.to_le_bytes())
}

fn number(key: &str, value: f32) -> Vec<u8> {
    entry(key, 6, &value.to_le_bytes())
}

fn flag(key: &str, value: bool) -> Vec<u8> {
    entry(key, 7, &[value.into()])
}

fn array(key: &str, kind: u32, elements: &[Vec<u8>]) -> Vec<u8> {
    let head = [&kind.to_le_bytes()[..], &(elements.len() as u64).to_le_bytes()].concat();
    entry(key, 9, &[head, elements.concat()].concat())
}

fn strings(key: &str, values: &[&str]) -> Vec<u8> {
    array(key, 8, &values.iter().map(|value| text(value)).collect::<Vec<_>>())
}

/// An entry of the list of tensors, with dimensions in the file's order.
fn tensor(name: &str, dimensions: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let sizes: Vec<u8> = dimensions.iter().flat_map(|size| size.to_le_bytes()).collect();
    let (count, kind) = ((dimensions.len() as u32).to_le_bytes(), kind.to_le_bytes());
    [&text(name), &count[..], &sizes, &kind, &offset.to_le_bytes()].concat()
}

impl Writer {
    /// A LLaMA without layers' tensors.
    fn llama() -> Self {
        let metadata = vec![
            string("general.architecture", "llama"),
            count("llama.embedding_length", 32),
            count("llama.block_count", 1),
            count("llama.attention.head_count", 4),
            count("llama.feed_forward_length", 64),
            count("llama.context_length", 128),
            number("llama.attention.layer_norm_rms_epsilon", 1e-5),
        ];
        Self { version: 3, metadata, tensors: vec![tensor("token_embd.weight", &[32, 2], 0, 0)], data: vec![0; 256] }
    }

    fn with(mut self, entry: Vec<u8>) -> Self {
        self.metadata.push(entry);
        self
    }

    fn with_tensors(self, tensors: &[Vec<u8>]) -> Self {
        Self { tensors: tensors.to_vec(), ..self }
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes_of(self.tensors.len() as u64, self.metadata.len() as u64)
    }

    /// With these counts in the header, whatever there is.
    fn bytes_of(&self, tensors: u64, metadata: u64) -> Vec<u8> {
        let head =
            [&b"GGUF"[..], &self.version.to_le_bytes(), &tensors.to_le_bytes(), &metadata.to_le_bytes()].concat();
        let mut bytes = [head, self.metadata.concat(), self.tensors.concat()].concat();
        bytes.resize(bytes.len().next_multiple_of(32), 0);
        [bytes, self.data.clone()].concat()
    }
}

/// The first error of reading a file and of making its configuration and tokenizer.
fn refusal(bytes: &[u8]) -> String {
    let all = GgufFile::read(bytes).and_then(|file| {
        file.config()?;
        file.quantization()?;
        file.rope_divisors()?;
        file.tokenizer_config()?;
        file.tokenizer()
    });
    all.expect_err("a refusal").to_string()
}
