//! Names that methods may refer to in a request.

use super::handle::Scorer;
use super::token_counts::Counts;
use crate::pool::{Declaration, Origin};
use mia::methods::Scope;
use std::sync::Arc;

impl Scorer {
    /// Returns the names that methods may refer to in a request for a model; `models` are the ids of all models.
    pub fn scope<'a>(
        &'a self,
        models: &'a [Arc<str>],
        model: Option<&'a Declaration>,
        audit: bool,
        neighbors: bool,
    ) -> Scope<'a> {
        Scope {
            models: models.iter().map(|id| &**id).collect(),
            model: model.map(|model| model.id.as_str()),
            reference: model.and_then(|model| model.reference.as_deref()),
            without_logits: self.without(models, Origin::gives_logits),
            without_weights: self.without(models, Origin::gives_weights),
            token_counts: self.token_counts.iter().map(|counts| counts.id.as_str()).collect(),
            audit,
            neighbors,
        }
    }

    /// The models whose origin does not give this.
    fn without<'a>(&self, models: &'a [Arc<str>], gives: fn(&Origin) -> bool) -> Vec<&'a str> {
        let lacks = |id: &str| self.pool().find(Some(id)).is_ok_and(|declaration| !gives(&declaration.origin));
        models.iter().map(|id| &**id).filter(|id| lacks(id)).collect()
    }

    pub fn token_counts(&self, id: &str) -> Option<&Arc<Counts>> {
        self.token_counts.iter().find(|counts| counts.id == id)
    }
}
