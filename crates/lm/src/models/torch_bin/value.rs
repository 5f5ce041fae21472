//! The values that a pickle creates. They refer to each other by number and are kept in one list, so that neither
//! nesting nor a value that contains itself needs recursion, and so that a value used twice is never copied.

use safetensors::Dtype;

/// The index of a value in the list of values.
pub type Id = u32;

/// One value.
#[derive(Debug)]
pub enum Value<'a> {
    None,
    Bool,
    Float,
    Int(i64),
    Text(&'a str),
    Tuple(Box<[Id]>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    Storage(Box<TorchStorage<'a>>),
    Tensor(Box<TorchView<'a>>),
}

/// The bytes that tensors are stored in, as described by the pickle.
#[derive(Clone, Debug)]
pub struct TorchStorage<'a> {
    pub dtype: Dtype,
    /// The name of the zip entry within `data/`.
    pub key: &'a str,
    /// Number of elements.
    pub count: i64,
}

/// A tensor as described by the pickle, not yet checked against its storage.
#[derive(Clone, Debug)]
pub struct TorchView<'a> {
    pub storage: TorchStorage<'a>,
    /// Elements of the storage before the first one of the tensor.
    pub offset: i64,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
}

impl Value<'_> {
    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool => "a boolean",
            Self::Float | Self::Int(_) => "a number",
            Self::Text(_) => "a string",
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dictionary",
            Self::Global(_) => "a class or function",
            Self::Storage(_) => "a storage",
            Self::Tensor(_) => "a tensor",
        }
    }
}

/// A supported function or class. "Calls" of these are implemented here; nothing else is ever called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    /// The class of a storage, which determines the type of its elements.
    Storage(Dtype),
}

/// The meaning of a qualified name, if it is supported.
pub fn known(module: &str, name: &str) -> Option<Global> {
    match (module, name) {
        ("collections", "OrderedDict") => Some(Global::OrderedDict),
        ("torch._utils", "_rebuild_tensor_v2") => Some(Global::RebuildTensor),
        ("torch._utils", "_rebuild_parameter") => Some(Global::RebuildParameter),
        ("torch", storage) => element_type(storage).map(Global::Storage),
        _ => None,
    }
}

fn element_type(storage: &str) -> Option<Dtype> {
    Some(match storage {
        "FloatStorage" => Dtype::F32,
        "HalfStorage" => Dtype::F16,
        "BFloat16Storage" => Dtype::BF16,
        "DoubleStorage" => Dtype::F64,
        "LongStorage" => Dtype::I64,
        "IntStorage" => Dtype::I32,
        "ShortStorage" => Dtype::I16,
        "CharStorage" => Dtype::I8,
        "ByteStorage" => Dtype::U8,
        "BoolStorage" => Dtype::BOOL,
        _ => return None,
    })
}
