//! The name of the mixture of types that a model is quantised to.

use super::error::GgufError;
use super::file::{GgufFile, TensorType};
use std::collections::BTreeMap;

/// The names of `general.file_type`, as llama.cpp's program for quantising takes them.
const FILE_TYPES: [(usize, &str); 17] = [
    (2, "Q4_0"),
    (3, "Q4_1"),
    (7, "Q8_0"),
    (8, "Q5_0"),
    (9, "Q5_1"),
    (10, "Q2_K"),
    (11, "Q3_K_S"),
    (12, "Q3_K_M"),
    (13, "Q3_K_L"),
    (14, "Q4_K_S"),
    (15, "Q4_K_M"),
    (16, "Q5_K_S"),
    (17, "Q5_K_M"),
    (18, "Q6_K"),
    (21, "Q2_K_S"),
    (25, "IQ4_NL"),
    (30, "IQ4_XS"),
];

impl GgufFile<'_> {
    /// Quantisation of the model: the name of its mixture of types or, where the file states none, the type of most
    /// quantised elements. `None` if no tensor is quantised, whatever the file states.
    pub fn quantization(&self) -> Result<Option<String>, GgufError> {
        let mut elements: BTreeMap<String, usize> = BTreeMap::new();
        for tensor in &self.tensors {
            if !matches!(tensor.kind, TensorType::Plain(_)) {
                *elements.entry(tensor.kind.name()).or_default() += tensor.shape.iter().product::<usize>();
            }
        }
        let main = elements.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name);
        let stated = self.metadata.count("general.file_type")?;
        let named = FILE_TYPES.iter().find(|(number, _)| Some(*number) == stated).map(|(_, name)| *name);
        Ok(main.map(|main| named.map_or(main, str::to_owned)))
    }
}
