//! Measurement of texts: every pass through the model, then the report. The service and the command line share it.

use super::continuation::{ContinuationSettings, Seed};
use super::error::MemorizationError;
use super::extraction::{TextExtraction, WindowPlace, end, is_greedy, start};
use super::greedy_run::{GreedyRun, RunFinder};
use super::passes::{PassCost, PassLayout, WindowShape};
use super::report::MemorizationReport;
use super::request::{MOST_WINDOWS, MemorizationRequest, WorkText};
use super::window_scorer::WindowScorer;
use crate::datasets::{SampleBlocks, SampleId};
use crate::engine::Stats;
use crate::scorer::{IN_FLIGHT, ScorerError, TextError};
use crate::store::StoreError;
use crate::wire::number_of;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use lm::tokenizer::Encoded;
use mia::texts::TextDigest;
use std::collections::HashMap;
use std::sync::Arc;

const TOKENIZED_AT_ONCE: usize = 16;
const CONTINUED_AT_ONCE: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemorizationProgress {
    /// Texts that are done, those of the control too.
    pub texts: usize,
    pub windows: usize,
    pub total_windows: usize,
    /// All passes.
    pub cost: PassCost,
}

/// Measures these texts and those of the control, and tells `progress` how far it is. Dropping the future ends it at once, and
/// running the request again gives the same report: windows that were scored before come from the cache of statistics. Continuations
/// are written again.
///
/// # Errors
/// [`MemorizationError`]; what is wrong with one text is part of the report.
pub async fn run(
    request: &MemorizationRequest,
    samples: &SampleBlocks,
    target: &WindowScorer<'_>,
    progress: impl Fn(MemorizationProgress),
) -> Result<MemorizationReport, MemorizationError> {
    let works = Works { request, samples, layout: target.layout(request).await? };
    works.check_control().await?;
    let mut done = works.count(target).await?;
    progress(done);
    let score = |step: Result<WorkStep, MemorizationError>| async move {
        Ok::<_, MemorizationError>(match step? {
            WorkStep::Text(text) => (WorkStep::Text(text), None),
            WorkStep::Pass(pass) => {
                let stats = target.stats(&pass.ids).await?;
                (WorkStep::Pass(pass), Some(stats))
            }
        })
    };
    let mut outcomes = std::pin::pin!(works.steps(target).map(score).buffered(IN_FLIGHT));
    let mut texts: Vec<TextExtraction> = Vec::new();
    let mut current: Option<Box<MeasuredText>> = None;
    while let Some(outcome) = outcomes.try_next().await? {
        match outcome {
            (WorkStep::Text(text), _) => {
                texts.extend(current.replace(text).map(|text| text.finish(request.run_text)));
                done.texts = texts.len();
            }
            (WorkStep::Pass(pass), stats) => {
                let missing = || ScorerError::Internal("a pass has no text, or no statistics".to_owned());
                let (text, stats) = current.as_mut().zip(stats).ok_or_else(missing)?;
                text.add(&pass, &stats, request.windows);
                done.windows += pass.windows;
            }
        }
        progress(done);
    }
    texts.extend(current.map(|text| text.finish(request.run_text)));
    if let Some(settings) = request.continuation {
        // Only now: passes that are not polled would hold the room that continuations wait for.
        works.continue_texts(settings, target, &mut texts).await?;
    }
    progress(MemorizationProgress { texts: texts.len(), ..done });
    let control = texts.split_off(texts.len() - request.control.len().min(texts.len()));
    let control = (!request.control.is_empty()).then_some(control);
    Ok(MemorizationReport::new(target.info.clone(), request, done.cost, texts, control))
}

/// The texts of a request, and then those of its control.
struct Works<'a> {
    request: &'a MemorizationRequest,
    samples: &'a SampleBlocks,
    layout: PassLayout,
}

