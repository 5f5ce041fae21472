//! The values a pickle makes. They refer to each other by number and lie in one list, so that neither nesting nor a value
//! that holds itself needs recursion, and so that a value used twice is never copied.

use super::globals::Global;
use safetensors::Dtype;

/// The place of a value in the list of values.
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
    Storage(Box<Storage<'a>>),
    Tensor(Box<View<'a>>),
}

/// The bytes that tensors lie in, as the pickle tells of them.
#[derive(Clone, Debug)]
pub struct Storage<'a> {
    pub dtype: Dtype,
    /// The name of the zip's entry within `data/`.
    pub key: &'a str,
    /// Elements.
    pub count: i64,
}

/// A tensor as the pickle tells of it; nothing is checked against the storage yet.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub storage: Storage<'a>,
    /// Elements of the storage before the first of the tensor.
    pub offset: i64,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
}

impl Value<'_> {
    /// For messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool => "a boolean",
            Self::Float | Self::Int(_) => "a number",
            Self::Text(_) => "a text",
            Self::Tuple(_) => "a tuple",
            Self::List(_) => "a list",
            Self::Dict(_) => "a dictionary",
            Self::Global(_) => "a class or function",
            Self::Storage(_) => "a storage",
            Self::Tensor(_) => "a tensor",
        }
    }
}
