//! What the scores of an audit's methods are evidence of, from its rows.

use super::document::MethodReport;
use crate::audits::cluster_ids::dense;
use crate::audits::evidence::{
    CONFIDENCE, CalibratedBasis, ControlFindings, ControlSample, Estimate, PERMUTATION_SEED, StratifyBy, Verdict,
    VerdictBasis, calibrated_verdict, control_findings, controls_itself, verdict,
};
use crate::audits::request::AuditRequest;
use crate::audits::results::{AuditResults, SampleScores};
use mia::methods::{BaseMethod, LabelledMethod};
use mia::statistics::{
    LabelledScore, PairedDeLong, PairedScore, PermutationTest, delong, max_t, normal_quantile, stratified_auroc,
};
use std::collections::HashSet;

/// Permutations of the clusters' labels.
const PERMUTATIONS: usize = 999;

/// The labelled samples of an audit.
pub struct Evidence<'a> {
    request: &'a AuditRequest,
    results: &'a AuditResults,
    /// Of each row.
    clusters: Vec<usize>,
    labels: Vec<bool>,
}

impl<'a> Evidence<'a> {
    /// None without labels.
    pub fn new(request: &'a AuditRequest, results: &'a AuditResults) -> Option<Self> {
        let clusters = dense(results.rows.iter().map(|row| row.cluster));
        Some(Self { request, results, clusters, labels: results.labels()? })
    }

    /// Whether members score higher than by chance, for each listed method.
    pub fn permutation_tests(&self, wanted: &dyn Fn() -> bool) -> Vec<Option<PermutationTest>> {
        let scores = |place: usize| self.results.rows.iter().map(|row| row.scores[place]).collect();
        let columns: Vec<Vec<Option<f64>>> = self.results.listed().map(|(place, _)| scores(place)).collect();
        let columns: Vec<&[Option<f64>]> = columns.iter().map(Vec::as_slice).collect();
        max_t(&self.labels, &self.clusters, &columns, PERMUTATIONS, PERMUTATION_SEED, wanted)
    }

    /// AUROC of a column within groups, where that is asked for. Samples without a group are a stratum.
    pub fn stratified(&self, place: usize) -> Option<f64> {
        let StratifyBy::Group = self.request.evidence.stratify?;
        let mut groups: Vec<Option<&str>> = Vec::new();
        let (mut samples, mut strata) = (Vec::new(), Vec::new());
        for (row, &member) in self.results.rows.iter().zip(&self.labels) {
            let Some(score) = row.scores[place] else { continue };
            let group = row.group.as_deref();
            let stratum = groups.iter().position(|known| *known == group).unwrap_or(groups.len());
            if stratum == groups.len() {
                groups.push(group);
            }
            samples.push(LabelledScore { score, member });
            strata.push(stratum);
        }
        Some(stratified_auroc(&samples, &strata)?.auroc)
    }

    /// A column beside the same under the control model, or beside what it has of a control inside.
    pub fn control(&self, place: usize, method: &LabelledMethod) -> Option<ControlFindings> {
        let itself = controls_itself(method);
        let model = match (&method.method.base, &self.results.control) {
            (BaseMethod::Ref(reference), _) => &*reference.reference,
            (_, Some(control)) => &control.id,
            (_, None) => return None,
        };
        let sample = |(row, &sample): (usize, &&'a SampleScores)| {
            let control = sample.control.get(place).copied().flatten();
            Some(ControlSample {
                member: self.labels[row],
                cluster: self.clusters[row],
                group: sample.group.as_deref(),
                target: sample.scores[place]?,
                control: control.filter(|_| !itself),
            })
            .filter(|sample| itself || sample.control.is_some())
        };
        let rows: Vec<&SampleScores> = self.results.rows.iter().collect();
        let samples: Vec<ControlSample> = rows.iter().enumerate().filter_map(sample).collect();
        control_findings(model, &samples)
    }

    /// The verdict on the primary method; none in audits of earlier versions, which name none.
    pub fn verdict(&self, methods: &[MethodReport]) -> Option<Verdict> {
        let primary = self.request.evidence.primary.as_ref()?;
        let (place, _) = self.results.listed().find(|(_, column)| column.method.label == *primary)?;
        let method = methods.iter().find(|method| method.method.label == *primary)?;
        let separation = method.findings.separation.as_ref();
        let estimate = |auroc: f64, error: f64| {
            let half = normal_quantile(CONFIDENCE)? * error;
            Some(Estimate { value: auroc, interval: [auroc - half, auroc + half] })
        };
        Some(verdict(&VerdictBasis {
            primary,
            clusters: [true, false].map(|member| self.scored_clusters(place, member)),
            auroc: separation.and_then(|found| estimate(found.auroc?, found.auroc_standard_error?)),
            control: method.control.as_ref(),
            shift: self.results.blind.as_ref().and_then(|blind| Some(blind.words.as_ref()?.shift)),
            over_words: self.over_words(place),
        }))
    }

    /// Clusters of a class that have a score.
    fn scored_clusters(&self, place: usize, member: bool) -> usize {
        let rows = self.results.rows.iter().zip(&self.clusters).zip(&self.labels);
        let scored = rows.filter(|((row, _), label)| **label == member && row.scores[place].is_some());
        scored.map(|((_, cluster), _)| cluster).collect::<HashSet<_>>().len()
    }

    /// AUROC of a column minus that of the words.
    pub fn over_words(&self, place: usize) -> Option<PairedDeLong> {
        let rows = self.results.rows.iter().zip(&self.results.word_odds).enumerate();
        let scored = rows.filter_map(|(row, (sample, &first))| {
            let second = sample.scores[place]?;
            Some((PairedScore { member: self.labels[row], first, second }, self.clusters[row]))
        });
        let (samples, clusters): (Vec<PairedScore>, Vec<usize>) = scored.unzip();
        delong(&samples, &clusters, CONFIDENCE).ok()
    }
}

/// The verdict on texts without labels; none without a calibration.
pub fn unlabelled_verdict(request: &AuditRequest, results: &AuditResults) -> Option<Verdict> {
    let primary = request.evidence.primary.as_ref()?;
    let calibrated = results.calibration.as_ref()?;
    let decisions = calibrated.decisions.as_ref();
    Some(calibrated_verdict(&CalibratedBasis {
        primary,
        tested: calibrated.tested,
        listed: decisions.map_or(0, |decisions| decisions.rejected),
        fdr: decisions.map(|decisions| decisions.fdr),
        p_value: calibrated.dataset_test.map(|test| test.p_value),
        shift: calibrated.shift,
    }))
}
