//! Transitions, and what each tells those who wait.

use super::declaration;
use crate::pool::lifecycle::Lifecycle;
use crate::pool::signal::Signal;
use crate::pool::state::{Fetch, ModelState, Retry};
use crate::pool::{LoadError, Model, OpenError, UnknownModel};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot::{self, Receiver};

const SECOND: Duration = Duration::from_secs(1);

fn declared(eager: bool) -> Lifecycle {
    Lifecycle::new(declaration("m", eager, &[0, 1]), Arc::new(Signal::default()))
}

fn model(digest: &str) -> Arc<Model> {
    Arc::new(super::model("m", digest, &[0, 1]))
}

fn broken() -> OpenError {
    UnknownModel("broken".to_owned()).into()
}

fn open(lifecycle: &mut Lifecycle, digest: &str) -> Arc<Model> {
    let model = model(digest);
    let fetch = lifecycle.fetch(Retry::AfterPause, Instant::now()).unwrap();
    lifecycle.finish_fetch(&fetch, Ok(Arc::clone(&model)), Instant::now(), SECOND);
    model
}

fn order(lifecycle: &mut Lifecycle) -> (Option<Fetch>, Receiver<Result<(), LoadError>>) {
    let (waiter, loaded) = oneshot::channel();
    let fetch = lifecycle.refresh();
    lifecycle.order(waiter);
    (fetch, loaded)
}

fn drain(lifecycle: &mut Lifecycle) -> Receiver<()> {
    let (waiter, drained) = oneshot::channel();
    lifecycle.drain(waiter, false);
    drained
}

fn load(lifecycle: &mut Lifecycle, device: usize, result: Result<(), &str>) {
    assert!(lifecycle.begin_load(device).is_some());
    lifecycle.finish_load(device, result.map_err(str::to_owned), Instant::now(), SECOND);
}

#[test]
fn a_lazy_model_goes_through_every_state() {
    let mut lifecycle = declared(false);
    assert_eq!(lifecycle.state(), ModelState::Closed);
    assert!(!lifecycle.may_run_on(0), "nothing can be loaded before its files are open");
    let fetch = lifecycle.fetch(Retry::AfterPause, Instant::now()).unwrap();
    assert_eq!(lifecycle.state(), ModelState::Fetching);
    assert!(lifecycle.fetch(Retry::Now, Instant::now()).is_none(), "one attempt at a time");
    lifecycle.finish_fetch(&fetch, Ok(model("a")), Instant::now(), SECOND);
    assert_eq!(lifecycle.state(), ModelState::Opened);
    assert!(lifecycle.may_run_on(0) && !lifecycle.is_ordered(0), "its first request loads it");
    assert!(lifecycle.begin_load(0).is_some());
    assert_eq!(lifecycle.state(), ModelState::Loading);
    assert!(!lifecycle.may_run_on(1), "one device is enough");
    lifecycle.finish_load(0, Ok(()), Instant::now(), SECOND);
    assert_eq!((lifecycle.state(), lifecycle.resident()), (ModelState::Ready, vec![0]));
    lifecycle.leave(0);
    assert_eq!(lifecycle.state(), ModelState::Opened, "evicted");
    let mut drained = drain(&mut lifecycle);
    assert_eq!(lifecycle.state(), ModelState::Draining);
    assert!(lifecycle.is_drained());
    lifecycle.finish_drain();
    assert_eq!(lifecycle.state(), ModelState::Opened);
    assert_eq!(drained.try_recv(), Ok(()));
}

#[test]
fn an_eager_model_is_ordered_on_all_its_devices_once_it_is_open() {
    let mut lifecycle = declared(true);
    assert!(lifecycle.is_missing());
    open(&mut lifecycle, "a");
    assert!(lifecycle.is_ordered(0) && lifecycle.is_ordered(1));
    assert_eq!(lifecycle.state(), ModelState::Loading);
    load(&mut lifecycle, 1, Ok(()));
    assert_eq!(lifecycle.state(), ModelState::Ready, "one replica is enough");
    assert!(!lifecycle.is_missing());
    load(&mut lifecycle, 0, Err("no memory"));
    assert_eq!((lifecycle.state(), lifecycle.resident()), (ModelState::Ready, vec![1]));
}

