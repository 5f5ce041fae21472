//! Models, corpora and texts that a request's methods may refer to.

/// The models, corpora and texts around a request.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    /// Ids of all models.
    pub models: Vec<&'a str>,
    /// Ids of those that give log-probabilities of tokens alone, and not their whole distribution.
    pub without_logits: Vec<&'a str>,
    /// Ids of those whose weights are elsewhere.
    pub without_weights: Vec<&'a str>,
    /// The id of the model that is asked about.
    pub model: Option<&'a str>,
    /// The reference model where a method names none.
    pub reference: Option<&'a str>,
    /// Ids of the token counts of reference corpora.
    pub token_counts: Vec<&'a str>,
    /// True if the texts are those of an audit, which are known together.
    pub audit: bool,
    /// True if every text comes with neighbours.
    pub neighbors: bool,
}

impl<'a> Scope<'a> {
    /// Returns true if the model that is asked about gives its whole distribution at each token.
    pub fn has_full_logits(&self) -> bool {
        !self.model.is_some_and(|model| self.without_logits.contains(&model))
    }

    /// The id of an adapter that a request names: its own, or its name among those of the model that is asked about.
    pub fn adapter(&self, name: &str) -> Option<&'a str> {
        let mut adapters = self.adapters().into_iter();
        adapters.find(|id| *id == name || id.rsplit(':').next() == Some(name))
    }

    /// The ids of all adapters of the model that is asked about.
    pub fn adapters(&self) -> Vec<&'a str> {
        let is_adapter = |id: &&str| id.split_once(':').is_some_and(|(base, _)| Some(base) == self.model);
        self.models.iter().copied().filter(is_adapter).collect()
    }
}
