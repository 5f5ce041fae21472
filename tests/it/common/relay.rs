//! A server on this machine that hands requests on to another, or misbehaves as told.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Treatment of a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// It is handed on.
    Pass,
    /// The connection is closed without an answer, as by a process that dies.
    Close,
    /// The answer is cut off after this many bytes.
    Cut(usize),
    /// The answer comes after so long.
    Delay(Duration),
    /// This many bytes of the answer come at once, and the rest after so long.
    Stall(usize, Duration),
    /// This is written in place of an answer.
    Write(String),
    /// This is the answer: a status with headers, each ended by a line break, and a body.
    Say(&'static str, String),
}

/// Behaviour of the relay; it may be changed between requests.
pub struct RelayState {
    /// The server behind it.
    pub target: SocketAddr,
    /// Treatment of the next requests for statistics, in their order.
    pub next: VecDeque<Act>,
    /// True if all requests wait once the next ones have been treated, until this is false.
    pub holds_after: bool,
    /// Treatment of all requests after those.
    pub always: Act,
    /// The heads of all requests.
    pub heads: Vec<String>,
    /// Number of requests with sequences.
    pub forwards: usize,
    /// A part of all sequences by which the model is checked; requests that have it are none for statistics.
    pub probe: Option<String>,
}

/// The relay; its thread ends with the process.
pub struct Relay {
    pub port: u16,
    state: Arc<Mutex<RelayState>>,
}

impl Relay {
    pub fn to(target: SocketAddr) -> Self {
        let (next, heads) = (VecDeque::new(), Vec::new());
        let state = Arc::new(Mutex::new(RelayState {
            target,
            next,
            holds_after: false,
            always: Act::Pass,
            heads,
            forwards: 0,
            probe: None,
        }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let relay = Self { port: listener.local_addr().unwrap().port(), state };
        let state = Arc::clone(&relay.state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&state);
                // A client that goes away is part of the tests.
                std::thread::spawn(move || relayed(&stream, &state));
            }
        });
        relay
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn state(&self) -> MutexGuard<'_, RelayState> {
        self.state.lock().unwrap()
    }
}

/// Answers the one request of a connection.
fn relayed(stream: &TcpStream, state: &Mutex<RelayState>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let start = head.len();
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
        let line = head[start..].trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) =
            line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            assert!(!name.is_empty());
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let text = String::from_utf8_lossy(&body);
    // A question about the model alone has neither ids nor a text in it.
    let has_prompt =
        body.windows(2).any(|pair| pair[0] == b'[' && pair[1].is_ascii_digit()) || text.contains("\"prompt\":\"");
    let (act, target) = {
        let mut state = state.lock().unwrap();
        let is_forward = has_prompt && !state.probe.as_ref().is_some_and(|probe| text.contains(probe));
        state.heads.push(head.clone());
        state.forwards += usize::from(is_forward);
        let next = if is_forward { state.next.pop_front() } else { None };
        (next, state.target)
    };
    let act = act.unwrap_or_else(|| always(state));
    let mut answer = match &act {
        Act::Close => return Ok(()),
        Act::Say(head, body) => {
            format!("HTTP/1.1 {head}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
        }
        Act::Write(answer) => answer.clone().into_bytes(),
        Act::Pass | Act::Cut(_) | Act::Delay(_) | Act::Stall(..) => handed_on(&head, &body, target)?,
    };
    let mut stream = stream;
    match act {
        Act::Cut(bytes) => answer.truncate(bytes),
        Act::Delay(delay) => std::thread::sleep(delay),
        Act::Stall(bytes, delay) => {
            let rest = answer.split_off(bytes.min(answer.len()));
            stream.write_all(&std::mem::replace(&mut answer, rest))?;
            std::thread::sleep(delay);
        }
        Act::Pass | Act::Close | Act::Say(..) | Act::Write(_) => {}
    }
    stream.write_all(&answer)
}

/// The treatment of a request that has none of its own, once it does not wait any more.
fn always(state: &Mutex<RelayState>) -> Act {
    loop {
        let state = state.lock().unwrap();
        if !(state.holds_after && state.next.is_empty()) {
            return state.always.clone();
        }
        drop(state);
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The answer of the server behind it.
fn handed_on(head: &str, body: &[u8], target: SocketAddr) -> std::io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(target)?;
    let head = head.trim_end();
    server.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes())?;
    server.write_all(body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    Ok(answer)
}
