//! A client, as its key says who it is.

use super::principal::Principal;
use super::quota::Quota;
use super::scope::KeyScope;
use std::sync::Arc;

/// A client, as its key says who it is.
#[derive(Clone, Debug)]
pub struct Client {
    /// It sees everything if the key has the scope `admin`.
    principal: Principal,
    /// Id of its key; none without keys.
    key_id: Option<Arc<str>>,
    scopes: Vec<KeyScope>,
    /// Limits of its key, and their usage.
    pub quota: Arc<Quota>,
}

impl Client {
    #[must_use]
    pub fn new(name: &str, key_id: &str, scopes: Vec<KeyScope>, quota: Arc<Quota>) -> Self {
        let principal = Principal::new(name, scopes.contains(&KeyScope::Admin));
        Self { principal, key_id: Some(key_id.into()), scopes, quota }
    }

    /// Whoever comes where there are no keys: it may do everything.
    #[must_use]
    pub fn without_keys() -> Self {
        let scopes = vec![KeyScope::Score, KeyScope::Audit, KeyScope::Admin];
        Self { principal: Principal::default(), key_id: None, scopes, quota: Arc::default() }
    }

    /// Whoever comes without a key where there are keys: it may do nothing.
    #[must_use]
    pub fn stranger() -> Self {
        Self { principal: Principal::default().alone(), scopes: Vec::new(), ..Self::without_keys() }
    }

    /// Its name, to which jobs and datasets belong; empty without keys.
    #[must_use]
    pub fn name(&self) -> &str {
        self.principal.name()
    }

    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Id of its key; none without keys.
    #[must_use]
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Returns true if its key has the scope.
    #[must_use]
    pub fn may(&self, scope: KeyScope) -> bool {
        self.scopes.contains(&scope)
    }
}
