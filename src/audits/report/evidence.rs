//! Evidence from the rows of an audit.

use super::document::MethodReport;
use crate::audits::clusters::{clustered, clusters, strata};
use crate::audits::evidence::{
    ControlFindings, Effect, NegativeControlSample, PERMUTATION_SEED, StratifyBy, Verdict, VerdictBasis,
    negative_controls, verdict,
};
use crate::audits::request::AuditRequest;
use crate::audits::results::{AuditResults, SampleScores};
use mia::methods::LabelledMethod;
use mia::statistics::{
    ClusterScores, ClusteredTexts, LabelledScore, PermutationTest, RankColumn, max_t, stratified_auroc,
};
use std::collections::HashSet;

/// Permutations of the clusters' labels.
const PERMUTATIONS: usize = 9_999;

/// The labelled samples of an audit.
pub struct Evidence<'a> {
    request: &'a AuditRequest,
    results: &'a AuditResults,
    labels: Vec<bool>,
    pub clustered: ClusteredTexts,
    /// Rows that are not compared.
    left_out: HashSet<usize>,
}

/// The permutation tests of a method.
#[derive(Clone, Copy, Debug, Default)]
pub struct MethodTests {
    /// Test of whether members score higher than by chance.
    pub auroc: Option<PermutationTest>,
    /// Test of whether they do so by more than under the control.
    pub difference: Option<PermutationTest>,
}

impl<'a> Evidence<'a> {
    /// Compares all rows but `left_out`; `None` without labels.
    pub fn new(request: &'a AuditRequest, results: &'a AuditResults, left_out: HashSet<usize>) -> Option<Self> {
        let labels = results.labels()?;
        Some(Self { request, results, clustered: clustered(&results.rows, &labels), labels, left_out })
    }

    /// The tests of each listed method, adjusted for the number of all.
    pub fn permutation_tests(&self, wanted: &dyn Fn() -> bool) -> Vec<MethodTests> {
        let strata = self.clustered.strata();
        let listed = || self.results.listed();
        let auroc = listed().map(|(place, _)| RankColumn::new(&self.scores(place).column(0), strata));
        let difference = listed().map(|(place, column)| {
            let scores = self.paired_scores(place, &column.method);
            RankColumn::difference(&scores.column(0), &scores.column(1), strata)
        });
        let columns: Vec<RankColumn> = auroc.chain(difference).collect();
        let tests = max_t(self.clustered.labels(), strata, &columns, PERMUTATIONS, PERMUTATION_SEED, wanted);
        let (auroc, difference) = tests.split_at(columns.len() / 2);
        auroc.iter().zip(difference).map(|(&auroc, &difference)| MethodTests { auroc, difference }).collect()
    }

    /// The scores of the clusters by a column.
    pub fn scores(&self, place: usize) -> ClusterScores<1> {
        self.clustered.scores(|row| self.score(row, place).map(|score| [score]))
    }

    /// The scores of the clusters by a column, and by the same under the control; none without a control.
    fn paired_scores(&self, place: usize, method: &LabelledMethod) -> ClusterScores<2> {
        self.clustered.scores(|row| self.pair(row, place, method))
    }

    /// The score of a row that is compared.
    pub fn score(&self, row: usize, place: usize) -> Option<f64> {
        self.results.rows[row].scores[place].filter(|_| !self.left_out.contains(&row))
    }

    fn pair(&self, row: usize, place: usize, method: &LabelledMethod) -> Option<[f64; 2]> {
        let target = self.score(row, place)?;
        Some([target, self.results.rows[row].control_score(place, method)?])
    }

    /// AUROC of a column within groups, where that is asked for. Samples without a group are a stratum.
    pub fn stratified(&self, place: usize) -> Option<f64> {
        let StratifyBy::Group = self.request.evidence.stratify?;
        let strata = strata(&self.results.rows);
        let scored =
            (self.results.rows.iter().zip(&self.labels).zip(strata)).filter_map(|((row, &member), stratum)| {
                Some((LabelledScore { score: row.scores[place]?, member }, stratum))
            });
        let (samples, strata): (Vec<LabelledScore>, Vec<usize>) = scored.unzip();
        Some(stratified_auroc(&samples, &strata)?.auroc)
    }

    /// A column beside the same under the control model.
    pub fn control(&self, place: usize, method: &LabelledMethod, tests: MethodTests) -> Option<ControlFindings> {
        let model = &self.results.control.as_ref()?.id;
        let scores = self.paired_scores(place, method);
        let clusters = clusters(&self.results.rows);
        let non_member = |(row, sample): (usize, &'a SampleScores)| {
            let group = sample.group.as_deref().filter(|_| !self.labels[row])?;
            let [target, control] = self.pair(row, place, method)?;
            Some(NegativeControlSample { group, cluster: clusters[row], control, target })
        };
        let non_members: Vec<NegativeControlSample> =
            self.results.rows.iter().enumerate().filter_map(non_member).collect();
        Some(ControlFindings {
            p_value: tests.difference.map(|test| test.p_value),
            p_value_adjusted: tests.difference.map(|test| test.p_value_adjusted),
            negative_controls: negative_controls(&non_members),
            ..ControlFindings::new(model, &scores, &self.clustered)?
        })
    }

    /// The verdict on the primary method; `None` in audits of earlier versions, which name none.
    pub fn verdict(&self, methods: &[MethodReport]) -> Option<Verdict> {
        let primary = self.request.evidence.primary.as_ref()?;
        let (place, _) = self.results.listed().find(|(_, column)| column.method.label == *primary)?;
        let method = methods.iter().find(|method| method.method.label == *primary)?;
        let p_value = Some(method.p_value.unwrap_or(1.0));
        Some(self.list_verdict(["members", "non-members"], place, p_value, method.control.as_ref(), None))
    }

    /// The verdict on two lists by a column, given its p-value and its findings beside the control.
    pub fn list_verdict(
        &self,
        lists: [&'static str; 2],
        place: usize,
        p_value: Option<f64>,
        findings: Option<&ControlFindings>,
        committed: Option<bool>,
    ) -> Verdict {
        let scores = self.scores(place);
        verdict(&VerdictBasis {
            primary: &self.results.columns[place].method.label,
            model: &self.results.model,
            lists,
            clusters: scores.counts(&self.clustered),
            texts_per_cluster: scores.texts,
            splits: None,
            effect: p_value.and_then(|p_value| Effect::new(&scores, 0, &self.clustered, p_value)),
            control: self.results.control.as_ref().map(|control| (control, findings)),
            comparability: self.results.comparability.as_ref(),
            committed,
        })
    }
}

/// The verdict on texts without labels; `None` without a calibration.
pub fn unlabelled_verdict(request: &AuditRequest, results: &AuditResults) -> Option<Verdict> {
    let primary = request.evidence.primary.as_ref()?;
    let calibrated = results.calibration.as_ref()?;
    Some(verdict(&VerdictBasis {
        primary,
        model: &results.model,
        lists: ["texts", "known non-members"],
        clusters: calibrated.clusters,
        texts_per_cluster: calibrated.texts_per_cluster,
        splits: None,
        effect: calibrated.effect,
        control: None,
        comparability: results.comparability.as_ref(),
        committed: None,
    }))
}
