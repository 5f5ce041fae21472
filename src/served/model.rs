//! A server of any kind, and the model that it runs as a device of the engine.

use super::description::ServedDescription;
use super::server::{unavailable, unreached};
use lm::models::lora::LoadedAdapter;
use lm::models::{BatchStats, CausalLm, Continuation, GreedyPrompt, ModelError, Pending};
use lm::tokenizer::Tokenizer;
use mia::TokenStats;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// A model that was opened: as a server described it, with the tokenizer that is here.
pub struct OpenedModel {
    pub description: Arc<ServedDescription>,
    pub tokenizer: Tokenizer,
}

pub trait Backend: Send + Sync {
    /// Returns its description of the model, whose tokenizer is this one.
    fn describe(&self, tokenizer: &Tokenizer) -> Result<ServedDescription, ModelError>;

    /// Checks that it runs the model that was opened.
    fn check(&self, opened: &OpenedModel) -> Result<(), ModelError>;

    /// Returns true if its answers say which model they are from. Otherwise it is checked before it gets a batch.
    fn names_its_model(&self) -> bool;

    /// The statistics of sequences that it computes as the model that was opened, by sequence.
    fn token_stats(&self, sequences: &[Vec<u32>], opened: &OpenedModel) -> Result<BatchStats, ModelError>;

    /// The greedy continuations of prompts, as long as is wanted; drafts are of no use to it.
    fn continue_greedily(&self, prompts: &[GreedyPrompt]) -> Result<Vec<Continuation>, ModelError> {
        let _ = prompts;
        Err(ModelError::continues_no_texts())
    }
}

/// Time for which a check counts: a server may be started again with another model at any time.
const CHECKED_FOR: Duration = Duration::from_secs(10);

/// The model that a server runs, as it was described when it was opened.
pub fn served_model(server: Arc<dyn Backend>, opened: Arc<OpenedModel>) -> Box<dyn CausalLm> {
    Box::new(RemoteModel { server, opened, checked: Arc::default() })
}

struct RemoteModel {
    server: Arc<dyn Backend>,
    opened: Arc<OpenedModel>,
    /// When it was last known to run the model that was opened.
    checked: Arc<LastCheck>,
}

/// Time when a server was last known to run the model that was opened; `None` if that is not known.
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

/// Returns the error of a server that did not have the batch yet: it says nothing of the sequences.
fn before_batch(error: ModelError) -> ModelError {
    match error {
        ModelError::Unavailable { reason, retry_after, .. } => {
            ModelError::Unavailable { reason, had_batch: false, retry_after }
        }
        error => unreached(error.to_string()),
    }
}

/// Deviation from a bound that rounding explains, in nats or nats squared: sums in f64 over a vocabulary are accurate to 1e-12.
pub const ROUNDING: f64 = 1e-6;

/// Checks that statistics can be those of a distribution: log-probabilities and their mean are at most 0, no token is more probable than the
/// most probable one, and a variance is not negative. NaN passes: a model with broken weights has it, and its methods report it.
fn check_ranges(stats: &[Vec<TokenStats>]) -> Result<(), ModelError> {
    let is_possible = |&TokenStats { lp, mu, var, max_lp }: &TokenStats| {
        let exceeds = |number: f64, bound: f64| number > bound + ROUNDING;
        !(exceeds(max_lp, 0.0) || exceeds(lp, max_lp) || exceeds(mu, 0.0) || exceeds(0.0, var)) && var != f64::INFINITY
    };
    match stats.iter().flatten().find(|stats| !is_possible(stats)) {
        Some(stats) => Err(unavailable(format!("its answer has statistics that no distribution has: {stats:?}"))),
        None => Ok(()),
    }
}

impl RemoteModel {
    /// Asks the server from a thread of its own, so that it has the next batch when it is done with this one.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Backend, &OpenedModel) -> Result<T, ModelError> + Send + 'static,
    ) -> Result<Pending<T>, ModelError> {
        let (server, opened, checked) = (Arc::clone(&self.server), Arc::clone(&self.opened), Arc::clone(&self.checked));
        let ask = move || {
            // Of two batches that begin at once each waits for a check of its own.
            if !server.names_its_model() && !checked.is_fresh() {
                server.check(&opened).map_err(before_batch)?;
                checked.note(true);
            }
            let answer = question(&*server, &opened);
            if answer.is_err() {
                checked.note(false);
            }
            answer
        };
        let asking = Builder::new().name("served-model".to_owned()).spawn(ask);
        let asking = asking.map_err(|error| unreached(format!("there is no thread to ask it: {error}")))?;
        Ok(Pending::queued(move || {
            asking.join().unwrap_or_else(|_| Err(ModelError::Forward("asking the server panicked".to_owned())))
        }))
    }
}

impl CausalLm for RemoteModel {
    fn begin(&self, sequences: &[&[u32]], adapter: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
        if adapter.is_some() {
            return Err(ModelError::takes_no_adapters());
        }
        let sequences: Vec<Vec<u32>> = sequences.iter().map(|ids| ids.to_vec()).collect();
        self.ask(move |server, opened| {
            let stats = server.token_stats(&sequences, opened)?;
            check_ranges(&stats).map(|()| stats)
        })
    }

