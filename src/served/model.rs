//! A model at a URL, as a device of the engine runs it.

use super::backend::Backend;
use super::description::ServedDescription;
use super::server::unreached;
use crate::models::lora::LoadedAdapter;
use crate::models::{BatchStats, CausalLm, ModelError, Pending};
use std::cell::Cell;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// A server that was asked nothing for so long may have been started again with another model.
const CHECKED_FOR: Duration = Duration::from_secs(10);

/// The model that a server runs, as it was described when it was opened.
pub fn served_model(server: Arc<dyn Backend>, opened: Arc<ServedDescription>) -> Box<dyn CausalLm> {
    Box::new(RemoteModel { server, opened, asked: Cell::new(None) })
}

struct RemoteModel {
    server: Arc<dyn Backend>,
    opened: Arc<ServedDescription>,
    /// When it was last asked.
    asked: Cell<Option<Instant>>,
}

impl CausalLm for RemoteModel {
    /// Sends the sequences from a thread of its own, so that the server has the next batch when it is done with this one.
    fn begin(&self, sequences: &[&[u32]], adapter: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
        if adapter.is_some() {
            return Err(ModelError::takes_no_adapters());
        }
        let sequences: Vec<Vec<u32>> = sequences.iter().map(|ids| ids.to_vec()).collect();
        let (server, opened) = (Arc::clone(&self.server), Arc::clone(&self.opened));
        let is_checked = self.asked.replace(Some(Instant::now())).is_some_and(|at| at.elapsed() < CHECKED_FOR);
        let ask = move || {
            if !is_checked && !server.names_its_model() {
                server.check(&opened)?;
            }
            server.token_stats(&sequences, &opened.identity)
        };
        let asking = Builder::new().name("served-model".to_owned()).spawn(ask);
        let asking = asking.map_err(|error| unreached(format!("there is no thread to ask it: {error}")))?;
        Ok(Pending::queued(move || {
            asking.join().unwrap_or_else(|_| Err(ModelError::Forward("asking the server panicked".to_owned())))
        }))
    }

    fn probe(&self) -> Result<(), ModelError> {
        self.server.check(&self.opened)?;
        self.asked.set(Some(Instant::now()));
        Ok(())
    }
}
