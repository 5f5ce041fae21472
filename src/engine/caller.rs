//! Callers that request forward passes.

use std::sync::Arc;

/// A caller that requests forward passes: the queue is fair between callers, and each has its own part of the caches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Empty for whoever needs no name; all of those are one caller.
    name: Arc<str>,
    /// True if its part of the caches is that of all callers who share.
    shares_cache: bool,
}

impl Caller {
    #[must_use]
    pub fn new(name: &str, shares_cache: bool) -> Self {
        Self { name: name.into(), shares_cache }
    }

    /// Its name; empty for whoever needs no name.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns true if it is one of several callers, and not the only one.
    #[must_use]
    pub fn has_name(&self) -> bool {
        !self.name.is_empty()
    }

    /// The key in this caller's part of a cache of what has the key `key` in a shared one.
    #[must_use]
    pub fn cache_key(&self, key: &Arc<str>) -> Arc<str> {
        if self.has_name() && !self.shares_cache { format!("{key}; of {}", self.name).into() } else { Arc::clone(key) }
    }
}

#[cfg(test)]
mod tests {
    use super::Caller;

    #[test]
    fn callers_with_names_have_their_own_part_of_the_caches_unless_they_share() {
        let identity = "model".into();
        let key = |name: &str, shares: bool| Caller::new(name, shares).cache_key(&identity);
        assert_eq!((&*Caller::default().cache_key(&identity), &*key("alice", true)), ("model", "model"));
        assert_eq!((&*key("", false), &*key("alice", false)), ("model", "model; of alice"));
        assert_ne!(key("alice", false), key("bob", false));
    }
}
