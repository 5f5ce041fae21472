//! All models, by id and in the order in which they were declared.

use super::declaration::{Declaration, base_id, split};
use super::error::{AddError, Ended, LoadError, OpenError, UnknownModel};
use super::lifecycle::Lifecycle;
use super::model::Model;
use super::signal::{Lease, Signal};
use super::state::{Fetch, Retry};
use indexmap::IndexMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The models of a pool. What the lock of the pool guards.
#[derive(Debug)]
pub(crate) struct Models {
    entries: IndexMap<Arc<str>, Lifecycle>,
    devices: usize,
    ended: Option<Ended>,
    signal: Arc<Signal>,
}

impl Models {
    pub(super) fn new(devices: usize, signal: Arc<Signal>) -> Self {
        Self { entries: IndexMap::new(), devices, ended: None, signal }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Lifecycle)> {
        self.entries.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The model of this id; of an adapted model, its base.
    pub(crate) fn get(&self, id: &str) -> Option<&Lifecycle> {
        self.entries.get(base_id(id))
    }

    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut Lifecycle> {
        self.entries.get_mut(base_id(id))
    }

    pub(crate) fn ended(&self) -> Option<&Ended> {
        self.ended.as_ref()
    }

    pub(super) fn add(&mut self, declaration: Declaration) -> Result<(), AddError> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone().into());
        }
        let (id, devices, count) = (&declaration.id, &declaration.devices, self.devices);
        let once = |(position, device): (usize, &usize)| *device < count && !devices[..position].contains(device);
        if devices.is_empty() || !devices.iter().enumerate().all(once) {
            return Err(AddError::Devices { id: id.clone(), devices: devices.clone(), count });
        }
        if self.entries.contains_key(id.as_str()) {
            return Err(AddError::Taken(id.clone()));
        }
        let lifecycle = Lifecycle::new(declaration, Arc::clone(&self.signal));
        self.entries.insert(lifecycle.declaration().id.as_str().into(), lifecycle);
        Ok(())
    }

    pub(super) fn fetch(&mut self, id: &str, retry: Retry, now: Instant) -> Option<Fetch> {
        self.entries.get_mut(id)?.fetch(retry, now)
    }

    pub(super) fn finish_fetch(
        &mut self,
        id: &str,
        fetch: &Fetch,
        result: Result<Arc<Model>, OpenError>,
        now: Instant,
        took: Duration,
    ) {
        if let Some(lifecycle) = self.entries.get_mut(id) {
            lifecycle.finish_fetch(fetch, result, now, took);
            if self.ended.is_some() {
                // Nothing is loaded any more but what queued work asks for.
                lifecycle.withdraw();
            }
        }
    }

    /// Orders a model on all its devices. What is to be opened first for that is given back.
    pub(super) fn order(
        &mut self,
        id: &str,
        waiter: oneshot::Sender<Result<(), LoadError>>,
    ) -> Result<Option<Fetch>, LoadError> {
        let lifecycle = self.entries.get_mut(id).ok_or_else(|| UnknownModel(id.to_owned()))?;
        if let Some(ended) = &self.ended {
            return Err(ended.clone().into());
        }
        if lifecycle.is_draining() {
            return Err(LoadError::Unloading);
        }
        let fetch = lifecycle.refresh();
        lifecycle.order(waiter);
        Ok(fetch)
    }

    /// When the next eager model that failed is to be tried again by itself; none while there is none.
    pub(super) fn next_retry(&self) -> Result<Option<Instant>, Ended> {
        match &self.ended {
            Some(ended) => Err(ended.clone()),
            None => Ok(self.entries.values().filter_map(Lifecycle::retry_at).min()),
        }
    }

    /// Tries every model again that is due. What is to be opened for that is given back.
    pub(super) fn retry(&mut self, now: Instant) -> Vec<(Arc<str>, Fetch)> {
        if self.ended.is_some() {
            return Vec::new();
        }
        let begun = self.entries.iter_mut().filter_map(|(id, lifecycle)| Some((Arc::clone(id), lifecycle.retry(now)?)));
        begun.collect()
    }

    pub(super) fn drain(&mut self, id: &str, waiter: oneshot::Sender<()>, remove: bool) -> Result<(), UnknownModel> {
        let lifecycle = self.entries.get_mut(id).ok_or_else(|| UnknownModel(id.to_owned()))?;
        lifecycle.drain(waiter, remove);
        self.finish_drains();
        Ok(())
    }

    pub(crate) fn drained(&self) -> Vec<Arc<str>> {
        let drained = self.entries.iter().filter(|(_, lifecycle)| lifecycle.is_drained());
        drained.map(|(id, _)| Arc::clone(id)).collect()
    }

    /// Ends every draining that is done, and takes removed models out.
    pub(crate) fn finish_drains(&mut self) {
        for id in &self.drained() {
            let Some(lifecycle) = self.entries.get_mut(id) else { continue };
            if lifecycle.is_removed() {
                // Taken out first: who hears of it finds the id free.
                if let Some(mut removed) = self.entries.shift_remove(id) {
                    removed.finish_drain();
                }
            } else {
                lifecycle.finish_drain();
            }
        }
    }

    /// As [`Pool::lease`](super::Pool). What is cached can be answered though the model drains, or failed to load a moment ago.
    pub(super) fn lease(&self, id: &str, identity: &str, now: Instant) -> Result<Option<Leased>, UnknownModel> {
        let (base, adapter) = split(id);
        let lifecycle = self.entries.get(base).ok_or_else(|| UnknownModel(id.to_owned()))?;
        let model = lifecycle.model().and_then(|model| match adapter {
            Some(name) => lifecycle.adapters.opened(name, model),
            None => Some(model),
        });
        let Some(model) = model.filter(|model| *model.identity == *identity) else { return Ok(None) };
        let lease = match lifecycle.pause(now) {
            _ if lifecycle.is_draining() => Err(LoadError::Unloading),
            Some(reason) => Err(LoadError::Failed(reason.to_owned())),
            None => Ok(lifecycle.lease()),
        };
        Ok(Some((Arc::clone(model), lease)))
    }

    pub(super) fn end(&mut self, ended: Ended) {
        let ended = self.ended.get_or_insert(ended).clone();
        for lifecycle in self.entries.values_mut() {
            match ended {
                Ended::ShuttingDown => lifecycle.forget_loaders(),
                Ended::DeviceLost(_) => lifecycle.forget_waiters(),
            }
            lifecycle.withdraw();
        }
    }

    /// Lets go of all who wait: there is no thread left that could do anything for them.
    pub(crate) fn forget_waiters(&mut self) {
        self.entries.values_mut().for_each(Lifecycle::forget_waiters);
    }
}

/// A model whose files are open, with the right to use it or why it cannot be used now.
pub(crate) type Leased = (Arc<Model>, Result<Lease, LoadError>);
