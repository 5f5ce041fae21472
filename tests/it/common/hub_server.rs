//! A server on this machine that answers as the Hub does, or misbehaves as told.

use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The one repository the server has, as a model and as a dataset, and the one commit of it.
pub const REPO: &str = "some-org/tiny";
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// The commit of the branch on which the dataset is converted.
pub const CONVERTED: &str = "89abcdef0123456789abcdef0123456789abcdef";

/// Behaviour of the server; it may be changed between requests.
#[derive(Default)]
pub struct State {
    pub files: BTreeMap<String, Vec<u8>>,
    /// The files of the dataset as the Hub converts it; `None` if it does not.
    pub converted: Option<BTreeMap<String, Vec<u8>>>,
    /// Served in place of what `files` has, and lists.
    pub spoiled: BTreeMap<String, Vec<u8>>,
    /// Listed beside `files`.
    pub more_siblings: Vec<Value>,
    /// Large files are redirected to this address, with the path kept.
    pub large_files_at: Option<String>,
    /// Everything is redirected once, to a relative address.
    pub redirect_relative: bool,
    /// Number of bytes after which a file is cut off.
    pub cut_after: Option<usize>,
    /// Instead of cutting off, nothing more is sent.
    pub stall: bool,
    /// Delay of answers with a file.
    pub delay: Duration,
    /// `Range` is not understood.
    pub ignore_range: bool,
    /// Number of requests answered with 503 first.
    pub unavailable: usize,
    /// The status and `X-Error-Code` of every answer.
    pub refuse: Option<(u16, &'static str)>,
    /// Everything that was asked.
    pub requests: Vec<Request>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub path: String,
    pub range_start: Option<usize>,
    pub token: Option<String>,
}

/// The server; its thread ends with the process.
pub struct HubServer {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

impl HubServer {
    /// A server with these files.
    pub fn with(files: &[(&str, &[u8])]) -> Self {
        let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        let state = Arc::new(Mutex::new(State { files, ..State::default() }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), state };
        let state = server.state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = state.clone();
                // A client that goes away is part of the tests.
                std::thread::spawn(move || answer(&stream, &state));
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The requests so far for a file, or for the list of files where the name is empty.
    pub fn requests(&self, file: &str) -> Vec<Request> {
        let end = if file.is_empty() { "?blobs=true".to_owned() } else { format!("/{file}") };
        self.state().requests.iter().filter(|request| request.path.ends_with(&end)).cloned().collect()
    }
}

/// True if the Hub would keep a file outside git.
fn is_large(name: &str) -> bool {
    [".safetensors", ".bin", ".parquet"].iter().any(|end| name.ends_with(end))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sibling(name: &str, bytes: &[u8]) -> Value {
    let blob = Sha1::new().chain_update(format!("blob {}\0", bytes.len())).chain_update(bytes).finalize();
    let mut listed = json!({"rfilename": name, "size": bytes.len(), "blobId": hex(&blob)});
    if is_large(name) {
        listed["lfs"] = json!({"sha256": hex(&Sha256::digest(bytes)), "size": bytes.len(), "pointerSize": 134});
    }
    listed
}

fn listing(state: &State, commit: &str, files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let own = files.iter().map(|(name, bytes)| sibling(name, bytes));
    let siblings: Vec<Value> = state.more_siblings.iter().cloned().chain(own).collect();
    json!({"id": REPO, "sha": commit, "siblings": siblings}).to_string().into_bytes()
}

/// The answer to a request for the list of files of a revision.
fn listed(state: &State, path: &str) -> Option<Vec<u8>> {
    let [model, dataset] = ["models", "datasets"].map(|kind| format!("/api/{kind}/{REPO}/revision/"));
    let revision = path.strip_suffix("?blobs=true")?;
    let of_dataset = revision.strip_prefix(&dataset);
    match revision.strip_prefix(&model).or(of_dataset)? {
        "main" | COMMIT => Some(listing(state, COMMIT, &state.files)),
        "refs%2Fconvert%2Fparquet" | CONVERTED if of_dataset.is_some() => {
            Some(listing(state, CONVERTED, state.converted.as_ref()?))
        }
        _ => None,
    }
}

/// The content of the file that a request asks for.
fn requested<'a>(state: &'a State, path: &str) -> Option<(String, &'a Vec<u8>)> {
    let path = path.strip_prefix("/datasets").unwrap_or(path).strip_prefix(&format!("/{REPO}/resolve/"))?;
    let (commit, name) = path.split_once('/')?;
    let name = percent_encoding::percent_decode_str(name).decode_utf8().ok()?.into_owned();
    let files = if commit == CONVERTED { state.converted.as_ref()? } else { &state.files };
    let bytes = state.spoiled.get(&name).or_else(|| files.get(&name))?;
    Some((name, bytes))
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let mut request = Request { path, range_start: None, token: None };
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ")?;
        match name.to_ascii_lowercase().as_str() {
            "authorization" => request.token = Some(value.to_owned()),
            "range" => request.range_start = value.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok(),
            _ => {}
        }
    }
    Some(request)
}

/// Sends a head and, of the body, what is to be sent.
fn send(mut stream: &TcpStream, status: &str, headers: &str, length: usize, body: &[u8]) {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    // The client may have gone.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn answer(stream: &TcpStream, state: &Mutex<State>) {
    let Some(request) = read_request(stream) else { return };
    let mut state = state.lock().unwrap();
    state.requests.push(request.clone());
    if state.unavailable > 0 {
        state.unavailable -= 1;
        return send(stream, "503 Service Unavailable", "", 0, b"");
    }
    if let Some((status, code)) = state.refuse {
        return send(stream, &format!("{status} No"), &format!("X-Error-Code: {code}\r\n"), 0, b"");
    }
    if state.redirect_relative && !request.path.starts_with("/moved") {
        let location = format!("Location: /moved{}\r\n", request.path);
        return send(stream, "307 Temporary Redirect", &location, 0, b"");
    }
    let path = request.path.strip_prefix("/moved").unwrap_or(&request.path);
    if let Some(body) = listed(&state, path) {
        return send(stream, "200 OK", "", body.len(), &body);
    }
    let Some((name, bytes)) = requested(&state, path).map(|(name, bytes)| (name, bytes.clone())) else {
        return send(stream, "404 Not Found", "X-Error-Code: RepoNotFound\r\n", 0, b"");
    };
    if let Some(other) = state.large_files_at.as_ref().filter(|_| is_large(&name)) {
        return send(stream, "302 Found", &format!("Location: {other}{path}\r\n"), 0, b"");
    }
    let (cut_after, stall, ignore_range, delay) = (state.cut_after, state.stall, state.ignore_range, state.delay);
    drop(state);
    std::thread::sleep(delay);
    let start = request.range_start.filter(|_| !ignore_range);
    let body = &bytes[start.unwrap_or(0).min(bytes.len())..];
    let sent = &body[..cut_after.unwrap_or(usize::MAX).min(body.len())];
    match start {
        Some(start) => {
            let range = format!("Content-Range: bytes {start}-{}/{}\r\n", bytes.len() - 1, bytes.len());
            send(stream, "206 Partial Content", &range, body.len(), sent);
        }
        None => send(stream, "200 OK", "", body.len(), sent),
    }
    if stall && sent.len() < body.len() {
        std::thread::sleep(Duration::from_secs(60));
    }
}
