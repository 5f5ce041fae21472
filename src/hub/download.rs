//! One file from the Hub into the cache: continued where it stopped, verified, and only then named.

use super::HubError;
use super::cache::CachedRepo;
use super::client::{About, Client, Patience};
use super::listing::RemoteFile;
use super::progress::Meter;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use ureq::Body;
use ureq::http::Response;

/// How much is read between two looks at the clock and at the wish to stop, in bytes.
const CHUNK: usize = 256 << 10;

/// The status of an answer that begins where it was asked to.
const PARTIAL_CONTENT: u16 = 206;

/// Downloads the files of one repository at one commit.
pub struct Downloader<'a> {
    pub client: &'a Client,
    pub patience: &'a Patience,
    pub cached: &'a CachedRepo,
    pub about: About<'a>,
    pub commit: &'a str,
}

/// A file on its way.
struct Part<'a> {
    path: PathBuf,
    url: String,
    wanted: &'a RemoteFile,
}

impl Downloader<'_> {
    /// Makes sure that the cache has the file.
    pub fn ensure(&self, file: &RemoteFile, meter: &mut Meter<'_>) -> Result<(), HubError> {
        if !self.cached.has(file) {
            let _lock = self.cached.lock(file, meter.progress)?;
            // Whoever held the lock may have brought the file.
            if !self.cached.has(file) {
                self.download(file, meter)?;
            }
        }
        meter.next(file.size);
        Ok(())
    }

    fn download(&self, file: &RemoteFile, meter: &mut Meter<'_>) -> Result<(), HubError> {
        let blob = self.cached.blob(file);
        let url = self.client.file_url(self.about.repo, self.commit, &file.name);
        let part = Part { path: blob.with_extension("part"), url, wanted: file };
        self.patience.retry(meter.progress, || self.append(&part, meter))?;
        part.verify(meter)?;
        std::fs::rename(&part.path, &blob).map_err(|e| HubError::disk(&blob, e))
    }

    /// Appends what is missing of the file, in one request.
    fn append(&self, part: &Part<'_>, meter: &mut Meter<'_>) -> Result<(), HubError> {
        let mut file = part.open()?;
        let start = part.length(&file)?;
        meter.at(start)?;
        if start == part.wanted.size {
            return Ok(());
        }
        let response = self.client.get(&part.url, (start > 0).then_some(start), self.about)?;
        let begins = part.start_of(&response, start)?;
        if begins != start {
            part.on_disk(file.set_len(begins))?;
        }
        part.write(response.into_body().into_reader(), &mut file, begins, meter)?;
        part.on_disk(file.sync_all())
    }
}

impl Part<'_> {
    fn open(&self) -> Result<File, HubError> {
        self.on_disk(File::options().create(true).append(true).open(&self.path))
    }

    /// How much has arrived. More than all of it is nothing of it.
    fn length(&self, file: &File) -> Result<u64, HubError> {
        let length = self.on_disk(file.metadata())?.len();
        if length <= self.wanted.size {
            return Ok(length);
        }
        self.on_disk(file.set_len(0))?;
        Ok(0)
    }

    /// Where the body of an answer begins: at 0 where the server ignored the range.
    fn start_of(&self, response: &Response<Body>, asked: u64) -> Result<u64, HubError> {
        if response.status() != PARTIAL_CONTENT {
            return Ok(0);
        }
        let range = response.headers().get("content-range").and_then(|value| value.to_str().ok()).unwrap_or("");
        let start = range.strip_prefix("bytes ").and_then(|range| range.split('-').next()?.parse().ok());
        if start == Some(asked) {
            return Ok(asked);
        }
        Err(HubError::protocol(&self.url, format!("answered the range {range:?} where byte {asked} was asked for")))
    }

    /// Writes the body behind the `length` bytes that are there, and never more than the file's size.
    fn write(
        &self,
        mut body: impl Read,
        file: &mut File,
        mut length: u64,
        meter: &mut Meter<'_>,
    ) -> Result<(), HubError> {
        let mut buffer = vec![0; CHUNK];
        loop {
            meter.at(length)?;
            let read = match body.read(&mut buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(|e| HubError::network(&self.url, e))?,
            };
            let (end, size) = (length + read as u64, self.wanted.size);
            match read {
                0 if length == size => return Ok(()),
                0 => return Err(HubError::network(&self.url, format!("ended after {length} of {size} bytes"))),
                _ if end > size => return Err(HubError::protocol(&self.url, format!("sent more than {size} bytes"))),
                _ => self.on_disk(file.write_all(&buffer[..read]))?,
            }
            length = end;
        }
    }

    /// Compares the digests, and deletes what is not the file.
    fn verify(&self, meter: &Meter<'_>) -> Result<(), HubError> {
        let file = self.on_disk(File::open(&self.path))?;
        let content = Cancellable { file, meter };
        let found = match self.wanted.digest.of(self.wanted.size, content) {
            Err(e) => return meter.progress.check().and_then(|()| self.on_disk(Err(e))),
            Ok(found) => found,
        };
        if found == self.wanted.digest {
            return Ok(());
        }
        self.on_disk(std::fs::remove_file(&self.path))?;
        let (file, expected) = (self.wanted.name.clone(), self.wanted.digest.to_string());
        Err(HubError::Digest { file, expected, found: found.to_string() })
    }

    fn on_disk<T>(&self, result: io::Result<T>) -> Result<T, HubError> {
        result.map_err(|e| HubError::disk(&self.path, e))
    }
}

/// Reading a large file takes seconds; it ends early where the download is cancelled.
struct Cancellable<'a> {
    file: File,
    meter: &'a Meter<'a>,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.meter.progress.check().map_err(io::Error::other)?;
        self.file.read(buffer)
    }
}
