//! Index of all samples before they are scored: a row for each, repeated and near-duplicate texts, the digest of the whole,
//! and the features of the texts without a model.

use super::error::AuditFailure;
use super::results::SampleScores;
use super::run_event::RunEvent;
use super::text_lists::SampleTexts;
use crate::datasets::{DatasetDigest, Sample, SampleBlocks, SampleDigest, SampleId};
use crate::scorer::Workers;
use futures::StreamExt;
use mia::texts::{NearDuplicateSearch, Shingles, TextDigest, TextSketch};
use rayon::prelude::*;
use std::collections::HashMap;
use std::pin::pin;

/// Number of samples processed together.
const CHUNK: usize = 512;

/// Facts about samples before they are scored.
pub struct SampleIndex {
    /// A row for each sample with its cluster, without scores.
    pub rows: Vec<SampleScores>,
    /// True for each sample with the text, context, spans and neighbours of an earlier one.
    pub is_copy: Vec<bool>,
    /// The copies of samples that have some.
    pub copies: HashMap<usize, Vec<usize>>,
    /// The digest of the samples, as datasets are named.
    pub digest: String,
    /// The digest of each text as `cluster_digest` has it.
    pub normalized: Vec<TextDigest>,
    pub texts: SampleTexts,
}

impl SampleIndex {
    /// Reads all samples, twice if they have labels or some are alike; their rows have `columns` places. Long computations run on
    /// the workers.
    pub async fn read(
        samples: &SampleBlocks,
        columns: usize,
        workers: &Workers,
        progress: impl Fn(RunEvent),
    ) -> Result<Self, AuditFailure> {
        let first = FirstPass { columns, ..FirstPass::default() };
        let told = |first: &FirstPass| progress(RunEvent::Read { samples: first.rows.len() });
        let first = fold_samples(samples, workers, first, FirstPass::with, told).await?;
        let retained = samples.are_retained();
        let mut second = workers.run_behind(move |wanted| SecondPass::new(first, retained, wanted)).await?;
        if second.needs_texts() {
            let told = |second: &SecondPass| {
                progress(RunEvent::Read { samples: second.index.rows.len() + second.row });
            };
            let with = |second: SecondPass, chunk: Vec<(usize, Sample)>| Ok(second.with(&chunk));
            second = fold_samples(samples, workers, second, with, told).await?;
        }
        Ok(workers.run_behind(|wanted| second.finish(wanted)).await?)
    }
}

/// Adds all samples to a state, some at a time, on the workers.
pub async fn fold_samples<S: Send + 'static>(
    samples: &SampleBlocks,
    workers: &Workers,
    mut state: S,
    add: impl Fn(S, Vec<(usize, Sample)>) -> Result<S, AuditFailure> + Clone + Send + 'static,
    progress: impl Fn(&S),
) -> Result<S, AuditFailure> {
    let mut chunks = pin!(samples.samples().ready_chunks(CHUNK));
    while let Some(chunk) = chunks.next().await {
        let (chunk, add) = (chunk.into_iter().collect::<Result<Vec<_>, _>>()?, add.clone());
        state = workers.run_behind(move |_| add(state, chunk)).await??;
        progress(&state);
    }
    Ok(state)
}

/// Reads rows, copies, the digest and sketches.
#[derive(Default)]
struct FirstPass {
    columns: usize,
    rows: Vec<SampleScores>,
    firsts: HashMap<TextDigest, usize>,
    is_copy: Vec<bool>,
    copies: HashMap<usize, Vec<usize>>,
    digest: DatasetDigest,
    sketches: Vec<TextSketch>,
    documents: Vec<Option<TextDigest>>,
}

impl FirstPass {
    fn with(mut self, samples: Vec<(usize, Sample)>) -> Result<Self, AuditFailure> {
        self.sketches.par_extend(samples.par_iter().map(|(_, sample)| TextSketch::new(&sample.text)));
        for (_, sample) in &samples {
            let json = self.digest.add(sample).map_err(|error| AuditFailure::Unwritable(error.to_string()))?;
            self.add(sample, SampleDigest::new(&json));
        }
        Ok(self)
    }

    fn add(&mut self, sample: &Sample, digest: SampleDigest) {
        let row = self.rows.len();
        let neighbors = sample.neighbors.iter().flatten().map(String::as_str);
        let part = format!("{:?}", (&sample.context, &sample.spans));
        let text = TextDigest::of_parts([&*part, &*sample.text].into_iter().chain(neighbors));
        let first = *self.firsts.entry(text).or_insert(row);
        if first != row {
            self.copies.entry(first).or_default().push(row);
        }
        self.is_copy.push(first != row);
        self.documents.push(sample.document.as_ref().map(SampleId::to_string).map(|id| TextDigest::new(&id)));
        self.rows.push(SampleScores { sample: Some(digest), ..SampleScores::unknown(sample, self.columns) });
    }
}

/// Reads words and lengths where there are labels, and what tells near-duplicates from others.
struct SecondPass {
    index: SampleIndex,
    search: NearDuplicateSearch,
    labelled: bool,
    /// The next row.
    row: usize,
}

impl SecondPass {
    fn new(first: FirstPass, retained: bool, wanted: &dyn Fn() -> bool) -> Self {
        let FirstPass { rows, is_copy, copies, digest, sketches, documents, .. } = first;
        let labelled = rows.iter().any(|row| row.member.is_some());
        let texts = SampleTexts::new(rows.iter().map(|row| row.text), retained);
        let normalized = sketches.iter().map(TextSketch::digest).collect();
        let digest = digest.address();
        let search = NearDuplicateSearch::new(sketches, &documents, wanted);
        Self { index: SampleIndex { rows, is_copy, copies, digest, normalized, texts }, search, labelled, row: 0 }
    }

    /// True if the texts must be read again.
    fn needs_texts(&self) -> bool {
        self.labelled || (0..self.index.rows.len()).any(|row| self.search.needs(row))
    }

    fn with(mut self, samples: &[(usize, Sample)]) -> Self {
        let search = &self.search;
        let needed = samples.par_iter().filter(|(row, _)| search.needs(*row));
        let needed: Vec<(usize, Shingles)> = needed.map(|(row, sample)| (*row, Shingles::new(&sample.text))).collect();
        for (row, shingles) in needed {
            self.search.add(row, shingles);
        }
        if self.labelled {
            self.index.texts = self.index.texts.with(samples, |_| true);
        }
        self.row += samples.len();
        self
    }

    fn finish(mut self, wanted: &dyn Fn() -> bool) -> SampleIndex {
        let clusters = self.search.clusters(wanted).into_iter().zip(&self.index.normalized);
        for (row, (cluster, normalized)) in self.index.rows.iter_mut().zip(clusters) {
            (row.cluster, row.normalized) = (Some(cluster), Some(*normalized));
        }
        self.index
    }
}
