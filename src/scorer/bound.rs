//! A plan with everything that it names at hand: models opened, prefixes in ids, and what does not fit together refused.

use super::cache::Encodings;
use super::error::ScorerError;
use super::handle::Scorer;
use super::plan::{Overflow, Plan, TunedSplit};
use super::workers::TextWork;
use crate::pool::{Model, ModelInfo, Retry};
use lm::tokenizer::{Encoded, TokenizerError};
use mia::methods::{
    AuxiliaryPass, AuxiliaryPassError, BaseMethod, Fault, LabelledMethod, NamedCounts, Texts, Tokenization,
    auxiliary_passes,
};
use std::sync::Arc;

/// A plan that can be carried out.
#[derive(Clone)]
pub struct Bound {
    /// The plan, in which it is settled which ids each reference model scores.
    pub plan: Plan,
    /// The models that continue texts; the first is the one whose training data is asked about.
    pub models: Vec<Arc<Model>>,
    /// The masked models that make neighbours.
    pub generators: Vec<Arc<Model>>,
    /// The auxiliary passes of the methods, each once.
    pub passes: Vec<AuxiliaryPass>,
    pub token_counts: Arc<[NamedCounts]>,
    prefixes: Vec<Prefix>,
    /// Weights of the positions for `entropy_dataset`; empty before the texts of the audit are known.
    pub dataset_weights: Arc<[f64]>,
    pub(super) encodings: Encodings,
    pub(super) text_limit: u64,
}

impl Bound {
    /// Returns the description of every model that takes part: the one asked about, the reference models, and those that make
    /// neighbours.
    pub fn infos(&self) -> Vec<ModelInfo> {
        self.all_models().map(|model| model.info.clone()).collect()
    }

    pub(super) fn prefix(&self, texts: &Texts) -> Result<&[u32], AuxiliaryPassError> {
        match self.prefixes.iter().find(|(known, _)| known == texts) {
            Some((_, ids)) => ids.as_deref().map_err(Clone::clone),
            None => {
                let detail = "internal error: a prefix of the methods was not tokenized".to_owned();
                Err(AuxiliaryPassError { code: "internal".into(), detail })
            }
        }
    }

    /// A text in the ids of a model; `what` names it in errors, and `in_part` says if only spans of it are scored.
    pub(super) fn encode(
        &self,
        model: usize,
        text: &str,
        what: &str,
        in_part: bool,
    ) -> Result<Arc<Encoded>, AuxiliaryPassError> {
        self.check_size(text, what)?;
        let encoded = self.encodings.encode(&self.models[model], text, in_part);
        encoded.map_err(|error| untokenizable(what, &error))
    }

    /// The ids of the text before one that is scored, without special tokens.
    pub(super) fn context_ids(&self, model: usize, context: &str) -> Result<Vec<u32>, AuxiliaryPassError> {
        self.check_size(context, "context")?;
        self.models[model].tokenizer.plain_ids(context).map_err(|error| untokenizable("context", &error))
    }

    fn check_size(&self, text: &str, what: &str) -> Result<(), AuxiliaryPassError> {
        match too_large(text, self.text_limit) {
            Some(detail) => {
                Err(AuxiliaryPassError { code: "too_long".into(), detail: format!("the {what} has {detail}") })
            }
            None => Ok(()),
        }
    }

    /// The ids that a model scores of a text's, or in words why it does not. `cut` says whether what is beyond the context
    /// may be left out. Memory for less than the context is no context: what is cut must not depend on the machine.
    pub(super) fn fit(&self, model: usize, ids: &Arc<[u32]>, cut: bool) -> Result<Arc<[u32]>, String> {
        let model = &self.models[model];
        if ids.len() <= model.longest {
            return Ok(Arc::clone(ids));
        }
        match (self.plan.overflow, model.context.filter(|context| *context == model.longest)) {
            (Overflow::Truncate, Some(context)) if cut => Ok(ids[..context].into()),
            (Overflow::Window, Some(context)) if context > 1 => Ok(Arc::clone(ids)),
            _ => Err(too_long(ids.len(), model)),
        }
    }

