//! The texts of a file to measure for what a model has memorized: those of samples, or the whole of a plain text.

use super::input::InputArgs;
use super::source::SampleSource;
use super::{corpus, samples};
use crate::datasets::SampleId;
use crate::memorization::WorkText;
use anyhow::{Context, Result, ensure};

/// The texts of the file. A plain text has the name of its file as id.
///
/// # Errors
/// Where the file cannot be read, a record is no sample, or there is none.
pub fn read(args: &InputArgs) -> Result<Vec<WorkText>> {
    let plain = match SampleSource::is_on_hub(&args.file) {
        true => None,
        false => corpus::whole_text(&args.file, &args.reader).with_context(|| args.unreadable())?,
    };
    if let Some(text) = plain {
        let id = args.file.file_name().map(|name| SampleId::Text(name.to_string_lossy().into_owned()));
        return Ok(vec![WorkText { id, text }]);
    }
    let read = samples::read_all(args, &args.reader.options(None, false, None))?;
    ensure!(!read.is_empty(), "{}: there are no texts", args.file.display());
    Ok(read.into_iter().map(|(_, read)| WorkText { id: read.sample.id, text: read.sample.text }).collect())
}
