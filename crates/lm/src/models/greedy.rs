//! A step of greedy decoding by one forward pass.

use super::batch::PackedBatch;
use super::continuation::{Continuation, GreedyPrompt};
use super::error::ModelError;
use std::ops::Range;

/// Continues the prompts. `first_choices` gives the model's first choices behind the rows of a batch that begin with these and
/// end with the sequence, by sequence.
///
/// # Errors
/// [`ModelError::Forward`] for a prompt without ids, and the errors of `first_choices`.
pub fn continued(
    prompts: &[&GreedyPrompt],
    first_choices: impl FnOnce(&PackedBatch, &[Range<usize>]) -> Result<Vec<Vec<u32>>, ModelError>,
) -> Result<Vec<Continuation>, ModelError> {
    if prompts.iter().any(|prompt| prompt.ids.is_empty()) {
        return Err(ModelError::Forward("a sequence without ids cannot be continued".to_owned()));
    }
    let inputs: Vec<Vec<u32>> = prompts.iter().map(|prompt| prompt.input()).collect();
    let batch = PackedBatch::new(&inputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let rows: Vec<Range<usize>> = batch
        .sequences
        .iter()
        .zip(prompts)
        .map(|(sequence, prompt)| sequence.start + prompt.ids.len() - 1..sequence.end)
        .collect();
    let choices = first_choices(&batch, &rows)?;
    Ok(prompts.iter().zip(choices).map(|(prompt, choices)| prompt.accepted(&choices)).collect())
}
