//! Downloads one file into the cache: resumes a partial download, verifies the file, and only then gives it its name.

use super::HubError;
use super::cache::CachedRepo;
use super::client::{HubClient, RepoRevision, RetryPolicy};
use super::listing::RemoteFile;
use super::progress::DownloadMeter;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use ureq::Body;
use ureq::http::Response;

/// The number of bytes read between two checks for cancellation and updates of the progress.
const CHUNK: usize = 256 << 10;

/// The status of a response that starts at the requested byte.
const PARTIAL_CONTENT: u16 = 206;

/// Downloads the files of one repository at one commit.
pub struct Downloader<'a> {
    pub client: &'a HubClient,
    pub retry_policy: &'a RetryPolicy,
    pub cached: &'a CachedRepo,
    pub target: RepoRevision<'a>,
    pub commit: &'a str,
}

/// A partially downloaded file.
struct PartialFile<'a> {
    path: PathBuf,
    url: String,
    listed: &'a RemoteFile,
}

impl Downloader<'_> {
    /// Downloads the file unless it is in the cache.
    pub fn ensure(&self, file: &RemoteFile, meter: &mut DownloadMeter<'_>) -> Result<(), HubError> {
        if !self.cached.has(file) {
            let _lock = self.cached.lock(file, meter.progress)?;
            // The process that held the lock may have downloaded the file.
            if !self.cached.has(file) {
                self.download(file, meter)?;
            }
        }
        meter.finish_file(file.size);
        Ok(())
    }

    fn download(&self, file: &RemoteFile, meter: &mut DownloadMeter<'_>) -> Result<(), HubError> {
        let blob = self.cached.blob(file);
        let url = self.client.file_url(self.target, self.commit, &file.name);
        let part = PartialFile { path: blob.with_extension("part"), url, listed: file };
        self.retry_policy.retry(meter.progress, || self.append(&part, meter))?;
        part.verify(meter)?;
        std::fs::rename(&part.path, &blob).map_err(|e| HubError::disk(&blob, e))
    }

    /// Requests the missing bytes of the file once and appends them.
    fn append(&self, part: &PartialFile<'_>, meter: &mut DownloadMeter<'_>) -> Result<(), HubError> {
        let mut file = part.open()?;
        let start = part.length(&file)?;
        meter.set_received(start)?;
        if start == part.listed.size {
            return Ok(());
        }
        let response = self.client.get(&part.url, (start > 0).then_some(start), self.target)?;
        let body_start = part.body_start(&response, start)?;
        if body_start != start {
            part.on_disk(file.set_len(body_start))?;
        }
        part.write(response.into_body().into_reader(), &mut file, body_start, meter)?;
        part.on_disk(file.sync_all())
    }
}

impl PartialFile<'_> {
    fn open(&self) -> Result<File, HubError> {
        self.on_disk(File::options().create(true).append(true).open(&self.path))
    }

    /// The number of bytes received. A partial file that is longer than the file is discarded.
    fn length(&self, file: &File) -> Result<u64, HubError> {
        let length = self.on_disk(file.metadata())?.len();
        if length <= self.listed.size {
            return Ok(length);
        }
        self.on_disk(file.set_len(0))?;
        Ok(0)
    }

    /// The position of the first byte of the body: 0 where the server ignored the range.
    fn body_start(&self, response: &Response<Body>, requested: u64) -> Result<u64, HubError> {
        if response.status() != PARTIAL_CONTENT {
            return Ok(0);
        }
        let range = response.headers().get("content-range").and_then(|value| value.to_str().ok()).unwrap_or("");
        let start = range.strip_prefix("bytes ").and_then(|range| range.split('-').next()?.parse().ok());
        if start == Some(requested) {
            return Ok(requested);
        }
        Err(HubError::protocol(
            &self.url,
            format!("the response has the range {range:?}, but byte {requested} was requested"),
        ))
    }

    /// Appends the body to the `length` bytes received before, up to the size of the file.
    fn write(
        &self,
        mut body: impl Read,
        file: &mut File,
        mut length: u64,
        meter: &mut DownloadMeter<'_>,
    ) -> Result<(), HubError> {
        let mut buffer = vec![0; CHUNK];
        loop {
            meter.set_received(length)?;
            let read = match body.read(&mut buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(|e| HubError::network(&self.url, e))?,
            };
            let (end, size) = (length + read as u64, self.listed.size);
            match read {
                0 if length == size => return Ok(()),
                0 => {
                    return Err(HubError::network(
                        &self.url,
                        format!("the response ended after {length} of {size} bytes"),
                    ));
                }
                _ if end > size => {
                    return Err(HubError::protocol(&self.url, format!("the server sent more than {size} bytes")));
                }
                _ => self.on_disk(file.write_all(&buffer[..read]))?,
            }
            length = end;
        }
    }

    /// Compares the digests, and deletes the file if they differ.
    fn verify(&self, meter: &DownloadMeter<'_>) -> Result<(), HubError> {
        let file = self.on_disk(File::open(&self.path))?;
        let content = CancellableReader { file, meter };
        let actual = match self.listed.digest.compute(self.listed.size, content) {
            Err(e) => return meter.progress.check().and_then(|()| self.on_disk(Err(e))),
            Ok(actual) => actual,
        };
        if actual == self.listed.digest {
            return Ok(());
        }
        self.on_disk(std::fs::remove_file(&self.path))?;
        let (file, expected) = (self.listed.name.clone(), self.listed.digest.to_string());
        Err(HubError::Digest { file, expected, actual: actual.to_string() })
    }

    fn on_disk<T>(&self, result: io::Result<T>) -> Result<T, HubError> {
        result.map_err(|e| HubError::disk(&self.path, e))
    }
}

/// A reader that fails when the download is cancelled: reading a large file takes seconds.
struct CancellableReader<'a> {
    file: File,
    meter: &'a DownloadMeter<'a>,
}

impl Read for CancellableReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.meter.progress.check().map_err(io::Error::other)?;
        self.file.read(buffer)
    }
}
