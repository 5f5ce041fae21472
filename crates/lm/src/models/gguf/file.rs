//! The header of a GGUF file: its metadata, and the place of each tensor.

use super::blocks::BlockType;
use super::cursor::Cursor;
use super::error::GgufError;
use super::metadata::Metadata;
use crate::models::torch_bin::escaped;
use kernels::packed::BlockFormat;
use safetensors::Dtype;
use std::collections::HashSet;
use std::ops::Range;
use strum::VariantArray;

const MAGIC: &[u8; 4] = b"GGUF";

/// The versions that are read; they differ in nothing that is used here.
const VERSIONS: [u32; 2] = [2, 3];

/// The alignment of files that state none, in bytes.
const ALIGNMENT: usize = 32;

/// The tensor types of ggml by their numbers. Types without a name here were removed from ggml.
const TYPES: [(u32, &str); 33] = [
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (6, "Q5_0"),
    (7, "Q5_1"),
    (8, "Q8_0"),
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (12, "Q4_K"),
    (13, "Q5_K"),
    (14, "Q6_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (30, "BF16"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
];

/// How the elements of a tensor are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TensorType {
    Plain(Dtype),
    /// Blocks that the kernels multiply by.
    Packed(BlockFormat),
    Blocks(BlockType),
}

impl TensorType {
    /// The type of this number in ggml.
    fn parse(number: u32) -> Result<Self, String> {
        let name = TYPES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name);
        let supported = || {
            let plain = [Dtype::F32, Dtype::F16, Dtype::BF16].map(Self::Plain).into_iter();
            let blocks = BlockType::VARIANTS.iter().copied().map(Self::Blocks);
            plain.chain(blocks).chain(BlockFormat::VARIANTS.iter().copied().map(Self::Packed))
        };
        supported().find(|kind| Some(&*kind.name()) == name).ok_or_else(|| {
            let name = name.map_or_else(|| number.to_string(), str::to_owned);
            let supported: Vec<String> = supported().map(Self::name).collect();
            format!("type {name} is not supported; supported: {}", supported.join(", "))
        })
    }

    /// The name, as ggml and safetensors write it.
    pub fn name(self) -> String {
        match self {
            Self::Plain(dtype) => format!("{dtype:?}"),
            Self::Packed(format) => format.name().to_owned(),
            Self::Blocks(blocks) => blocks.name().to_owned(),
        }
    }

    /// Elements of a block, and its bytes; an element that is not in blocks is one.
    pub fn block(self) -> (usize, usize) {
        match self {
            Self::Plain(dtype) => (1, dtype.bitsize() / 8),
            Self::Packed(format) => (format.weights(), format.bytes()),
            Self::Blocks(blocks) => (blocks.elements(), blocks.bytes()),
        }
    }
}

/// One tensor, verified to be within the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GgufTensor {
    pub name: String,
    pub kind: TensorType,
    /// The outermost dimension first, the other way round than in the file.
    pub shape: Vec<usize>,
    /// Byte range in the file.
    pub data: Range<usize>,
}

/// The content of a file, without the weights.
#[derive(Debug)]
pub struct GgufFile<'a> {
    pub metadata: Metadata<'a>,
    pub tensors: Vec<GgufTensor>,
    /// The bytes of the whole file.
    bytes: &'a [u8],
}

impl<'a> GgufFile<'a> {
    /// Reads the header.
    pub fn read(bytes: &'a [u8]) -> Result<Self, GgufError> {
        let mut cursor = Cursor::new(bytes);
        if cursor.array::<4>()? != *MAGIC {
            return Err(GgufError::new("not a GGUF file: it does not begin with `GGUF`"));
        }
        check_version(cursor.u32()?)?;
        let (tensors, values) = (cursor.u64()?, cursor.u64()?);
        let metadata = Metadata::read(&mut cursor, values)?;
        check_parts(&metadata)?;
        let mut names = HashSet::new();
        let mut listed = Vec::new();
        for _ in 0..tensors {
            let tensor = read_tensor(&mut cursor)?;
            if !names.insert(tensor.name.clone()) {
                return Err(GgufError::tensor(&tensor.name, "is listed twice"));
            }
            listed.push(tensor);
        }
        place(&mut listed, &metadata, cursor.position(), bytes.len())?;
        Ok(Self { metadata, tensors: listed, bytes })
    }

