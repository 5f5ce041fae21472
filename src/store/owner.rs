//! Whose jobs and datasets there are, and who sees those of others.

use std::sync::Arc;

/// A client of the store: it owns what it creates, and sees that alone unless it sees everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name; empty where nobody needs one.
    name: Arc<str>,
    sees_all: bool,
}

impl Default for Owner {
    /// The only client of a store, or the service itself.
    fn default() -> Self {
        Self::new("", true)
    }
}

impl Owner {
    /// The client of a name, which perhaps sees what others own.
    #[must_use]
    pub fn new(name: &str, sees_all: bool) -> Self {
        Self { name: name.into(), sees_all }
    }

    /// Its name; empty where nobody needs one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same without a look at what others own.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self { sees_all: false, ..self.clone() }
    }

    /// Returns true if it sees what the client of this name owns.
    #[must_use]
    pub fn sees(&self, name: &str) -> bool {
        self.sees_all || *self.name == *name
    }

    /// The name of an owner where this client may know it: one that sees everything may, and without keys there is no name.
    #[must_use]
    pub fn visible_name(&self, owner: String) -> Option<String> {
        Some(owner).filter(|name| self.sees_all && !name.is_empty())
    }

    /// Returns the only name whose jobs and datasets it sees; `None` if it sees all.
    pub(super) fn restriction(&self) -> Option<&str> {
        (!self.sees_all).then_some(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::Owner;

    #[test]
    fn names_of_owners_are_told_to_those_who_see_everything() {
        let told = |client: Owner, name: &str| client.visible_name(name.to_owned());
        assert_eq!(told(Owner::new("root", true), "alice").as_deref(), Some("alice"));
        assert_eq!(told(Owner::new("alice", false), "alice"), None);
        assert_eq!(told(Owner::new("", true), ""), None);
    }
}