    /// All that the bits of the scores depend on beside the request: the code of the numbers and each model as it runs here.
    pub fn numerics(&self) -> String {
        let models = self.all_models().map(|model| format!("; {}", model.identity));
        format!("code {}{}", lm::NUMERICS, models.collect::<String>())
    }

    /// The id of the first model whose scores would not go with those of an earlier binding of the same plan.
    pub fn changed_since(&self, before: &Self) -> Option<&str> {
        let is_same = |now: &Model, before: &Model| {
            now.identity == before.identity && now.tokenizer_digest == before.tokenizer_digest
        };
        let mut pairs = self.all_models().zip(before.all_models());
        pairs.find(|(now, before)| !is_same(now, before)).map(|(now, _)| now.id())
    }

    fn all_models(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.models.iter().chain(&self.generators)
    }

    /// The same for some of the methods, with the weights that the audit's texts have in common.
    pub fn only(&self, methods: Vec<LabelledMethod>, dataset_weights: Arc<[f64]>) -> Self {
        let passes = auxiliary_passes(&methods);
        let plan = Plan { methods: methods.into(), ..self.plan.clone() };
        Self { plan, passes, dataset_weights, ..self.clone() }
    }
}

fn untokenizable(what: &str, error: &TokenizerError) -> AuxiliaryPassError {
    AuxiliaryPassError { code: "untokenizable".into(), detail: format!("the {what}: {error}") }
}

/// Describes how many tokens there are, and how many there may be.
pub(super) fn too_long(tokens: usize, model: &Model) -> String {
    match model.context.filter(|context| *context == model.longest) {
        Some(context) => format!("{tokens} tokens; the context of model `{}` is {context}", model.id()),
        None => format!("{tokens} tokens; the device has memory for {} with model `{}`", model.longest, model.id()),
    }
}

/// Describes how many bytes there are, and how many there may be; `None` if there are not too many.
pub(super) fn too_large(text: &str, limit: u64) -> Option<String> {
    let bytes = text.len();
    (bytes as u64 > limit).then(|| format!("{bytes} bytes; the limit `limits.text` is {limit}"))
}

impl Scorer {
    /// Opens what the plan names and checks that it fits together.
    pub async fn bind(&self, plan: &Plan) -> Result<Arc<Bound>, ScorerError> {
        let target = self.pool().open(&plan.model, Retry::AfterPause).await?;
        if target.masked {
            return Err(ScorerError::Masked(target.id().to_owned()));
        }
        let mut binding = Binding::new(target);
        let mut methods = plan.methods.to_vec();
        for method in &mut methods {
            self.bind_method(method, &plan.splits, &mut binding).await?;
        }
        if !binding.faults.is_empty() {
            return Err(ScorerError::Unfit(binding.faults));
        }
        let Binding { models, generators, token_counts, .. } = binding;
        let passes = auxiliary_passes(&methods);
        let prefixes = passes.iter().filter_map(|pass| match pass {
            AuxiliaryPass::Prefixed(texts) => Some(texts.clone()),
            _ => None,
        });
        let target = Arc::clone(&models[0]);
        let with_ids = move |texts: Texts| {
            let ids = prefix(&target, &texts);
            (texts, ids)
        };
        let prefixes = self.workers.map(TextWork::Small, prefixes.collect(), with_ids).await?;
        refuse_empty(&methods, &prefixes)?;
        Ok(Arc::new(Bound {
            plan: Plan { methods: methods.into(), ..plan.clone() },
            models,
            generators,
            passes,
            token_counts: token_counts.into(),
            prefixes,
            dataset_weights: Arc::new([]),
            encodings: self.encodings.clone(),
            text_limit: self.text_limit,
        }))
    }

