//! The body of a test submission and its validation.

use super::audit_request::given;
use super::check::{self, MethodRequests, RequestFaults};
use super::jobs::{JobBody, request};
use super::problem::Problem;
use super::state::ApiState;
use super::test_cut::cut_texts;
use crate::audits::{
    AuditMetrics, AuditRequest, Canary, Commitment, EvidenceOptions, EvidenceRequest, MAX_SAMPLES, OrderTexts,
    PairedDocument, TestKind, TestLayout, TestRequest, TestText, TestTexts, commitment_fault, committed_method,
    test_method_faults,
};
use crate::datasets::{SampleTotals, SubmittedSamples};
use crate::jobs::{JobError, Submission};
use crate::scorer::Overflow;
use crate::store::DatasetRow;
use crate::wire::Shaped;
use documents::Cut;
use mia::json::{BoundedList, Object};
use mia::methods::{LabelledMethod, MethodRequest, faults_of_texts};
use serde::Deserialize;
use utoipa::ToSchema;

/// Maximum number of characters of a nonce.
const MAX_NONCE: usize = 200;

/// A list of texts as a request has it.
type TextList<T> = Shaped<BoundedList<T, MAX_SAMPLES>>;

/// Texts to compare, and how. Which fields of texts there are depends on `kind`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `kind` and the texts of that kind")]
#[schema(as = TestRequest)]
pub struct TestBody {
    /// Kind of comparison.
    #[schema(value_type = TestKind)]
    kind: Shaped<TestKind>,
    /// Name of the test in lists.
    #[schema(max_length = 200, value_type = Option<String>)]
    name: Option<Shaped<String>>,
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    model: Option<String>,
    /// Methods to compute; if left out, the primary method alone, and of `di` those that need no other model.
    #[schema(max_items = 256, value_type = Option<Vec<MethodRequest>>)]
    methods: Option<MethodRequests>,
    /// Label of the method that the verdict is about, or its name where that is enough; if left out `ref`, else
    /// `min_k_plus_plus(k=0.2)`, else the first method; of `order` without `methods` it is `loss`. Of `di` there is none.
    #[schema(value_type = Option<String>, examples("min_k_plus_plus(k=0.2)"))]
    primary: Option<Shaped<String>>,
    /// Treatment of a text that is longer than the model's context: `error` if left out.
    #[schema(value_type = Option<Overflow>)]
    overflow: Option<Shaped<Overflow>>,
    /// Of `dataset` and `di`: texts that may have been trained on.
    #[schema(min_items = 1, value_type = Option<Vec<TestText>>)]
    suspects: Option<TextList<TestText>>,
    /// Of `dataset` and `di`: texts of the same source that were not.
    #[schema(min_items = 1, value_type = Option<Vec<TestText>>)]
    held_out: Option<TextList<TestText>>,
    /// Of `dataset` and `di`: id of a dataset that was uploaded, in place of both; its members are the suspects.
    #[schema(examples("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"), value_type = Option<String>)]
    dataset: Option<Shaped<String>>,
    /// The way texts of both lists of a test of kind `dataset` or `di` are cut into passages, each a text of its `document`; they stay whole if
    /// left out.
    #[schema(value_type = Option<Cut>)]
    cut: Option<Shaped<Object<Cut>>>,
    /// Id of a model that has not seen the texts in question, which computes the same methods. If left out it is the base of
    /// the model, else the reference model, for `dataset`, `di` and `order`, and none for `paired` and `rank`; none with null.
    #[schema(value_type = Option<String>)]
    #[serde(default, deserialize_with = "given")]
    control: Option<Shaped<Option<String>>>,
    /// Of `paired`: published texts with their private rewrites.
    #[schema(min_items = 1, value_type = Option<Vec<PairedDocument>>)]
    documents: Option<TextList<Object<PairedDocument>>>,
    /// Of `rank`: canaries with their twins.
    #[schema(min_items = 1, value_type = Option<Vec<Canary>>)]
    canaries: Option<TextList<Object<Canary>>>,
    /// Of `order`: shards of a dataset, each the list of its items in the order in which they were published, at least 2.
    #[schema(min_items = 1, value_type = Option<Vec<Vec<String>>>)]
    shards: Option<TextList<BoundedList<String, MAX_SAMPLES>>>,
    /// Of `order`: how many random orders each shard is compared with; 50 if left out.
    #[schema(minimum = 1, maximum = 10_000, value_type = Option<usize>)]
    shuffles: Option<Shaped<usize>>,
    /// Of `order` and `di`: the seed of these orders, or of the halves of both lists; 0 if left out.
    #[schema(value_type = Option<u64>)]
    seed: Option<Shaped<u64>>,
    /// Of `order`: what stands between two items; a line feed if left out.
    #[schema(value_type = Option<String>)]
    separator: Option<Shaped<String>>,
    /// A SHA-256, as 64 hexadecimal digits in lower case, that was published before the model was made, over these strings, each
    /// preceded by the number of its bytes (UTF-8) as 64 bits (little-endian): `kind`, the label that the primary method has by default (of `di`
    /// the seed and the labels of all methods, joined by line feeds),
    /// `nonce`, and of each unit the number of its texts as decimal digits and the texts. A unit is a document (`public`, then
    /// `private`), a canary (`text`, then `twins`), the items of a shard, or all held-out texts.
    #[schema(value_type = Option<String>, min_length = 64, max_length = 64)]
    commitment: Option<Shaped<String>>,
    /// Secret that the commitment covers beside the texts, so that nobody can guess them; the empty string if left out.
    #[schema(value_type = Option<String>, max_length = 200)]
    nonce: Option<Shaped<String>>,
    /// Maximum time from submission to the end, in seconds; the job fails after it. No limit if left out.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 31_536_000)]
    timeout_seconds: Option<Shaped<u64>>,
}

