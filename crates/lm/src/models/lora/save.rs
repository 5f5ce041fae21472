//! Adapters to files, as PEFT reads them.

use super::adapter::{CONFIG, PREFIX, TENSORS, down_name, up_name};
use super::peft_config::PeftConfig;
use super::target::TargetModule;
use crate::models::error::ModelError;
use candle_core::Tensor;
use safetensors::tensor::TensorView;
use std::collections::HashMap;

/// The files of an adapter with these tensors, `[r, in]` and `[out, r]` for each module: names and contents.
pub fn save(
    config: &PeftConfig,
    transposed: bool,
    modules: &[(&TargetModule, &Tensor, &Tensor)],
) -> Result<[(&'static str, Vec<u8>); 2], ModelError> {
    let mut tensors = Vec::new();
    for (module, down, up) in modules {
        let name = format!("{PREFIX}{}", module.name());
        tensors.push((down_name(&name), down.dims().to_vec(), bytes(down)?));
        tensors.push((up_name(&name), up.dims().to_vec(), bytes(up)?));
    }
    let failed = |error: safetensors::SafeTensorError| ModelError::Forward(format!("{TENSORS}: {error}"));
    let views = tensors.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes)?;
        Ok((name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let content = safetensors::serialize(views, Some(metadata)).map_err(failed)?;
    let settings = format!("{:#}\n", config.write(transposed)).into_bytes();
    Ok([(CONFIG, settings), (TENSORS, content)])
}

/// The elements in row-major order, little-endian.
fn bytes(tensor: &Tensor) -> Result<Vec<u8>, ModelError> {
    let values: Vec<f32> = tensor.flatten_all()?.to_vec1()?;
    Ok(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}