    pub fn tensor(&self, name: &str) -> Option<&GgufTensor> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }

    /// The elements of a tensor in single precision.
    pub fn floats(&self, tensor: &GgufTensor) -> Result<Vec<f32>, GgufError> {
        match tensor.kind {
            TensorType::Plain(Dtype::F32) => {
                let elements = self.bytes[tensor.data.clone()].as_chunks().0;
                Ok(elements.iter().map(|element| f32::from_le_bytes(*element)).collect())
            }
            other => Err(GgufError::tensor(&tensor.name, format!("expected type F32, found {}", other.name()))),
        }
    }
}

fn check_version(version: u32) -> Result<(), GgufError> {
    if VERSIONS.contains(&version) {
        return Ok(());
    }
    Err(GgufError::new(if VERSIONS.contains(&version.swap_bytes()) {
        "the file is big-endian, which is not supported; convert it with `gguf-convert-endian`".to_owned()
    } else {
        format!("version {version} of the format is not supported; supported: 2, 3. Convert the model again")
    }))
}

/// Refuses files that are a part of a model, or none.
fn check_parts(metadata: &Metadata) -> Result<(), GgufError> {
    let parts = metadata.count("split.count")?.unwrap_or(1);
    if parts > 1 {
        let reason = format!("the model is split into {parts} files; join them with `llama-gguf-split --merge`");
        return Err(GgufError::key("split.count", reason));
    }
    match metadata.text("general.type")? {
        None | Some("model") => Ok(()),
        Some(other) => Err(GgufError::key("general.type", format!("the file holds a {other}, not a model"))),
    }
}

/// Reads an entry of the list of tensors; its `data` begins at its offset behind the header.
fn read_tensor(cursor: &mut Cursor) -> Result<GgufTensor, GgufError> {
    const MOST_DIMENSIONS: u32 = 4;
    let name = cursor.text()?;
    let error = |reason: String| GgufError::tensor(name, reason);
    let dimensions = cursor.u32()?;
    if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
        return Err(error(format!("has {dimensions} dimensions; expected 1 to {MOST_DIMENSIONS}")));
    }
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        let size = cursor.u64()?;
        shape.push(usize::try_from(size).map_err(|_| error(format!("has a dimension of {size}")))?);
    }
    let kind = TensorType::parse(cursor.u32()?).map_err(error)?;
    let start = cursor.u64()?;
    let (elements, bytes) = kind.block();
    let row = shape[0];
    if !row.is_multiple_of(elements) {
        return Err(error(format!("rows of {row} elements are not whole {} blocks of {elements}", kind.name())));
    }
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
    let length = count.and_then(|count| (count / elements).checked_mul(bytes));
    let length = length.ok_or_else(|| error(format!("shape {shape:?} is larger than any memory")))?;
    let start = usize::try_from(start).ok().filter(|start| start.checked_add(length).is_some());
    let start = start.ok_or_else(|| error("is outside the file".to_owned()))?;
    shape.reverse();
    Ok(GgufTensor { name: name.to_owned(), kind, shape, data: start..start + length })
}

/// Moves the tensors to their places behind the header, which must be aligned, within the file and apart from each other.
fn place(tensors: &mut [GgufTensor], metadata: &Metadata, header: usize, length: usize) -> Result<(), GgufError> {
    const KEY: &str = "general.alignment";
    let alignment = metadata.count(KEY)?.unwrap_or(ALIGNMENT);
    if !alignment.is_power_of_two() {
        return Err(GgufError::key(KEY, format!("{alignment} is not a power of two")));
    }
    let base = header.checked_next_multiple_of(alignment);
    for tensor in tensors.iter_mut() {
        let Range { start, end } = tensor.data;
        if !start.is_multiple_of(alignment) {
            return Err(GgufError::tensor(&tensor.name, format!("offset {start} is no multiple of {alignment}")));
        }
        let moved = |position: usize| base?.checked_add(position).filter(|moved| *moved <= length);
        let (Some(start), Some(end)) = (moved(start), moved(end)) else {
            let reason = format!("is not within the file, which has {length} bytes; was all of it downloaded?");
            return Err(GgufError::tensor(&tensor.name, reason));
        };
        tensor.data = start..end;
    }
    let mut places: Vec<&GgufTensor> = tensors.iter().collect();
    places.sort_unstable_by_key(|tensor| (tensor.data.start, tensor.data.end));
    match places.iter().zip(&places[1.min(places.len())..]).find(|(one, next)| one.data.end > next.data.start) {
        Some((one, next)) => Err(GgufError::tensor(&next.name, format!("overlaps tensor `{}`", escaped(&one.name)))),
        None => Ok(()),
    }
}