    async fn bind_method(
        &self,
        method: &mut LabelledMethod,
        splits: &[TunedSplit],
        binding: &mut Binding,
    ) -> Result<(), ScorerError> {
        for (field, pass) in method.method.base.passes() {
            match pass {
                AuxiliaryPass::Lowercase | AuxiliaryPass::Neighbors(None) | AuxiliaryPass::Swapped(_) => {}
                AuxiliaryPass::Reference(id) | AuxiliaryPass::Tuned(id) | AuxiliaryPass::ReferenceTokenization(id) => {
                    self.bind_reference(method, field, &id, binding).await?;
                }
                // Before the audit has tuned it there is nothing to open.
                AuxiliaryPass::Split(split) => {
                    if let Some(tuned) = splits.iter().find(|tuned| tuned.split == split) {
                        self.bind_reference(method, field, &tuned.adapter, binding).await?;
                    }
                }
                AuxiliaryPass::Neighbors(Some(generator)) => {
                    let model = self.opened(&generator.model, &binding.generators).await?;
                    if !model.masked {
                        let id = &generator.model;
                        let detail = format!("model `{id}` is a causal model; neighbours are made by a masked model");
                        binding.fault(method.pointer(&format!("{field}/model")), detail);
                    }
                    Binding::add(&mut binding.generators, model);
                }
                AuxiliaryPass::Prefixed(texts) => {
                    for (index, text) in texts.as_slice().iter().enumerate() {
                        if let Some(detail) = too_large(text, self.text_limit) {
                            let pointer = method.pointer(&format!("{field}/{index}"));
                            binding.fault(pointer, format!("the text has {detail}"));
                        }
                    }
                }
            }
        }
        self.bind_token_counts(method, binding).await
    }

    /// Opens a reference model and settles which ids it scores.
    async fn bind_reference(
        &self,
        method: &mut LabelledMethod,
        field: &str,
        id: &str,
        binding: &mut Binding,
    ) -> Result<(), ScorerError> {
        let model = self.opened(id, &binding.models).await?;
        if model.masked {
            let detail = format!("model `{id}` is a masked model, which gives no probabilities of texts");
            binding.fault(method.pointer(field), detail);
        } else if !self.same_tokens(&binding.models[0], &model).await? {
            let detail = format!(
                "the reference model `{id}` has another tokenization, so that tokens cannot be compared one by one"
            );
            match &mut method.method.base {
                BaseMethod::Ref(reference) if method.method.pdr.is_none() => {
                    reference.tokenization = Tokenization::Separate;
                }
                BaseMethod::Ref(_) => binding.fault(
                    method.pointer("pdr"),
                    format!("{detail}; without `pdr`, the difference of the two means can be computed"),
                ),
                _ => binding.fault(method.pointer(field), detail),
            }
        }
        Binding::add(&mut binding.models, model);
        Ok(())
    }

    /// Finds the token counts that a method names, and checks that they are of the target's tokens.
    async fn bind_token_counts(&self, method: &LabelledMethod, binding: &mut Binding) -> Result<(), ScorerError> {
        let Some(id) = method.method.base.token_counts() else { return Ok(()) };
        let counts = self.token_counts(id).cloned();
        let counts = counts.ok_or_else(|| ScorerError::Internal(format!("there are no token counts `{id}`")))?;
        let (known, target) = (Arc::clone(&counts), Arc::clone(&binding.models[0]));
        // The first look at a tokenizer takes a moment.
        if !self.workers.run(move || known.fit(&target.tokenizer)).await? {
            let detail = format!("the token counts `{id}` were made with another tokenizer than the model's");
            binding.fault(method.pointer("counts"), detail);
        }
        if binding.token_counts.iter().all(|known| *known.id != *id) {
            binding.token_counts.push(NamedCounts { id: id.into(), table: Arc::clone(&counts.table) });
        }
        Ok(())
    }

