//! Measurement of texts: every window through the model, then the report. The service and the command line share it.

use super::error::MemorizationError;
use super::extraction::{TextExtraction, WindowPlace};
use super::report::MemorizationReport;
use super::request::{MOST_WINDOWS, MemorizationRequest, WindowShape, WorkText};
use super::window_scorer::WindowScorer;
use crate::datasets::SampleBlocks;
use crate::engine::Stats;
use crate::scorer::{IN_FLIGHT, ScorerError, TextError};
use crate::store::StoreError;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use lm::tokenizer::Encoded;
use mia::TokenStats;
use mia::texts::TextDigest;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

const TOKENIZED_AT_ONCE: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorizationProgress {
    /// Texts that are done, those of the control too.
    pub texts: usize,
    pub windows: usize,
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

/// A part of the work.
pub enum WorkStep {
    /// A text begins, whose windows follow.
    Text(TextExtraction),
    /// A window of the last text that began.
    Window(WorkWindow),
}

/// A window that is to be scored.
pub struct WorkWindow {
    pub place: WindowPlace,
    /// Ids that run: those that the tokenizer puts before a text, the prefix and the suffix.
    pub ids: Arc<[u32]>,
}

/// The steps of a text: its beginning, and each of its windows.
pub fn steps(
    index: usize,
    work: WorkText,
    encoded: Result<Arc<Encoded>, TextError>,
    shape: WindowShape,
) -> impl Iterator<Item = WorkStep> {
    let characters = work.text.chars().count();
    let bare = TextExtraction { index, id: work.id, characters, ..TextExtraction::default() };
    let (text, encoded) = match encoded {
        Ok(encoded) => {
            let tokens = encoded.text().len();
            let error = (shape.count(tokens) == 0).then(|| too_short(tokens, shape));
            (TextExtraction { tokens: Some(tokens), error, ..bare }, Some(encoded))
        }
        Err(error) => (TextExtraction { error: Some(error), ..bare }, None),
    };
    let windows = encoded.into_iter().flat_map(move |encoded| {
        shape.windows(encoded.text()).map(move |tokens| WorkStep::Window(window(&encoded, tokens, shape)))
    });
    std::iter::once(WorkStep::Text(text)).chain(windows)
}

fn too_short(tokens: usize, WindowShape { prefix, suffix, .. }: WindowShape) -> TextError {
    let detail = format!("the text has {tokens} tokens; a window takes {prefix} for the prefix and {suffix} to follow");
    TextError::whole("too_short", detail)
}

fn window(encoded: &Encoded, tokens: Range<usize>, shape: WindowShape) -> WorkWindow {
    let suffix = tokens.start + shape.prefix..tokens.end;
    let characters = characters(&encoded.offsets[tokens.clone()]);
    let suffix_start = self::characters(&encoded.offsets[suffix]).start;
    let place = WindowPlace { start: characters.start, suffix_start, end: characters.end };
    WorkWindow { place, ids: [&encoded.ids[..encoded.specials_before], &encoded.ids[tokens]].concat().into() }
}

/// The characters that tokens stand for, from the first to the last; tokens that stand for none have no place.
fn characters(offsets: &[(usize, usize)]) -> Range<usize> {
    let mut placed = offsets.iter().filter(|(start, end)| start < end);
    let Some(&(start, end)) = placed.next() else { return 0..0 };
    start..placed.next_back().map_or(end, |&(_, end)| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(specials: (usize, usize), offsets: &[(usize, usize)]) -> Encoded {
        let ids: Vec<u32> = (100..100 + offsets.len() as u32).collect();
        Encoded { ids: ids.into(), offsets: offsets.to_vec(), specials_before: specials.0, specials_after: specials.1 }
    }

    fn windows(encoded: Encoded, shape: WindowShape) -> Vec<WorkWindow> {
        let work = WorkText { id: None, text: "abcdefgh".to_owned() };
        let windows = steps(0, work, Ok(Arc::new(encoded)), shape).filter_map(|step| match step {
            WorkStep::Text(_) => None,
            WorkStep::Window(window) => Some(window),
        });
        windows.collect()
    }

    #[test]
    fn every_window_begins_with_what_stands_before_a_text_and_none_has_what_stands_after() {
        let offsets = [(0, 0), (0, 2), (2, 3), (3, 5), (5, 6), (6, 8), (0, 0)];
        let shape = WindowShape { prefix: 2, suffix: 1, stride: 2 };
        let windows = windows(encoded((1, 1), &offsets), shape);
        let ids: Vec<&[u32]> = windows.iter().map(|window| &*window.ids).collect();
        assert_eq!(ids, [[100, 101, 102, 103], [100, 103, 104, 105]]);
        let places: Vec<WindowPlace> = windows.iter().map(|window| window.place).collect();
        let place = |start, suffix_start, end| WindowPlace { start, suffix_start, end };
        assert_eq!(places, [place(0, 3, 5), place(3, 6, 8)]);
    }

    #[test]
    fn without_special_tokens_a_window_is_its_tokens() {
        // Two tokens share the character at 1, and one stands for none.
        let offsets = [(0, 1), (1, 2), (1, 2), (0, 0), (2, 4)];
        let windows = windows(encoded((0, 0), &offsets), WindowShape { prefix: 1, suffix: 2, stride: 1 });
        let places: Vec<(usize, usize, usize)> =
            windows.iter().map(|WorkWindow { place, .. }| (place.start, place.suffix_start, place.end)).collect();
        assert_eq!(places, [(0, 1, 2), (1, 1, 2), (1, 2, 4)]);
        assert_eq!(*windows[2].ids, [102, 103, 104]);
    }

    #[test]
    fn a_text_without_a_window_says_why() {
        let text = |encoded: Result<Encoded, TextError>| {
            let work = WorkText { id: None, text: "caf\u{e9}".to_owned() };
            let steps: Vec<WorkStep> = steps(7, work, encoded.map(Arc::new), WindowShape::default()).collect();
            match &steps[..] {
                [WorkStep::Text(text)] => text.clone(),
                _ => panic!("{} steps", steps.len()),
            }
        };
        let short = text(Ok(encoded((0, 0), &[(0, 4)])));
        assert_eq!((short.index, short.tokens, short.characters), (7, Some(1), 4));
        let error = short.error.unwrap();
        assert_eq!(
            (&*error.code, &*error.detail),
            ("too_short", "the text has 1 tokens; a window takes 50 for the prefix and 50 to follow")
        );
        let failed = text(Err(TextError::whole("untokenizable", "why".to_owned())));
        assert_eq!((failed.tokens, failed.error.unwrap().detail.as_str()), (None, "why"));
    }
}