impl Works<'_> {
    /// All texts, each with its place among the texts or those of the control.
    fn all(&self) -> impl Stream<Item = Result<(usize, WorkText), StoreError>> {
        let texts = self.samples.samples();
        let texts = texts.map_ok(|(index, sample)| (index, WorkText { id: sample.id, text: sample.text }));
        texts.chain(stream::iter(self.request.control.iter().cloned().enumerate().map(Ok)))
    }

    /// Refuses a control that has one of the texts, or a text twice.
    async fn check_control(&self) -> Result<(), MemorizationError> {
        let mut control: HashMap<TextDigest, usize> = HashMap::new();
        for (second, work) in self.request.control.iter().enumerate() {
            if let Some(first) = control.insert(TextDigest::new(&work.text), second) {
                return Err(MemorizationError::SameControl { first, second });
            }
        }
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

    /// Counts windows and passes, with none done.
    async fn count(&self, target: &WindowScorer<'_>) -> Result<MemorizationProgress, MemorizationError> {
        let windows_per_pass = self.layout.windows_per_pass;
        let mut count = MemorizationProgress {
            cost: PassCost { windows_per_pass, ..PassCost::default() },
            ..MemorizationProgress::default()
        };
        let tokens = |work: Result<(usize, WorkText), StoreError>| async move {
            let encoded = target.encode(work?.1.text.into()).await?;
            Ok::<_, MemorizationError>(encoded.map_or(0, |encoded| encoded.text().len()))
        };
        let mut texts = std::pin::pin!(self.all().map(tokens).buffered(TOKENIZED_AT_ONCE));
        let mut all = 0;
        while let Some(tokens) = texts.try_next().await? {
            all += tokens;
            count.total_windows = count.total_windows.saturating_add(self.layout.windows.count(tokens));
            if count.total_windows <= MOST_WINDOWS {
                self.layout.add_to(&mut count.cost, tokens);
            }
        }
        if count.total_windows > MOST_WINDOWS {
            return Err(MemorizationError::TooManyWindows { windows: count.total_windows, limit: MOST_WINDOWS });
        }
        count.cost.passes_over_texts = count.cost.tokens as f64 / all.max(1) as f64;
        Ok(count)
    }

    /// Continues each text that has windows.
    async fn continue_texts(
        &self,
        settings: ContinuationSettings,
        target: &WindowScorer<'_>,
        texts: &mut [TextExtraction],
    ) -> Result<(), MemorizationError> {
        let windows: Vec<Option<usize>> = texts.iter().map(|text| settings.seed_window(text)).collect();
        let shape = self.layout.windows;
        let continued = self.all().zip(stream::iter(windows)).map(|(work, window)| async move {
            let text: Arc<str> = work?.1.text.into();
            let Some(window) = window else { return Ok(None) };
            let Ok(encoded) = target.encode(Arc::clone(&text)).await? else { return Ok(None) };
            target.continued(settings, Seed::new(&encoded, window, shape), text).await.map(Some)
        });
        let mut continued = std::pin::pin!(continued.buffered(CONTINUED_AT_ONCE));
        for text in texts {
            text.continuation = continued.try_next().await?.flatten();
        }
        Ok(())
    }

    /// Everything there is to do, in order.
    fn steps(&self, target: &WindowScorer<'_>) -> impl Stream<Item = Result<WorkStep, MemorizationError>> {
        let layout = self.layout;
        let begin = move |work: Result<(usize, WorkText), StoreError>| async move {
            let (index, work) = work?;
            let text: Arc<str> = work.text.into();
            let encoded = target.encode(Arc::clone(&text)).await?;
            Ok::<_, MemorizationError>(stream::iter(steps(index, work.id, text, encoded, layout).map(Ok)))
        };
        self.all().map(begin).buffered(TOKENIZED_AT_ONCE).try_flatten()
    }
}

/// A part of the work.
enum WorkStep {
    /// A text begins, whose passes follow.
    Text(Box<MeasuredText>),
    /// A pass of the last text that began.
    Pass(WorkPass),
}

/// A text, as far as it is measured.
struct MeasuredText {
    text: Arc<str>,
    /// `None` if the text could not be tokenized.
    encoded: Option<Arc<Encoded>>,
    runs: RunFinder,
    extraction: TextExtraction,
}

/// A pass over a part of a text.
struct WorkPass {
    /// Index of its first token among those of the text, without special ones.
    start: usize,
    windows: usize,
    /// Ids that run: those that the tokenizer puts before a text, and the tokens of the windows.
    ids: Arc<[u32]>,
}