impl JobBody for TestBody {
    type Request = TestRequest;

    fn dataset(&self) -> Option<&str> {
        request::named(self.dataset.as_ref())
    }

    fn check(self, state: &ApiState, dataset: Option<DatasetRow>) -> Result<Submission<TestRequest>, Problem> {
        let mut faults = RequestFaults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?;
        let name = check::job_name(self.name, &mut faults);
        let kind = check::shaped("/kind", Some(self.kind), &mut faults);
        let seed = check::shaped("/seed", self.seed, &mut faults);
        let fields = TextFields {
            suspects: self.suspects,
            held_out: self.held_out,
            dataset: self.dataset,
            documents: self.documents,
            canaries: self.canaries,
            shards: self.shards,
            shuffles: self.shuffles,
            seed,
            separator: self.separator,
        };
        let given = kind.and_then(|kind| fields.read(kind, &mut faults));
        let cut = check::shaped("/cut", self.cut, &mut faults).map(|Object(cut)| cut);
        let (texts, origins) = match (cut, kind) {
            (Some(cut), Some(kind)) => {
                cut_texts(given.as_ref(), dataset.is_some(), cut, (kind, seed.unwrap_or_default()), &mut faults)?
            }
            _ => (given.clone(), Vec::new()),
        };
        let options = EvidenceOptions {
            primary: check::shaped("/primary", self.primary, &mut faults),
            control: check::shaped("/control", self.control, &mut faults),
            ..EvidenceOptions::default()
        };
        let ids = state.scorer.pool().ids();
        let scope = state.scorer.scope(&ids, model.as_deref(), false, false);
        let methods = match self.methods {
            None => options.default_test_methods(kind.unwrap_or_default(), &scope).into(),
            methods => check::methods(methods, &scope, &mut faults),
        };
        faults.extend_below("/methods", test_method_faults(&methods));
        let evidence = options.settle_test(kind.unwrap_or_default(), &methods, &scope).unwrap_or_else(|wrong| {
            faults.extend_below("", wrong);
            EvidenceRequest::default()
        });
        let commitment = check::shaped("/commitment", self.commitment, &mut faults);
        if let Some(fault) = commitment.as_deref().and_then(commitment_fault) {
            faults.push("/commitment", fault);
        }
        if commitment.is_some() && dataset.is_some() {
            faults.push("/commitment", "a commitment covers texts of the request, and not those of a dataset");
        }
        let nonce = check::shaped("/nonce", self.nonce, &mut faults).unwrap_or_default();
        if nonce.chars().count() > MAX_NONCE {
            faults.push("/nonce", format!("the nonce has more than {MAX_NONCE} characters"));
        }
        if !nonce.is_empty() && commitment.is_none() {
            faults.push("/nonce", "there is no `commitment` that it is part of");
        }
        let layout = texts.as_ref().map(TestTexts::layout);
        let of_dataset = || TestLayout::lists(kind.unwrap_or_default(), None, seed.unwrap_or_default());
        let layout = layout.unwrap_or_else(of_dataset).with_origins(origins);
        let samples = submitted(texts.as_ref(), &layout, dataset, &methods, &mut faults)?;
        let overflow = check::shaped("/overflow", self.overflow, &mut faults).unwrap_or_default();
        let timeout = request::timeout(self.timeout_seconds, &mut faults);
        faults.finish()?;
        let model = model.ok_or_else(|| Problem::internal("a request without faults has no model"))?;
        let metrics = AuditMetrics { bootstrap: None, ..AuditMetrics::default() };
        let (model, methods) = (model.id.clone(), methods.to_vec());
        let scoring = AuditRequest { model, methods, overflow, metrics, evidence };
        let committed = |(digest, texts)| {
            Some(Commitment::new(digest, kind?, &committed_method(&scoring, &layout)?, &nonce, texts))
        };
        let request = TestRequest {
            // A commitment covers texts as they are given.
            commitment: commitment.zip(given.as_ref()).and_then(committed),
            scoring,
            layout,
        };
        Ok(Submission { request, name, samples, idempotency_key: None, timeout })
    }
}