    fn begin_continuation(
        &self,
        prompts: &[&GreedyPrompt],
        adapter: Option<&LoadedAdapter>,
    ) -> Result<Pending<Vec<Continuation>>, ModelError> {
        if adapter.is_some() {
            return Err(ModelError::takes_no_adapters());
        }
        let prompts: Vec<GreedyPrompt> = prompts.iter().map(|&prompt| prompt.clone()).collect();
        self.ask(move |server, _| server.continue_greedily(&prompts))
    }

    fn probe(&self) -> Result<(), ModelError> {
        self.server.check(&self.opened).map_err(before_batch)?;
        self.checked.note(true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A server that fails a check as it is told, and otherwise answers with nothing.
    #[derive(Default)]
    struct CountingServer {
        checks: AtomicUsize,
        refusal: Mutex<Option<ModelError>>,
    }

    impl Backend for CountingServer {
        fn describe(&self, _: &Tokenizer) -> Result<ServedDescription, ModelError> {
            Err(unreached("it is not asked"))
        }

        fn check(&self, _: &OpenedModel) -> Result<(), ModelError> {
            self.checks.fetch_add(1, Ordering::SeqCst);
            self.refusal.lock().unwrap().take().map_or(Ok(()), Err)
        }

        fn names_its_model(&self) -> bool {
            false
        }

        fn token_stats(&self, sequences: &[Vec<u32>], _: &OpenedModel) -> Result<BatchStats, ModelError> {
            Ok(vec![Vec::new(); sequences.len()])
        }
    }

    fn remote(server: &Arc<CountingServer>) -> RemoteModel {
        let description = Arc::new(ServedDescription::of_vllm(vec![-1.0], 0.0));
        let tokenizer = r#"{ "model": { "type": "WordLevel", "vocab": { "a": 0 }, "unk_token": "a" } }"#;
        let tokenizer = Tokenizer::from_json(tokenizer.as_bytes()).unwrap();
        let opened = Arc::new(OpenedModel { description, tokenizer });
        RemoteModel { server: Arc::clone(server) as Arc<dyn Backend>, opened, checked: Arc::default() }
    }

    fn run(model: &RemoteModel) -> Result<BatchStats, ModelError> {
        model.begin(&[&[1, 2]], None)?.wait()
    }

    #[test]
    fn statistics_of_no_distribution_are_refused() {
        const POSSIBLE: TokenStats = TokenStats { lp: -2.0, mu: -1.5, var: 0.5, max_lp: -0.5 };
        let is_refused = |stats: TokenStats| check_ranges(&[Vec::new(), vec![POSSIBLE, stats]]).is_err();
        for possible in [
            POSSIBLE,
            TokenStats { lp: 1e-12, mu: 0.0, var: -1e-12, max_lp: 0.0 },
            TokenStats { lp: f64::NEG_INFINITY, mu: f64::NAN, var: f64::NAN, ..POSSIBLE },
        ] {
            assert!(!is_refused(possible), "{possible:?}");
        }
        for impossible in [
            TokenStats { lp: 0.1, max_lp: 0.1, ..POSSIBLE },
            TokenStats { lp: -0.4, ..POSSIBLE },
            TokenStats { mu: 0.1, ..POSSIBLE },
            TokenStats { mu: f64::INFINITY, ..POSSIBLE },
            TokenStats { var: -0.1, ..POSSIBLE },
            TokenStats { var: f64::INFINITY, ..POSSIBLE },
            TokenStats { max_lp: f64::INFINITY, ..POSSIBLE },
        ] {
            assert!(is_refused(impossible), "{impossible:?}");
        }
    }

    #[test]
    fn a_batch_does_not_stand_in_for_a_check() {
        let server = Arc::new(CountingServer::default());
        let model = remote(&server);
        run(&model).unwrap();
        let checked = *model.checked.0.lock().unwrap();
        run(&model).unwrap();
        assert_eq!((server.checks.load(Ordering::SeqCst), *model.checked.0.lock().unwrap()), (1, checked));
        *model.checked.0.lock().unwrap() = Instant::now().checked_sub(CHECKED_FOR);
        run(&model).unwrap();
        assert_eq!(server.checks.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_check_that_fails_says_nothing_of_the_batch() {
        let server = Arc::new(CountingServer::default());
        let retry_after = Some(Duration::from_secs(7));
        let failures = [
            (ModelError::Unavailable { reason: "r".to_owned(), had_batch: true, retry_after }, retry_after),
            (ModelError::Forward("r".to_owned()), None),
            (ModelError::OutOfMemory("r".to_owned()), None),
        ];
        for (failure, pause) in failures {
            *server.refusal.lock().unwrap() = Some(failure);
            match run(&remote(&server)).unwrap_err() {
                ModelError::Unavailable { had_batch: false, retry_after, .. } => assert_eq!(retry_after, pause),
                error => panic!("{error}"),
            }
        }
    }
}