#[test]
fn requests_wait_after_a_failure_and_people_do_not() {
    let mut lifecycle = declared(false);
    let now = Instant::now();
    let fetch = lifecycle.fetch(Retry::AfterPause, now).unwrap();
    lifecycle.finish_fetch(&fetch, Err(broken()), now, 5 * SECOND);
    assert!(matches!(lifecycle.state(), ModelState::Failed(reason) if reason.contains("broken")));
    assert!(lifecycle.fetch(Retry::AfterPause, now + 4 * SECOND).is_none());
    assert!(lifecycle.open_error().is_some());
    let fetch = lifecycle.fetch(Retry::Now, now).unwrap();
    lifecycle.finish_fetch(&fetch, Err(broken()), now, 5 * SECOND);
    assert!(lifecycle.fetch(Retry::AfterPause, now + 5 * SECOND).is_some());

    let mut lifecycle = declared(false);
    open(&mut lifecycle, "a");
    load(&mut lifecycle, 0, Err("no memory"));
    assert_eq!(lifecycle.pause(Instant::now()), Some("no memory"));
    assert_eq!(lifecycle.pause(Instant::now() + 2 * SECOND), None);
    let (fetch, mut loaded) = order(&mut lifecycle);
    lifecycle.finish_fetch(&fetch.unwrap(), Ok(model("a")), Instant::now(), SECOND);
    assert_eq!(lifecycle.pause(Instant::now()), None, "an order forgets the failure");
    assert!(loaded.try_recv().is_err(), "it waits for both devices");
}

#[test]
fn an_eager_model_is_tried_again_after_a_pause_that_doubles() {
    let (mut lifecycle, start) = (declared(true), Instant::now());
    assert_eq!(lifecycle.retry_at(), None, "nothing has failed yet");
    let mut fetch = lifecycle.fetch(Retry::AfterPause, start).unwrap();
    let mut now = start;
    for pause in [1, 2, 4] {
        lifecycle.finish_fetch(&fetch, Err(broken()), now, Duration::ZERO);
        assert_eq!(lifecycle.retry_at(), Some(now + pause * SECOND));
        assert!(lifecycle.retry(now + pause * SECOND - Duration::from_millis(1)).is_none(), "too soon");
        now += pause * SECOND;
        fetch = lifecycle.retry(now).unwrap();
        assert_eq!((lifecycle.state(), lifecycle.retry_at()), (ModelState::Fetching, None));
    }
    // The replicas of one attempt fail together, and what loads starts the count anew.
    lifecycle.finish_fetch(&fetch, Ok(model("a")), now, SECOND);
    for device in [0, 1] {
        assert!(lifecycle.begin_load(device).is_some());
        lifecycle.finish_load(device, Err("no memory".to_owned()), now, Duration::ZERO);
    }
    assert!(!lifecycle.is_ordered(0), "a replica that failed waits for the next attempt");
    assert_eq!(lifecycle.retry_at(), Some(now + 8 * SECOND));
    let fetch = lifecycle.retry(now + 8 * SECOND).expect("the files may have been repaired");
    lifecycle.finish_fetch(&fetch, Ok(model("b")), now, SECOND);
    load(&mut lifecycle, 0, Ok(()));
    load(&mut lifecycle, 1, Err("no memory"));
    assert_eq!((lifecycle.state(), lifecycle.retry_at()), (ModelState::Ready, None), "one replica is enough");
    lifecycle.leave(0);
    // A request that loads in between neither counts nor puts the next attempt off.
    for request in [now, now + SECOND / 2] {
        assert!(lifecycle.begin_load(0).is_some());
        for device in [0, 1] {
            lifecycle.finish_load(device, Err("no memory".to_owned()), request, Duration::ZERO);
        }
        assert_eq!(lifecycle.retry_at(), Some(now + SECOND));
    }
}

#[test]
fn what_nobody_waits_for_is_not_tried_again_by_itself() {
    let now = Instant::now();
    let fail = |lifecycle: &mut Lifecycle| {
        let fetch = lifecycle.fetch(Retry::Now, now).unwrap();
        lifecycle.finish_fetch(&fetch, Err(broken()), now, SECOND);
    };
    let mut lazy = declared(false);
    fail(&mut lazy);
    assert_eq!(lazy.retry_at(), None);
    assert!(lazy.retry(now + 60 * SECOND).is_none());

    let mut unloaded = declared(true);
    fail(&mut unloaded);
    assert!(unloaded.retry_at().is_some());
    let _drained = drain(&mut unloaded);
    assert_eq!(unloaded.retry_at(), None, "it drains");
    unloaded.finish_drain();
    fail(&mut unloaded);
    assert_eq!(unloaded.retry_at(), None, "it was unloaded by hand");
}

#[test]
fn a_model_in_use_is_loaded_again_from_the_files_of_before() {
    let (mut lifecycle, now) = (declared(true), Instant::now());
    open(&mut lifecycle, "a");
    let _lease = lifecycle.lease();
    for device in [0, 1] {
        assert!(lifecycle.begin_load(device).is_some());
        lifecycle.finish_load(device, Err("no memory".to_owned()), now, SECOND);
    }
    assert!(lifecycle.retry(now + SECOND).is_none(), "its ids belong to these files");
    assert!(lifecycle.is_ordered(0) && lifecycle.is_ordered(1));
}