    /// Returns true if an id means the same token to both.
    pub async fn same_tokens(&self, target: &Arc<Model>, reference: &Arc<Model>) -> Result<bool, ScorerError> {
        if target.tokenizer_digest == reference.tokenizer_digest {
            return Ok(true);
        }
        let (target, reference) = (Arc::clone(target), Arc::clone(reference));
        // The first look at a tokenizer takes a moment.
        self.workers.run(move || target.tokenizer.same_tokens(&reference.tokenizer)).await
    }

    /// A model by its id, of those that are open already or opened now.
    async fn opened(&self, id: &str, known: &[Arc<Model>]) -> Result<Arc<Model>, ScorerError> {
        if let Some(known) = known.iter().find(|model| model.id() == id) {
            return Ok(Arc::clone(known));
        }
        Ok(self.pool().open(id, Retry::AfterPause).await?)
    }
}

/// Texts that are put before others, and their ids.
type Prefix = (Texts, Result<Vec<u32>, AuxiliaryPassError>);

/// A prefix without a token changes nothing: a ratio of 1 would be no finding.
fn refuse_empty(methods: &[LabelledMethod], prefixes: &[Prefix]) -> Result<(), ScorerError> {
    let is_empty =
        |texts: &Texts| prefixes.iter().any(|(known, ids)| known == texts && ids.as_ref().is_ok_and(Vec::is_empty));
    let faults = methods.iter().flat_map(|method| {
        let empty = method.method.prefixes().into_iter().filter(|(_, texts)| is_empty(texts));
        empty.map(|(field, _)| Fault {
            pointer: method.pointer(field),
            detail: "the texts have no token, so the prefix would be empty".to_owned(),
        })
    });
    let faults: Vec<Fault> = faults.collect();
    if faults.is_empty() { Ok(()) } else { Err(ScorerError::Unfit(faults)) }
}

/// Names in the methods, as far as they were resolved.
struct Binding {
    models: Vec<Arc<Model>>,
    generators: Vec<Arc<Model>>,
    token_counts: Vec<NamedCounts>,
    faults: Vec<Fault>,
}

impl Binding {
    fn new(target: Arc<Model>) -> Self {
        Self { models: vec![target], generators: Vec::new(), token_counts: Vec::new(), faults: Vec::new() }
    }

    fn fault(&mut self, pointer: String, detail: String) {
        let fault = Fault { pointer, detail };
        // A sweep finds the same fault for each of its methods.
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn add(models: &mut Vec<Arc<Model>>, model: Arc<Model>) {
        if models.iter().all(|known| known.id() != model.id()) {
            models.push(model);
        }
    }
}

/// The ids of texts one after the other, no special token between them.
fn prefix(model: &Model, texts: &Texts) -> Result<Vec<u32>, AuxiliaryPassError> {
    let ids = texts.as_slice().iter().map(|text| model.tokenizer.plain_ids(text));
    let ids: Result<Vec<Vec<u32>>, _> = ids.collect();
    ids.map(|ids| ids.concat()).map_err(|error| {
        let detail = format!("a text of the prefix: {error}");
        AuxiliaryPassError { code: "untokenizable".into(), detail }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mia::methods::{MethodRequest, Scope, resolve};

    #[test]
    fn a_prefix_without_a_token_is_refused() {
        let requests: Vec<MethodRequest> =
            serde_json::from_str(r#"["loss", {"name": "recall", "prefix": ["a"]}]"#).unwrap();
        let methods = resolve(&requests, &Scope::default()).unwrap();
        let with = |ids: Vec<u32>| refuse_empty(&methods, &[(Texts::from(vec!["a".to_owned()]), Ok(ids))]);
        assert!(with(vec![1]).is_ok());
        match with(Vec::new()) {
            Err(ScorerError::Unfit(faults)) => assert_eq!(faults[0].pointer, "/1/prefix"),
            other => panic!("{other:?}"),
        }
    }
}
