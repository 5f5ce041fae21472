//! The body of an upload: streamed to a thread that reads it as a file of samples, and from there block by block into the store.

use super::body_pace::BodyPace;
use super::problem::{Kind, Problem};
use super::state::{ApiState, ClientSlot};
use crate::access::StoredUsage;
use crate::datasets::{DatasetWriter, EncodedDataset};
use crate::priority;
use crate::samples::{
    DatasetFault, DatasetOptions, FileKind, InputFile, NAMED_BY_COMMAND, ReadError, ReadOptions, encode_dataset,
};
use crate::store::StoreError;
use axum::body::{Body, Bytes};
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use multer::Multipart;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of chunks of the body that wait for the reader.
const WAITING_CHUNKS: usize = 8;
/// Maximum number of blocks of samples that wait for the store. A block is as long as the longest line at most.
const WAITING_BLOCKS: usize = 1;

#[derive(Clone, Debug)]
pub struct UploadOptions {
    pub read: ReadOptions,
    pub dataset: DatasetOptions,
    /// True if the texts are kept after a job has used them.
    pub retain: bool,
}

/// Reads a body as a dataset and writes it into the store. Nothing is kept of one that has a fault, or that breaks off. The slot and the
/// memory are given back when the thread that reads has ended, which may be after the client has gone.
pub async fn store_body<E: Display>(
    state: &ApiState,
    slot: ClientSlot,
    body: impl Stream<Item = Result<Bytes, E>> + Unpin,
    options: UploadOptions,
) -> Result<EncodedDataset, Problem> {
    let (limit, retain) = (options.dataset.limit, options.retain);
    let (place, owner) = (state.jobs.store().clone(), state.client.name().to_owned());
    let quota = Arc::clone(&state.client.quota);
    // Before anything is read or parsed, which the uploads of a client that goes away meanwhile do not cause.
    let begun = async {
        // A line may be as long as a body.
        state.memory.grow_to(state.body_limit)?;
        let _storing = quota.begin_storing().await.map_err(StoreError::from)?;
        DatasetWriter::begin(&place, &owner, retain).await.map_err(Problem::from)
    };
    let mut writer = match begun.await {
        Ok(writer) => writer,
        Err(refusal) => {
            drop(slot);
            drain(body, state.request_timeout).await;
            return Err(refusal);
        }
    };
    let (chunks, received) = mpsc::channel(WAITING_CHUNKS);
    let (blocks, mut encoded_blocks) = mpsc::channel::<String>(WAITING_BLOCKS);
    let over = Arc::new(AtomicBool::new(false));
    let (noted, memory) = (Arc::clone(&over), Arc::clone(&state.memory));
    let (done, parsed) = oneshot::channel();
    let parse = move || {
        let _slot = slot;
        let input = open(ChunkReader::new(received), &options.read, limit, noted)?.charged_to(&memory);
        encode_dataset(input, &options.read, options.dataset, |block| blocks.blocking_send(block).is_ok())
    };
    let thread = std::thread::Builder::new().name("upload".to_owned()).spawn(move || {
        priority::lower();
        // Nobody waits for the samples of a client that has gone.
        let _ = done.send(parse());
    });
    thread.map_err(Problem::internal)?;
    // It owns the blocks: where the store fails, nobody waits to hand it more.
    let store = async move {
        while let Some(block) = encoded_blocks.recv().await {
            let _storing = quota.go_on_storing().await.map_err(StoreError::from)?;
            writer.write(&block).await?;
            if quota.limits_stored() {
                quota.check_stored(StoredUsage { datasets: 0, jobs: 0, ..place.usage(&owner).await? })?;
            }
        }
        Ok::<_, Problem>(writer)
    };
    let (sent, stored) = tokio::join!(forward(body, chunks, state.request_timeout), store);
    let encoded = parsed.await.map_err(Problem::internal)?;
    // Where the body breaks off, what was read of it has faults that are none; where the store fails, nothing is wrong with it.
    sent?;
    let mut writer = stored?;
    let encoded = encoded.map_err(|fault| problem(fault, over.load(Ordering::Relaxed).then_some(limit)))?;
    state.check_key()?;
    let (store, quota) = (state.jobs.store(), &state.client.quota);
    let _storing = quota.go_on_storing().await.map_err(StoreError::from)?;
    if let Some(rest) = &encoded.rest {
        writer.write(rest).await.map_err(Problem::from)?;
    }
    // The same again takes no room.
    if quota.limits_stored() && store.dataset_key(state.client.name(), &encoded.id).await?.is_none() {
        let StoredUsage { bytes, datasets, .. } = store.usage(state.client.name()).await?;
        quota.check_stored(StoredUsage { bytes, datasets: datasets + 1, jobs: 0 })?;
    }
    writer.complete(Some(&encoded.id), &encoded.totals).await?;
    Ok(encoded)
}

