//! Models and datasets from the Hub: fetched, continued, verified, and taken from the cache. The Hub is a server on this machine.

mod cached;
mod datasets;
mod hostile;
mod interrupted;

use crate::common::hub_server::{COMMIT, HubServer, REPO};
use lm::hub::{DownloadProgress, Hub, HubError, HubSnapshot, RepoId, RepoKind, RetryPolicy};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::layer::SubscriberExt;

const TOKEN: &str = "hf_secret";

/// Content that differs at every place where it could be cut and put together wrongly.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let word = |i: u64| (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    (0..).flat_map(word).take(length).collect()
}

/// The size of the weights in these tests: some reads' worth.
const WEIGHTS: usize = 1_000_000;

fn tiny() -> HubServer {
    HubServer::with(&[
        ("config.json", b"{}"),
        ("tokenizer.json", b"{\"tokens\": []}"),
        ("model.safetensors", &bytes(1, WEIGHTS)),
        ("pytorch_model.bin", &bytes(2, 1000)),
        ("tf_model.h5", b"h5"),
        ("README.md", b"#"),
    ])
}

fn retry_policy(attempts: u32) -> RetryPolicy {
    // Pauses are short, and a minute's silence would fail the tests where nothing should wait.
    RetryPolicy { attempts, backoff: Duration::from_millis(1), idle: Duration::from_secs(60), ..RetryPolicy::default() }
}

fn hub_with(home: &Path, endpoint: &str, attempts: u32, more: &[(&str, &str)]) -> Hub {
    hub_with_policy(home, endpoint, retry_policy(attempts), more)
}

fn hub_with_policy(home: &Path, endpoint: &str, retry_policy: RetryPolicy, more: &[(&str, &str)]) -> Hub {
    let variable = |name: &str| match name {
        "HF_HOME" => Some(home.to_str()?.to_owned()),
        "HF_ENDPOINT" => Some(endpoint.to_owned()),
        _ => more.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()),
    };
    Hub::with_retry_policy(variable, retry_policy).unwrap()
}

/// One attempt, with a token.
fn hub(home: &TempDir, server: &HubServer) -> Hub {
    hub_with(home.path(), &server.url(), 1, &[("HF_TOKEN", TOKEN)])
}

fn offline(home: &TempDir, server: &HubServer) -> Hub {
    hub_with(home.path(), &server.url(), 1, &[("HF_HUB_OFFLINE", "1")])
}

fn repo() -> RepoId {
    RepoId::parse(REPO).unwrap()
}

fn fetch(hub: &Hub) -> Result<HubSnapshot, HubError> {
    hub.fetch(&repo(), "main", &DownloadProgress::default())
}

fn blobs(home: &Path) -> PathBuf {
    home.join("hub/models--some-org--tiny/blobs")
}

/// The one partial file in the cache.
fn part(home: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(blobs(home)).ok()?;
    entries.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|e| e == "part"))
}

fn part_length(home: &Path) -> Option<u64> {
    Some(part(home)?.metadata().unwrap().len())
}

/// The snapshot holds exactly these files, as the server has them.
fn assert_holds(snapshot: &HubSnapshot, server: &HubServer, names: &[&str]) {
    let mut present: Vec<String> = std::fs::read_dir(&snapshot.directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    present.sort();
    assert_eq!(present, names);
    for name in names {
        assert!(std::fs::read(snapshot.directory.join(name)).unwrap() == server.state().files[*name], "{name} differs");
    }
}

const TINY: [&str; 3] = ["config.json", "model.safetensors", "tokenizer.json"];

#[test]
fn a_model_is_fetched_once_into_the_usual_cache() {
    let (home, server, progress) = (TempDir::new().unwrap(), tiny(), DownloadProgress::default());
    let snapshot = hub(&home, &server).fetch(&repo(), "main", &progress).unwrap();
    assert_holds(&snapshot, &server, &TINY);
    assert_eq!(snapshot.commit, COMMIT);
    assert_eq!((progress.done(), progress.total()), (WEIGHTS as u64 + 16, WEIGHTS as u64 + 16));
    // Other tools look for a file in the snapshot that the reference names.
    let repo_directory = home.path().join("hub/models--some-org--tiny");
    assert_eq!(std::fs::read_to_string(repo_directory.join("refs/main")).unwrap(), COMMIT);
    assert_eq!(snapshot.directory, repo_directory.join("snapshots").join(COMMIT));
    #[cfg(unix)]
    for name in TINY {
        let blob = std::fs::read_link(snapshot.directory.join(name)).unwrap();
        assert_eq!(blob.parent(), Some(Path::new("../../blobs")), "{name}");
    }

    // The second time only the revision is resolved, and of a commit not even that.
    let asked = server.state().requests.len();
    assert_eq!(fetch(&hub(&home, &server)), Ok(snapshot.clone()));
    assert_eq!(server.state().requests.len(), asked + 1);
    assert_eq!(hub(&home, &server).fetch(&repo(), COMMIT, &DownloadProgress::default()), Ok(snapshot));
    assert_eq!(server.state().requests.len(), asked + 1);
}

#[test]
fn a_commit_is_fetched_by_its_hash() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    let snapshot = hub(&home, &server).fetch(&repo(), COMMIT, &DownloadProgress::default()).unwrap();
    assert_holds(&snapshot, &server, &TINY);
    assert!(!home.path().join("hub/models--some-org--tiny/refs").exists());
}

