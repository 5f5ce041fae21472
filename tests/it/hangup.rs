//! Files that the running program reopens on SIGHUP: the keys, and its record.

use crate::common::client::{Client, send};
use crate::common::keys::{Keys, SCORING};
use pdr_audit::access::ClientLimits;
use reqwest::Method;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The longest that the program takes to say or to do something.
const PATIENCE: Duration = Duration::from_secs(120);

/// The program with keys and a record, and the lines of its log.
struct Program {
    process: Child,
    client: Client,
    log: UnboundedReceiver<String>,
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended unless the test has failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Program {
    async fn start(keys: &Keys) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_pdr-audit"))
            .args(["serve", "--port", "0"])
            .env("PDR_AUDIT__AUTH__KEYS", keys.path())
            .env("PDR_AUDIT__AUTH__RECORD", keys.record())
            .env("PDR_AUDIT__SERVER__DRAIN_DELAY", "0")
            .env("RUST_LOG", "info")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let (sender, log) = unbounded_channel();
        // Read on, so that the program never waits for its log to be read. Who listens may be gone.
        std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
        let nobody = "127.0.0.1:1".parse().unwrap();
        let mut program = Self { process, client: Client::new(nobody), log };
        let line = program.said("listening on http://").await;
        let address = line.split("http://").nth(1).unwrap().split(',').next().unwrap();
        program.client = Client::new(address.parse().unwrap());
        // Once it answers, it has been told what to do on a signal.
        assert_eq!(program.client.get("/livez").await.status, 200);
        program
    }

    /// The next line of the log that has these words.
    async fn said(&mut self, words: &str) -> String {
        let found = async {
            loop {
                let line = self.log.recv().await.unwrap_or_else(|| panic!("it ended without a word of {words:?}"));
                if line.contains(words) {
                    return line;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("it does not say {words:?}"))
    }

    fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// The status of a request under this key.
    async fn status(&self, key: &str, request_id: &str) -> u16 {
        let request = self.client.with_key(key).request(Method::GET, "/v1/models");
        send(request.header("x-request-id", request_id)).await.status
    }

    /// Ends it, so that all of its record is written.
    fn end(mut self) {
        self.signal("-TERM");
        assert!(self.process.wait().unwrap().success());
    }
}

/// The ids and the statuses of the requests of a record.
fn recorded(path: &Path) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(path).unwrap();
    let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let entries = entries.filter(|entry| entry["event"].is_null());
    entries.map(|entry| (entry["request_id"].as_str().unwrap().to_owned(), entry["status"].as_u64().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_read_again_on_a_hangup_unless_their_file_is_broken() {
    let mut keys = Keys::new();
    let alice = keys.add("alice", SCORING, ClientLimits::default());
    let mut program = Program::start(&keys).await;
    let bob = keys.add("bob", SCORING, ClientLimits::default());
    keys.file.keys.remove(0);
    keys.write();
    // A file that was written is not read before somebody asks for that.
    assert_eq!((program.status(&alice, "1").await, program.status(&bob, "2").await), (200, 401));
    program.signal("-HUP");
    program.said("the keys were read again").await;
    assert_eq!((program.status(&alice, "3").await, program.status(&bob, "4").await), (401, 200));

    let whole = std::fs::read(keys.path()).unwrap();
    let breaks: [&dyn Fn(); 3] = [
        &|| std::fs::write(keys.path(), "nonsense").unwrap(),
        // As whoever writes in place leaves it for a moment.
        &|| std::fs::write(keys.path(), &whole[..whole.len() - 8]).unwrap(),
        &|| std::fs::remove_file(keys.path()).unwrap(),
    ];
    for break_file in breaks {
        break_file();
        program.signal("-HUP");
        let line = program.said("the keys stay as they were").await;
        assert!(line.contains("ERROR") && line.contains("keys.toml"), "{line}");
        assert_eq!((program.status(&alice, "5").await, program.status(&bob, "6").await), (401, 200));
    }

    keys.add("alice", SCORING, ClientLimits::default());
    program.signal("-HUP");
    program.said("the keys were read again").await;
    assert_eq!((program.status(&alice, "7").await, program.status(&bob, "8").await), (401, 200));
    program.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_put_aside_is_begun_anew_on_a_hangup() {
    let mut keys = Keys::new();
    let alice = keys.add("alice", SCORING, ClientLimits::default());
    let mut program = Program::start(&keys).await;
    assert_eq!(program.status(&alice, "first").await, 200);
    let aside = keys.directory.path().join("access.old");
    std::fs::rename(keys.record(), &aside).unwrap();
    // Without the signal it goes on where it was.
    assert_eq!((program.status("wrong", "second").await, keys.record().exists()), (401, false));
    let begun = std::time::Instant::now();
    while recorded(&aside).len() < 2 {
        assert!(begun.elapsed() < PATIENCE, "the second request is not recorded");
        tokio::task::yield_now().await;
    }
    program.signal("-HUP");
    program.said("the keys were read again").await;
    // The record is opened with the first line after the signal.
    let (mut requests, begun) = (0, std::time::Instant::now());
    while !keys.record().exists() {
        assert!(begun.elapsed() < PATIENCE, "the record is not opened again");
        assert_eq!(program.status(&alice, &format!("later-{requests}")).await, 200);
        requests += 1;
    }
    assert_eq!(program.status(&alice, "last").await, 200);
    program.end();
    let (before, after) = (recorded(&aside), recorded(&keys.record()));
    assert_eq!(before[..2], [("first".to_owned(), 200), ("second".to_owned(), 401)]);
    assert_eq!(after.last(), Some(&("last".to_owned(), 200)));
    // None is lost, and none is in both.
    let later: Vec<(String, u64)> = [&before[2..], &after[..after.len() - 1]].concat();
    let expected: Vec<(String, u64)> = (0..requests).map(|number| (format!("later-{number}"), 200)).collect();
    assert_eq!(later, expected);
}