/// Hands the body on, chunk by chunk, as fast as it is read. A reader that has found a fault reads no more.
async fn forward<E: Display>(
    mut stream: impl Stream<Item = Result<Bytes, E>> + Unpin,
    chunks: mpsc::Sender<io::Result<Bytes>>,
    patience: Duration,
) -> Result<(), Problem> {
    let mut pace = BodyPace::new(patience);
    loop {
        let broken = match pace.next(&mut stream).await {
            Ok(None) => {
                // Fails only if the reader has found a fault, and reads no more.
                let _ = chunks.send(Ok(END)).await;
                return Ok(());
            }
            Ok(Some(Ok(chunk))) if chunk.is_empty() => continue,
            Ok(Some(Ok(chunk))) => {
                if chunks.send(Ok(chunk)).await.is_err() {
                    drain(stream, patience).await;
                    return Ok(());
                }
                continue;
            }
            Ok(Some(Err(error))) => Problem::new(Kind::MalformedBody, format!("the body broke off: {error}")),
            Err(too_slow) => too_slow,
        };
        let _ = chunks.send(Err(io::Error::other("the body broke off"))).await;
        return Err(broken);
    }
}

/// Reads on for a while without keeping anything: a client that is still sending when the connection closes would never see the answer.
pub async fn drain<E>(mut stream: impl Stream<Item = Result<Bytes, E>> + Unpin, patience: Duration) {
    const MOST: usize = 64 << 20;
    let reading = async {
        let mut bytes = 0;
        while let Some(Ok(chunk)) = stream.next().await {
            bytes += chunk.len();
            if bytes > MOST {
                break;
            }
        }
    };
    // A passed time is no error: there is an answer.
    let _ = tokio::time::timeout(patience, reading).await;
}

/// Opens the body as a file of at most `limit` decompressed bytes. Parquet and archives need random access, so
/// they go to a temporary file, as does what may be one.
fn open(
    body: ChunkReader,
    options: &ReadOptions,
    limit: u64,
    over: Arc<AtomicBool>,
) -> Result<InputFile, DatasetFault> {
    let unreadable = |error: io::Error| DatasetFault::Unreadable(error.into());
    let mut input = InputFile::from_reader(body, "").map_err(unreadable)?.limited(limit, Arc::clone(&over));
    let needs_random_access = options.kind.is_none_or(|kind| kind == FileKind::Parquet || kind.document().is_some());
    if !needs_random_access {
        return Ok(input);
    }
    let mut file = tempfile::NamedTempFile::new().map_err(unreadable)?;
    io::copy(&mut input, &mut file).and_then(|_| file.flush()).map_err(unreadable)?;
    // The body may have been compressed twice.
    let input = InputFile::temporary(file).map_err(unreadable)?.limited(limit, over);
    Ok(input.named(options.document_name.as_deref().unwrap_or_default()))
}