/// The samples of a test: those that its texts become, or those of the dataset. Texts with faults become none, for they may be too
/// many.
fn submitted(
    texts: Option<&TestTexts>,
    layout: &TestLayout,
    dataset: Option<DatasetRow>,
    methods: &[LabelledMethod],
    faults: &mut RequestFaults,
) -> Result<SubmittedSamples, Problem> {
    if let Some(dataset) = dataset {
        let samples = SubmittedSamples::Dataset(dataset);
        let totals = samples.totals().map_err(JobError::from)?;
        if let Some(fault) = dataset_fault(&totals) {
            faults.push("/dataset", fault);
        }
        return Ok(samples);
    }
    let wrong = texts.map(TestTexts::faults).unwrap_or_default();
    let samples = match texts.filter(|_| wrong.is_empty()) {
        Some(texts) => texts.samples(),
        None => Vec::new(),
    };
    faults.extend_below("", wrong);
    if texts.is_some() {
        let scored = samples.iter().map(|sample| (sample.text.as_str(), None));
        // Methods that take neighbours already have a fault.
        let others: Vec<LabelledMethod> = methods
            .iter()
            .filter(|method| test_method_faults(std::slice::from_ref(method)).is_empty())
            .cloned()
            .collect();
        faults.extend_below("", faults_of_texts(scored, layout.pointers(), &others, "/methods"));
    }
    Ok(SubmittedSamples::Inline(samples))
}

/// Why the samples of a dataset cannot be compared.
fn dataset_fault(totals: &SampleTotals) -> Option<String> {
    let SampleTotals { members, non_members, first_unlabelled, .. } = totals;
    let is_labelled = *members > 0 && *non_members > 0 && first_unlabelled.is_none();
    let detail = || {
        format!(
            "there are {members} members and {non_members} non-members; a test takes suspects, labelled members, and held-out \
             texts, labelled non-members, and nothing else"
        )
    };
    (!is_labelled).then(detail)
}

/// The fields that hold the texts of a test, as they are read.
struct TextFields {
    suspects: Option<TextList<TestText>>,
    held_out: Option<TextList<TestText>>,
    dataset: Option<Shaped<String>>,
    documents: Option<TextList<Object<PairedDocument>>>,
    canaries: Option<TextList<Object<Canary>>>,
    shards: Option<TextList<BoundedList<String, MAX_SAMPLES>>>,
    shuffles: Option<Shaped<usize>>,
    seed: Option<u64>,
    separator: Option<Shaped<String>>,
}

