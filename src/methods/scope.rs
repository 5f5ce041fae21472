//! What of its surroundings a request's methods may refer to.

use super::base::NamedCounts;

/// The models, corpora and texts around a request.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    /// Ids of all models.
    pub models: Vec<&'a str>,
    /// The reference model where a method names none.
    pub reference: Option<&'a str>,
    /// Token counts of reference corpora.
    pub counts: Vec<NamedCounts>,
    /// Whether the texts are those of an audit, which are known together.
    pub audit: bool,
    /// Whether every text comes with neighbours.
    pub neighbors: bool,
}
