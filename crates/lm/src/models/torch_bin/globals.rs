//! The functions and classes that a pickle of tensors may refer to.

use safetensors::Dtype;

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
