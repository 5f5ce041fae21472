//! Principals: the names to which work, jobs, datasets and parts of the caches belong.

use std::sync::Arc;

/// A name that requests work: it owns what it creates, and sees that alone unless it sees everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Its name; empty in a service without keys.
    name: Arc<str>,
    sees_all: bool,
}

impl Default for Principal {
    /// The only principal of a service without keys, or the service itself.
    fn default() -> Self {
        Self::new("", true)
    }
}

impl Principal {
    #[must_use]
    pub fn new(name: &str, sees_all: bool) -> Self {
        Self { name: name.into(), sees_all }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the name under which it has a share of what all use; `None` for the only principal, which may have all.
    #[must_use]
    pub fn share_name(&self) -> Option<Arc<str>> {
        self.has_name().then(|| Arc::clone(&self.name))
    }

    /// Returns true if it is one of several principals, and not the only one.
    #[must_use]
    pub fn has_name(&self) -> bool {
        !self.name.is_empty()
    }

    /// The same without a look at what others own.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self { sees_all: false, ..self.clone() }
    }

    /// Returns true if it sees what the principal of this name owns.
    #[must_use]
    pub fn sees(&self, name: &str) -> bool {
        self.sees_all || *self.name == *name
    }

    /// The name of an owner where this principal may know it: one that sees everything may, and without keys there is no name.
    #[must_use]
    pub fn visible_name(&self, owner: String) -> Option<String> {
        Some(owner).filter(|name| self.sees_all && !name.is_empty())
    }

    /// Returns the only name whose jobs and datasets it sees; `None` if it sees all.
    #[must_use]
    pub fn restriction(&self) -> Option<&str> {
        (!self.sees_all).then_some(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::Principal;

    #[test]
    fn names_of_owners_are_told_to_those_who_see_everything() {
        let told = |principal: Principal, name: &str| principal.visible_name(name.to_owned());
        assert_eq!(told(Principal::new("root", true), "alice").as_deref(), Some("alice"));
        assert_eq!(told(Principal::new("alice", false), "alice"), None);
        assert_eq!(told(Principal::new("", true), ""), None);
    }
}
