//! What of its surroundings a request's methods may refer to.

/// The models, corpora and texts around a request.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    /// Ids of all models.
    pub models: Vec<&'a str>,
    /// The reference model where a method names none.
    pub reference: Option<&'a str>,
    /// Ids of the token counts of reference corpora.
    pub token_counts: Vec<&'a str>,
    /// Whether the texts are those of an audit, which are known together.
    pub audit: bool,
    /// Whether every text comes with neighbours.
    pub neighbors: bool,
}