fn problem(fault: DatasetFault, over: Option<u64>) -> Problem {
    match (over, fault) {
        (Some(limit), _) | (None, DatasetFault::TooLarge(limit)) => too_large(limit),
        (None, DatasetFault::Internal(error)) => error.into(),
        (None, DatasetFault::Unreadable(ReadError::Busy(refusal))) => Problem::no_slot(refusal, "Parquet file"),
        (None, DatasetFault::Unreadable(ReadError::Memory(refusal))) => refusal.into(),
        (None, fault) => Problem::fault("", with_parameters(fault.to_string())),
    }
}

/// A fault with the parameters of the query where the command line has flags.
fn with_parameters(fault: String) -> String {
    let names = ["text", "label", "id"];
    let fault = fault.replace(NAMED_BY_COMMAND, "as `chat_template` in the query");
    names.iter().fold(fault, |fault, name| fault.replace(&format!("--{name}-column"), &format!("`{name}_column`")))
}

fn too_large(limit: u64) -> Problem {
    let detail = format!("the dataset is longer than the limit `limits.dataset` of {limit} bytes, decompressed");
    Problem::new(Kind::TooLarge, detail)
}

/// The only file of a form.
pub struct FormFile {
    /// Name of the file.
    pub name: Option<String>,
    /// Media type of the file, which is not that of the form.
    pub media_type: Option<String>,
    /// Its bytes; an error where the form is damaged, or goes on after the file.
    pub content: BoxStream<'static, Result<Bytes, String>>,
}

impl FormFile {
    /// Opens the file of a form.
    ///
    /// # Errors
    /// [`Problem`], where it is no form with a file, or its head does not come within `patience`.
    pub async fn open(body: Body, boundary: String, patience: Duration) -> Result<Self, Problem> {
        let mut form = Multipart::new(body.into_data_stream(), boundary);
        let too_slow = "the head of the form did not arrive within `server.request_timeout`";
        let part = tokio::time::timeout(patience, form.next_field()).await;
        let part = part.map_err(|_| Problem::new(Kind::BodyTimeout, too_slow))?.map_err(|error| malformed(&error))?;
        let part = part.ok_or_else(|| Problem::new(Kind::MalformedBody, "the form has no part; it takes one file"))?;
        let (name, media_type) = (part.file_name().map(str::to_owned), part.content_type().map(ToString::to_string));
        let content = stream::unfold((form, Some(part)), |(mut form, part)| async move {
            let mut part = part?;
            match part.chunk().await {
                Ok(Some(chunk)) => Some((Ok(chunk), (form, Some(part)))),
                Err(error) => Some((Err(error.to_string()), (form, None))),
                Ok(None) => {
                    // The form gives no other part while this one is there.
                    drop(part);
                    match form.next_field().await {
                        Ok(None) => None,
                        Ok(Some(_)) => {
                            Some((Err("the form has another part; it takes one file".to_owned()), (form, None)))
                        }
                        Err(error) => Some((Err(error.to_string()), (form, None))),
                    }
                }
            }
        });
        Ok(Self { name, media_type, content: content.boxed() })
    }
}

fn malformed(error: &multer::Error) -> Problem {
    Problem::new(Kind::MalformedBody, format!("the form cannot be read: {error}"))
}

/// The end of a body, which is no chunk of it. Without one, the client has gone.
const END: Bytes = Bytes::new();

/// Chunks that come from elsewhere, as a reader.
struct ChunkReader {
    received: mpsc::Receiver<io::Result<Bytes>>,
    chunk: Bytes,
    is_over: bool,
}

impl ChunkReader {
    fn new(received: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        Self { received, chunk: Bytes::new(), is_over: false }
    }
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() && !self.is_over {
            let gone = || Err(io::Error::other("the client has gone"));
            self.chunk = self.received.blocking_recv().unwrap_or_else(gone)?;
            self.is_over = self.chunk.is_empty();
        }
        let taken = self.chunk.split_to(self.chunk.len().min(buffer.len()));
        buffer[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }
}