#[test]
fn the_first_complete_form_of_the_weights_is_taken() {
    let index = |shards: &[&str]| {
        let map: serde_json::Map<_, _> =
            shards.iter().enumerate().map(|(i, s)| (format!("tensor.{i}"), json!(s))).collect();
        json!({"metadata": {}, "weight_map": map}).to_string().into_bytes()
    };
    let (one, two) = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
    let (home, server) = (TempDir::new().unwrap(), tiny());
    server.state().files.remove("model.safetensors");
    server.state().files.insert("model.safetensors.index.json".to_owned(), index(&[one, two, one]));
    server.state().files.insert(one.to_owned(), bytes(3, 5000));
    // The second shard is missing.
    let fallen_back = fetch(&hub(&home, &server)).unwrap();
    assert!(fallen_back.directory.join("pytorch_model.bin").exists());
    assert!(!fallen_back.directory.join(one).exists());

    let home = TempDir::new().unwrap();
    server.state().files.insert(two.to_owned(), bytes(4, 6000));
    let snapshot = fetch(&hub(&home, &server)).unwrap();
    assert_holds(&snapshot, &server, &["config.json", one, two, "model.safetensors.index.json", "tokenizer.json"]);
    assert_eq!(fetch(&offline(&home, &server)), Ok(snapshot));
}

#[test]
fn what_is_no_model_is_refused() {
    let (home, server) = (TempDir::new().unwrap(), HubServer::with(&[("README.md", b"#")]));
    let missing = |missing: &str| {
        let refused = fetch(&hub(&home, &server)).unwrap_err();
        assert!(matches!(&refused, HubError::NoSuchFiles { .. }) && refused.to_string().contains(missing), "{refused}");
    };
    missing("config.json");
    server.state().files.insert("config.json".to_owned(), b"{}".to_vec());
    missing("model.safetensors");
    assert!(server.requests("config.json").is_empty(), "nothing is downloaded for it");
}

#[test]
fn the_token_goes_to_the_endpoint_alone() {
    let (home, server, other) = (TempDir::new().unwrap(), tiny(), tiny());
    // The same address by another name is another host.
    server.state().large_files_at = Some(format!("http://localhost:{}", other.port));
    server.state().redirect_relative = true;
    assert_holds(&fetch(&hub(&home, &server)).unwrap(), &server, &TINY);
    let bearer = Some(format!("Bearer {TOKEN}"));
    assert!(server.state().requests.iter().all(|request| request.token == bearer), "also to its own redirects");
    assert!(server.state().requests.len() >= 8, "every request is redirected once");
    let strayed = other.state().requests.clone();
    assert_eq!(strayed.len(), 1);
    assert_eq!(strayed[0].token, None);
}

#[test]
fn refusals_of_the_hub_say_what_to_do() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    let refused = |status, code| {
        server.state().refuse = Some((status, code));
        fetch(&hub(&home, &server)).unwrap_err()
    };
    let repo = REPO.to_owned();
    let missing = HubError::NotFound { kind: RepoKind::Model, repo: repo.clone(), revision: "main".to_owned() };
    assert_eq!(refused(401, "RepoNotFound"), missing);
    assert_eq!(refused(404, "RepoNotFound"), missing);
    assert_eq!(refused(404, "RevisionNotFound"), missing);
    assert_eq!(refused(401, "GatedRepo"), HubError::Gated { kind: RepoKind::Model, repo: repo.clone() });
    assert_eq!(refused(403, "GatedRepo"), HubError::Gated { kind: RepoKind::Model, repo: repo.clone() });
    assert!(matches!(refused(401, "Other"), HubError::Unauthorized { .. }));
    assert!(matches!(refused(418, "Other"), HubError::Protocol { .. }));
    assert!(HubError::Gated { kind: RepoKind::Model, repo }.to_string().contains("HF_TOKEN"));
    assert_eq!(server.state().requests.len(), 7, "none is tried again");
}

/// Returns what is logged while `work` runs on this thread. One subscriber serves all threads, since tracing remembers per
/// line of code, not per thread, whether any subscriber wants it; a filter asks at each event whether its thread records.
fn logged(work: impl FnOnce()) -> String {
    thread_local! {
        static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        static RECORDS: Cell<bool> = const { Cell::new(false) };
    }
    struct Lines;
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            LINES.with_borrow_mut(|lines| lines.extend(bytes));
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| Lines);
        let lines = lines.with_filter(dynamic_filter_fn(|_, _| RECORDS.get()));
        tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines)).unwrap();
    });
    LINES.take();
    RECORDS.set(true);
    work();
    RECORDS.set(false);
    String::from_utf8(LINES.take()).unwrap()
}

#[test]
fn a_download_is_logged_and_the_token_is_not() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    // Cut off twice, so that there is something to try again.
    server.state().cut_after = Some(400_000);
    let hub = hub_with(home.path(), &server.url(), 3, &[("HF_TOKEN", TOKEN)]);
    let log = logged(|| drop(fetch(&hub).unwrap()));
    for line in ["download starts", "downloading", "trying again", "download is complete"] {
        assert!(log.contains(line), "{line} is not in\n{log}");
    }
    assert!(log.contains(&format!("total_bytes={}", WEIGHTS + 16)), "{log}");
    assert!(log.lines().filter(|line| line.contains("downloading")).count() <= 10, "{log}");
    assert!(!log.contains(TOKEN), "{log}");
    assert!(logged(|| drop(fetch(&hub).unwrap())).is_empty(), "nothing was downloaded");
}
