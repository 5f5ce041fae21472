//! Urgency of requests.

use strum::{EnumCount, IntoStaticStr, VariantArray};

/// Urgency of a request, the more urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumCount, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Class {
    /// A client waits for it.
    Interactive,
    /// An audit or a command line feeds it.
    Batch,
}

/// One value for each class.
#[derive(Debug, Clone, Default)]
pub(super) struct PerClass<T>([T; Class::COUNT]);

impl<T> PerClass<T> {
    pub(super) fn new(mut value: impl FnMut(Class) -> T) -> Self {
        Self(std::array::from_fn(|index| value(Class::VARIANTS[index])))
    }

    pub(super) fn get(&self, class: Class) -> &T {
        &self.0[class as usize]
    }

    pub(super) fn get_mut(&mut self, class: Class) -> &mut T {
        &mut self.0[class as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}