impl TextFields {
    /// Reads the texts of a test of this kind. `None` if a dataset has them or their types have faults.
    fn read(self, kind: TestKind, faults: &mut RequestFaults) -> Option<TestTexts> {
        self.note_foreign(kind, faults);
        match kind {
            TestKind::Dataset | TestKind::Di => self.read_lists(kind, faults),
            TestKind::Paired => {
                let documents = list("documents", self.documents, kind, faults)?;
                Some(TestTexts::Paired(documents.into_iter().map(|Object(document)| document).collect()))
            }
            TestKind::Rank => {
                let canaries = list("canaries", self.canaries, kind, faults)?;
                Some(TestTexts::Rank(canaries.into_iter().map(|Object(canary)| canary).collect()))
            }
            TestKind::Order => self.read_order(faults),
        }
    }

    fn read_lists(self, kind: TestKind, faults: &mut RequestFaults) -> Option<TestTexts> {
        let has_lists = self.suspects.is_some() || self.held_out.is_some();
        if self.dataset.is_some() {
            let _ = check::shaped("/dataset", self.dataset, faults);
            if has_lists {
                faults.push("/dataset", "there are lists of texts as well; a test takes either");
            }
            return None;
        }
        if !has_lists {
            faults.push("", format!("a test of kind `{kind}` takes `suspects` and `held_out`, or `dataset`"));
            return None;
        }
        let suspects = list("suspects", self.suspects, kind, faults);
        let held_out = list("held_out", self.held_out, kind, faults);
        Some(TestTexts::lists(kind, suspects?, held_out?, self.seed.unwrap_or_default()))
    }

    fn read_order(self, faults: &mut RequestFaults) -> Option<TestTexts> {
        let shuffles = check::shaped("/shuffles", self.shuffles, faults);
        let separator = check::shaped("/separator", self.separator, faults);
        let shards = list("shards", self.shards, TestKind::Order, faults)?;
        let defaults = OrderTexts::new(shards.into_iter().map(|BoundedList(items)| items).collect());
        Some(TestTexts::Order(OrderTexts {
            shuffles: shuffles.unwrap_or(defaults.shuffles),
            seed: self.seed.unwrap_or(defaults.seed),
            separator: separator.unwrap_or(defaults.separator),
            shards: defaults.shards,
        }))
    }

    /// Notes fields that belong to other kinds.
    fn note_foreign(&self, kind: TestKind, faults: &mut RequestFaults) {
        let fields = [
            ("suspects", &[TestKind::Dataset, TestKind::Di][..], self.suspects.is_some()),
            ("held_out", &[TestKind::Dataset, TestKind::Di], self.held_out.is_some()),
            ("dataset", &[TestKind::Dataset, TestKind::Di], self.dataset.is_some()),
            ("documents", &[TestKind::Paired], self.documents.is_some()),
            ("canaries", &[TestKind::Rank], self.canaries.is_some()),
            ("shards", &[TestKind::Order], self.shards.is_some()),
            ("shuffles", &[TestKind::Order], self.shuffles.is_some()),
            ("seed", &[TestKind::Order, TestKind::Di], self.seed.is_some()),
            ("separator", &[TestKind::Order], self.separator.is_some()),
        ];
        for (field, owners, _) in
            fields.into_iter().filter(|(_, owners, is_given)| *is_given && !owners.contains(&kind))
        {
            let owners: Vec<String> = owners.iter().map(|owner| format!("`{owner}`")).collect();
            let detail = format!("belongs to tests of kind {}, and this is of kind `{kind}`", owners.join(" or "));
            faults.push(format!("/{field}"), detail);
        }
    }
}

/// The list of a field, which this kind of test takes.
fn list<T>(field: &str, value: Option<TextList<T>>, kind: TestKind, faults: &mut RequestFaults) -> Option<Vec<T>> {
    if value.is_none() {
        faults.push("", format!("a test of kind `{kind}` takes `{field}`"));
    }
    check::shaped(&format!("/{field}"), value, faults).map(|BoundedList(texts)| texts)
}