/// The steps of a text: its beginning, and each of its passes.
fn steps(
    index: usize,
    id: Option<SampleId>,
    text: Arc<str>,
    encoded: Result<Arc<Encoded>, TextError>,
    layout: PassLayout,
) -> impl Iterator<Item = WorkStep> {
    let characters = text.chars().count();
    let bare = TextExtraction { index, id, characters, ..TextExtraction::default() };
    let (extraction, encoded) = match encoded {
        Ok(encoded) => {
            let tokens = encoded.text().len();
            let error = (layout.windows.count(tokens) == 0).then(|| too_short(tokens, layout.windows));
            (TextExtraction { tokens: Some(tokens), error, ..bare }, Some(encoded))
        }
        Err(error) => (TextExtraction { error: Some(error), ..bare }, None),
    };
    let passes = encoded.clone().into_iter().flat_map(move |encoded| {
        let all = encoded.text();
        let specials = encoded.ids[..encoded.specials_before].to_vec();
        layout.passes(all.clone()).map(move |(tokens, windows)| {
            let start = tokens.start - all.start;
            WorkStep::Pass(WorkPass { start, windows, ids: [&specials, &encoded.ids[tokens]].concat().into() })
        })
    });
    let text = MeasuredText { text, encoded, runs: RunFinder::default(), extraction };
    std::iter::once(WorkStep::Text(Box::new(text))).chain(passes)
}

impl MeasuredText {
    /// Adds the windows of a pass, whose statistics end with those of its last window's suffix.
    fn add(&mut self, pass: &WorkPass, stats: &Stats, shape: WindowShape) {
        let WindowShape { prefix, suffix, stride, .. } = shape;
        let Some(offsets) = self.encoded.as_ref().map(|encoded| &encoded.offsets[encoded.text()]) else { return };
        // Statistics of the tokens after the pass's first prefix.
        let predicted = suffix + (pass.windows - 1) * stride;
        let stats = &stats[stats.len().saturating_sub(predicted)..];
        for window in 0..pass.windows {
            let start = pass.start + window * stride;
            let given = (window > 0).then_some(prefix + window * stride);
            let place = WindowPlace { given, ..WindowPlace::new(&offsets[start..], shape) };
            self.extraction.add(place, &stats[window * stride..window * stride + suffix]);
        }
        for (token, stats) in (pass.start + prefix..).zip(stats) {
            self.runs.add(token, is_greedy(stats));
        }
    }

    /// The text with all that its windows amount to.
    fn finish(self, run_text: bool) -> TextExtraction {
        let run = self.runs.longest().zip(self.encoded).filter(|_| self.extraction.error.is_none());
        let longest_run = run.map(|(tokens, encoded)| {
            let offsets = &encoded.offsets[encoded.text()][tokens.clone()];
            let end = end(offsets).unwrap_or(0);
            let start = start(offsets).unwrap_or(end);
            let text = || self.text.chars().skip(start).take(end - start).collect();
            GreedyRun { start, end, tokens: tokens.len(), text: run_text.then(text) }
        });
        TextExtraction { longest_run, ..self.extraction }.summed_up()
    }
}

