//! Checks methods against the texts of a dataset.

use super::problem::Problem;
use super::state::ApiState;
use crate::datasets::SampleBlocks;
use crate::store::DatasetRow;
use futures::TryStreamExt;
use mia::methods::{AuxiliaryPass, LabelledMethod, faults_of_texts};
use std::pin::pin;

/// Refuses methods that ask for neighbours that a text does not have, and prefixes that are texts of the dataset. Only then the
/// dataset is read, if its texts are there still.
pub async fn methods_fit(state: &ApiState, dataset: &DatasetRow, methods: &[LabelledMethod]) -> Result<(), Problem> {
    let asks = |method: &LabelledMethod| {
        let mut passes = method.method.base.passes().into_iter();
        passes.any(|(_, pass)| matches!(pass, AuxiliaryPass::Neighbors(None) | AuxiliaryPass::Prefixed(_)))
    };
    if !methods.iter().any(asks) {
        return Ok(());
    }
    let Some(samples) = SampleBlocks::stored(state.jobs.store(), dataset) else { return Ok(()) };
    let checked = tokio::time::timeout(state.request_timeout, check_samples(&samples, methods));
    checked.await.map_err(|_| Problem::deadline())?
}

async fn check_samples(samples: &SampleBlocks, methods: &[LabelledMethod]) -> Result<(), Problem> {
    let mut samples = pin!(samples.samples());
    while let Some((index, sample)) = samples.try_next().await.map_err(Problem::internal)? {
        let text = std::iter::once((sample.text.as_str(), sample.neighbors.as_deref()));
        let fault = faults_of_texts(text, |_| String::new(), methods, "/methods").into_iter().next();
        if let Some(fault) = fault {
            let is_prefix = fault.pointer.starts_with("/methods");
            let pointer = if is_prefix { fault.pointer } else { "/dataset".to_owned() };
            let detail =
                if is_prefix { "the text is also scored, so the prefix would contain it" } else { &fault.detail };
            return Err(Problem::fault(pointer, format!("sample {index} (from 0) of the dataset: {detail}")));
        }
    }
    Ok(())
}
