//! A model at a URL, as a device of the engine runs it.

use super::backend::Backend;
use super::description::ServedDescription;
use super::server::unreached;
use crate::models::lora::LoadedAdapter;
use crate::models::{BatchStats, CausalLm, ModelError, Pending};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// A server that was asked nothing for so long may have been started again with another model.
const CHECKED_FOR: Duration = Duration::from_secs(10);

/// The model that a server runs, as it was described when it was opened.
pub fn served_model(server: Arc<dyn Backend>, opened: Arc<ServedDescription>) -> Box<dyn CausalLm> {
    Box::new(RemoteModel { server, opened, checked: Arc::default() })
}

struct RemoteModel {
    server: Arc<dyn Backend>,
    opened: Arc<ServedDescription>,
    /// When it was last known to run the model that was opened.
    checked: Arc<LastCheck>,
}

/// When a server was last known to run the model that was opened; none where that is not known.
#[derive(Default)]
struct LastCheck(Mutex<Option<Instant>>);

impl LastCheck {
    fn is_fresh(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() < CHECKED_FOR)
    }

    fn note(&self, holds: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = holds.then(Instant::now);
    }
}

impl CausalLm for RemoteModel {
    /// Sends the sequences from a thread of its own, so that the server has the next batch when it is done with this one.
    fn begin(&self, sequences: &[&[u32]], adapter: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
        if adapter.is_some() {
            return Err(ModelError::takes_no_adapters());
        }
        let sequences: Vec<Vec<u32>> = sequences.iter().map(|ids| ids.to_vec()).collect();
        let (server, opened, checked) = (Arc::clone(&self.server), Arc::clone(&self.opened), Arc::clone(&self.checked));
        let ask = move || {
            // A batch that begins while another one is still being checked for is checked for as well.
            if !server.names_its_model() && !checked.is_fresh() {
                server.check(&opened)?;
                checked.note(true);
            }
            let stats = server.token_stats(&sequences, &opened.identity);
            checked.note(stats.is_ok());
            stats
        };
        let asking = Builder::new().name("served-model".to_owned()).spawn(ask);
        let asking = asking.map_err(|error| unreached(format!("there is no thread to ask it: {error}")))?;
        Ok(Pending::queued(move || {
            asking.join().unwrap_or_else(|_| Err(ModelError::Forward("asking the server panicked".to_owned())))
        }))
    }

    fn probe(&self) -> Result<(), ModelError> {
        self.server.check(&self.opened)?;
        self.checked.note(true);
        Ok(())
    }
}