#[test]
fn a_load_by_hand_opens_the_files_first_and_hears_what_came_of_it() {
    let mut lifecycle = declared(false);
    let (fetch, mut loaded) = order(&mut lifecycle);
    lifecycle.finish_fetch(&fetch.unwrap(), Err(broken()), Instant::now(), SECOND);
    assert!(matches!(loaded.try_recv(), Ok(Err(LoadError::Failed(reason))) if reason.contains("broken")));

    let (fetch, mut loaded) = order(&mut lifecycle);
    lifecycle.finish_fetch(&fetch.unwrap(), Ok(model("a")), Instant::now(), SECOND);
    assert!(lifecycle.is_ordered(0) && lifecycle.is_ordered(1));
    load(&mut lifecycle, 0, Ok(()));
    assert!(loaded.try_recv().is_err());
    load(&mut lifecycle, 1, Ok(()));
    assert_eq!(loaded.try_recv(), Ok(Ok(())));
    let (fetch, mut loaded) = order(&mut lifecycle);
    assert!(fetch.is_none(), "what is loaded stays what it is");
    assert_eq!(loaded.try_recv(), Ok(Ok(())));
}

#[test]
fn files_are_opened_anew_only_while_nobody_uses_them() {
    let mut lifecycle = declared(false);
    let first = open(&mut lifecycle, "a");
    let lease = lifecycle.lease();
    assert!(lifecycle.refresh().is_none(), "its ids belong to these files");
    drop(lease);
    let fetch = lifecycle.refresh().unwrap();
    assert!(Arc::ptr_eq(fetch.previous.as_ref().unwrap(), &first), "so that unchanged files are not read again");
    assert!(Arc::ptr_eq(lifecycle.model().unwrap(), &first), "requests go on meanwhile");
    lifecycle.finish_fetch(&fetch, Ok(model("b")), Instant::now(), SECOND);
    assert_eq!(lifecycle.model().unwrap().info.digest, "b");
    // A request that came while the files were read keeps the model what it was.
    let fetch = lifecycle.refresh().unwrap();
    let lease = lifecycle.lease();
    lifecycle.finish_fetch(&fetch, Ok(model("c")), Instant::now(), SECOND);
    assert_eq!(lifecycle.model().unwrap().info.digest, "b");
    drop(lease);
}

#[test]
fn an_attempt_that_was_overtaken_changes_nothing() {
    let mut lifecycle = declared(false);
    let stale = Fetch { progress: Arc::default(), previous: None };
    let current = lifecycle.fetch(Retry::AfterPause, Instant::now()).unwrap();
    lifecycle.finish_fetch(&stale, Ok(model("old")), Instant::now(), SECOND);
    assert_eq!(lifecycle.state(), ModelState::Fetching);
    lifecycle.finish_fetch(&current, Ok(model("new")), Instant::now(), SECOND);
    assert_eq!(lifecycle.model().unwrap().info.digest, "new");
}

#[test]
fn of_load_and_unload_the_unload_wins() {
    let mut lifecycle = declared(true);
    open(&mut lifecycle, "a");
    let (_, mut loaded) = order(&mut lifecycle);
    assert!(lifecycle.begin_load(0).is_some());
    let mut drained = drain(&mut lifecycle);
    assert_eq!(loaded.try_recv(), Ok(Err(LoadError::Unloading)));
    assert!(!lifecycle.is_ordered(1), "what has not begun is withdrawn");
    lifecycle.finish_load(0, Ok(()), Instant::now(), SECOND);
    assert!(!lifecycle.is_drained() && drained.try_recv().is_err(), "what has begun is finished first");
    lifecycle.leave(0);
    assert!(lifecycle.is_drained());
    lifecycle.finish_drain();
    assert!(!lifecycle.is_missing(), "readiness does not wait for what was unloaded by hand");
}

#[test]
fn a_model_in_use_is_not_drained() {
    let mut lifecycle = declared(false);
    open(&mut lifecycle, "a");
    let lease = lifecycle.lease();
    let _drained = drain(&mut lifecycle);
    assert!(!lifecycle.is_drained());
    let second = lease.clone();
    drop(lease);
    assert!(!lifecycle.is_drained());
    drop(second);
    assert!(lifecycle.is_drained());
}

#[test]
fn an_unload_while_files_are_opened_keeps_an_eager_model_out_of_memory() {
    let mut lifecycle = declared(true);
    let fetch = lifecycle.fetch(Retry::AfterPause, Instant::now()).unwrap();
    let _drained = drain(&mut lifecycle);
    assert!(lifecycle.is_drained());
    lifecycle.finish_drain();
    lifecycle.finish_fetch(&fetch, Ok(model("a")), Instant::now(), SECOND);
    assert_eq!(lifecycle.state(), ModelState::Opened);
}
