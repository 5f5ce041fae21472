//! Measurement of texts: every window through the model, then the report. The service and the command line share it.

use super::error::MemorizationError;
use super::extraction::WindowPlace;
use super::report::MemorizationReport;
use super::request::{MOST_WINDOWS, MemorizationRequest, WindowShape, WorkText};
use super::text_extraction::TextExtraction;
use super::window_scorer::WindowScorer;
use super::work::{WorkStep, WorkWindow, steps};
use crate::datasets::SampleBlocks;
use crate::engine::Stats;
use crate::scorer::{IN_FLIGHT, ScorerError};
use crate::store::StoreError;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use mia::TokenStats;
use mia::texts::TextDigest;
use std::collections::HashMap;

const TOKENIZED_AT_ONCE: usize = 16;

/// Progress of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorizationProgress {
    /// Texts that are done, those of the control too.
    pub texts: usize,
    /// Windows that are done.
    pub windows: usize,
    /// All windows.
    pub total_windows: usize,
}

/// Measures these texts and those of the control, and tells `progress` how far it is. Dropping the future ends it at once, and
/// running the request again gives the same report: what was scored before comes from the cache of statistics.
///
/// # Errors
/// [`MemorizationError`]; what is wrong with one text is part of the report.
pub async fn run(
    request: &MemorizationRequest,
    samples: &SampleBlocks,
    target: &WindowScorer<'_>,
    progress: impl Fn(MemorizationProgress),
) -> Result<MemorizationReport, MemorizationError> {
    let works = Works { request, samples };
    let shape = request.windows;
    target.check(shape).await?;
    works.check_control().await?;
    let mut done = MemorizationProgress { total_windows: works.windows(target).await?, ..Default::default() };
    let score = |step: Result<WorkStep, MemorizationError>| async move {
        Ok::<_, MemorizationError>(match step? {
            WorkStep::Text(text) => DoneStep::Text(text),
            WorkStep::Window(WorkWindow { place, ids }) => DoneStep::Window(place, target.stats(&ids).await?),
        })
    };
    let mut outcomes = std::pin::pin!(works.steps(target).map(score).buffered(IN_FLIGHT));
    let mut texts: Vec<TextExtraction> = Vec::new();
    while let Some(outcome) = outcomes.try_next().await? {
        match outcome {
            DoneStep::Text(text) => {
                done.texts = texts.len();
                texts.push(text);
            }
            DoneStep::Window(place, stats) => {
                let text = texts.last_mut().ok_or_else(|| ScorerError::Internal("a window of no text".to_owned()))?;
                text.add(place, suffix(&stats, shape));
                done.windows += 1;
            }
        }
        progress(done);
    }
    progress(MemorizationProgress { texts: texts.len(), ..done });
    let mut texts: Vec<TextExtraction> = texts.into_iter().map(TextExtraction::summed_up).collect();
    let control = texts.split_off(texts.len() - request.control.len().min(texts.len()));
    let control = (!request.control.is_empty()).then_some(control);
    Ok(MemorizationReport::new(target.info.clone(), shape, texts, control))
}

/// A step that is done.
enum DoneStep {
    Text(TextExtraction),
    Window(WindowPlace, Stats),
}

/// The statistics of the suffix, which ends the window.
fn suffix(stats: &Stats, shape: WindowShape) -> &[TokenStats] {
    &stats[stats.len().saturating_sub(shape.suffix)..]
}

/// The texts of a request, and then those of its control.
struct Works<'a> {
    request: &'a MemorizationRequest,
    samples: &'a SampleBlocks,
}

impl Works<'_> {
    /// All texts, each with its place among the texts or those of the control.
    fn all(&self) -> impl Stream<Item = Result<(usize, WorkText), StoreError>> {
        let texts = self.samples.samples();
        let texts = texts.map_ok(|(index, sample)| (index, WorkText { id: sample.id, text: sample.text }));
        texts.chain(stream::iter(self.request.control.iter().cloned().enumerate().map(Ok)))
    }

    /// Refuses a control that has one of the texts.
    async fn check_control(&self) -> Result<(), MemorizationError> {
        let control = self.request.control.iter().enumerate();
        let control: HashMap<TextDigest, usize> =
            control.map(|(index, work)| (TextDigest::new(&work.text), index)).collect();
        if control.is_empty() {
            return Ok(());
        }
        let mut samples = std::pin::pin!(self.samples.samples());
        while let Some((text, sample)) = samples.try_next().await? {
            if let Some(&control) = control.get(&TextDigest::new(&sample.text)) {
                return Err(MemorizationError::SameText { control, text });
            }
        }
        Ok(())
    }

    async fn windows(&self, target: &WindowScorer<'_>) -> Result<usize, MemorizationError> {
        let shape = self.request.windows;
        let count = |work: Result<(usize, WorkText), StoreError>| async move {
            let encoded = target.encode(work?.1.text.into()).await?;
            Ok::<_, MemorizationError>(encoded.map_or(0, |encoded| shape.count(encoded.text().len())))
        };
        let counts = self.all().map(count).buffered(TOKENIZED_AT_ONCE);
        let windows = counts.try_fold(0, async |sum: usize, windows| Ok(sum.saturating_add(windows))).await?;
        if windows > MOST_WINDOWS {
            return Err(MemorizationError::TooManyWindows { windows, limit: MOST_WINDOWS });
        }
        Ok(windows)
    }

    /// Everything there is to do, in order.
    fn steps(&self, target: &WindowScorer<'_>) -> impl Stream<Item = Result<WorkStep, MemorizationError>> {
        let shape = self.request.windows;
        let begin = move |work: Result<(usize, WorkText), StoreError>| async move {
            let (index, work) = work?;
            let encoded = target.encode(work.text.as_str().into()).await?;
            Ok::<_, MemorizationError>(stream::iter(steps(index, work, encoded, shape).map(Ok)))
        };
        self.all().map(begin).buffered(TOKENIZED_AT_ONCE).try_flatten()
    }
}