fn too_short(tokens: usize, WindowShape { prefix, suffix, .. }: WindowShape) -> TextError {
    let tokens = number_of(tokens, "token");
    let detail = format!("the text has {tokens}; a window takes {prefix} for the prefix and {suffix} to follow");
    TextError::whole("too_short", detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mia::TokenStats;

    fn encoded(specials: (usize, usize), offsets: &[(usize, usize)]) -> Encoded {
        let ids: Vec<u32> = (100..100 + offsets.len() as u32).collect();
        Encoded { ids: ids.into(), offsets: offsets.to_vec(), specials_before: specials.0, specials_after: specials.1 }
    }

    fn shape(prefix: usize, suffix: usize, stride: usize) -> WindowShape {
        WindowShape { prefix, suffix, stride, ..WindowShape::default() }
    }

    /// Measures a text of these tokens, whose log-probabilities come in order of the passes' tokens, and are greedy from -1 on.
    fn measured(
        encoded: Encoded,
        layout: PassLayout,
        log_p: impl Fn(usize, u32) -> f64,
    ) -> (TextExtraction, Vec<Vec<u32>>) {
        let (mut text, mut ids) = (None::<Box<MeasuredText>>, Vec::new());
        for step in steps(0, None, "abcdefgh".into(), Ok(Arc::new(encoded)), layout) {
            match step {
                WorkStep::Text(begun) => text = Some(begun),
                WorkStep::Pass(pass) => {
                    ids.push(pass.ids.to_vec());
                    let stats = pass.ids.iter().enumerate().skip(1).map(|(place, id)| {
                        let lp = log_p(place, *id);
                        TokenStats { lp, mu: -2.0, var: 1.0, max_lp: lp.max(-1.0) }
                    });
                    let stats: Stats = stats.collect::<Vec<_>>().into();
                    text.as_mut().unwrap().add(&pass, &stats, layout.windows);
                }
            }
        }
        (text.unwrap().finish(true), ids)
    }

    fn places(text: &TextExtraction) -> Vec<(usize, usize, usize)> {
        text.windows.iter().map(|window| (window.start, window.suffix_start, window.end)).collect()
    }

    #[test]
    fn every_pass_begins_with_what_stands_before_a_text_and_none_has_what_stands_after() {
        let offsets = [(0, 0), (0, 2), (2, 3), (3, 5), (5, 6), (6, 8), (0, 0)];
        let layout = PassLayout::new(shape(2, 1, 2), 1, 100);
        let (text, ids) = measured(encoded((1, 1), &offsets), layout, |_, _| -3.0);
        assert_eq!(ids, [[100, 101, 102, 103], [100, 103, 104, 105]]);
        assert_eq!(places(&text), [(0, 3, 5), (3, 6, 8)]);
        assert_eq!(text.longest_run, None);
    }

    #[test]
    fn without_special_tokens_a_window_is_its_tokens() {
        // Two tokens share the character at 1, and one stands for none.
        let offsets = [(0, 1), (1, 2), (1, 2), (0, 0), (2, 4)];
        let layout = PassLayout::new(shape(1, 2, 1), 0, 100);
        let (text, ids) = measured(encoded((0, 0), &offsets), layout, |_, _| -3.0);
        assert_eq!(places(&text), [(0, 1, 2), (1, 1, 2), (1, 2, 4)]);
        assert_eq!(ids[2], [102, 103, 104]);
    }

    #[test]
    fn windows_of_a_shared_pass_have_the_statistics_of_their_suffixes() {
        let offsets: Vec<(usize, usize)> = (0..8).map(|token| (token, token + 1)).collect();
        let layout = PassLayout::new(shape(2, 2, 1), 0, 100);
        // The log-probability of the token 100 + i is -i.
        let (text, ids) = measured(encoded((0, 0), &offsets), layout, |_, id| -f64::from(id - 100));
        assert_eq!(ids, [vec![100, 101, 102, 103, 104], vec![102, 103, 104, 105, 106], vec![104, 105, 106, 107]]);
        let windows: Vec<_> = text.windows.iter().map(|window| (window.start, window.log_p, window.given)).collect();
        let expected = [(0, -5.0, None), (1, -7.0, Some(3)), (2, -9.0, None), (3, -11.0, Some(3)), (4, -13.0, None)];
        assert_eq!(windows, expected);
    }

    #[test]
    fn a_token_counts_in_the_longest_run_as_in_the_pass_that_gives_it_most() {
        let offsets: Vec<(usize, usize)> = (0..8).map(|token| (token, token + 1)).collect();
        let layout = PassLayout::new(shape(2, 2, 1), 0, 100);
        // The tokens 3 to 6 are greedy but for the token 4 in the second pass, where it comes first after the prefix.
        let greedy =
            |place: usize, id: u32| if (103..=106).contains(&id) && !(place == 2 && id == 104) { -0.5 } else { -3.0 };
        let (text, _) = measured(encoded((0, 0), &offsets), layout, greedy);
        let run = GreedyRun { start: 3, end: 7, tokens: 4, text: Some("defg".to_owned()) };
        assert_eq!(text.longest_run, Some(run));
    }

    #[test]
    fn a_text_without_a_window_says_why() {
        let text = |encoded: Result<Encoded, TextError>| {
            let layout = PassLayout::new(WindowShape::default(), 0, 1_000);
            let mut steps = steps(7, None, "caf\u{e9}".into(), encoded.map(Arc::new), layout);
            let Some(WorkStep::Text(text)) = steps.next() else { panic!("no text") };
            assert!(steps.next().is_none());
            text.finish(true)
        };
        let short = text(Ok(encoded((0, 0), &[(0, 4)])));
        assert_eq!((short.index, short.tokens, short.characters), (7, Some(1), 4));
        let error = short.error.unwrap();
        assert_eq!(
            (&*error.code, &*error.detail),
            ("too_short", "the text has 1 token; a window takes 50 for the prefix and 50 to follow")
        );
        let failed = text(Err(TextError::whole("untokenizable", "why".to_owned())));
        assert_eq!((failed.tokens, failed.error.unwrap().detail.as_str()), (None, "why"));
    }
}
