//! The keys of each section with their types and ranges.

use std::time::Duration;

use super::reader::{Item, Reader, Table};
use super::{
    ByteSize, Device, Dtype, Engine, Limits, Load, Log, LogFormat, Model, Server, Settings, Simd, Source, TokenCounts,
};

/// More would be a mistake, and would keep the sum of now and a timeout from being a time.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// Less would not keep long texts, of which one may take a 64th of it: 32,000 tokens.
const LEAST_DISK_CACHE: u64 = 64 << 20;

/// More would be a mistake.
const MOST_THREADS: u64 = 1_024;

/// Reads all sections.
pub(super) fn read(reader: &mut Reader<'_>) -> Settings {
    let mut settings = Settings::default();
    let mut root = reader.root();
    let table = reader.table(&mut root, "server");
    server(reader, table, &mut settings.server);
    let table = reader.table(&mut root, "engine");
    engine(reader, table, &mut settings.engine);
    let table = reader.table(&mut root, "limits");
    limits(reader, table, &mut settings.limits);
    let tables = reader.tables(&mut root, "models");
    settings.models = tables.into_iter().map(|table| model(reader, table)).collect();
    let tables = reader.tables(&mut root, "token_counts");
    settings.token_counts = tables.into_iter().map(|table| token_counts(reader, table)).collect();
    let table = reader.table(&mut root, "log");
    log(reader, table, &mut settings.log);
    reader.close(root);
    settings
}

fn server(reader: &mut Reader<'_>, mut table: Table, server: &mut Server) {
    reader.read(&mut table, "host", &mut server.host, |item| item.text());
    reader.read(&mut table, "port", &mut server.port, |item| {
        let port = item.whole(0..=u64::from(u16::MAX))?;
        u16::try_from(port).map_err(|_| item.expected("a port"))
    });
    reader.read(&mut table, "body_limit", &mut server.body_limit, |item| item.size(1));
    reader.read(&mut table, "request_timeout", &mut server.request_timeout, |item| item.duration(LONGEST_TIMEOUT));
    reader.close(table);
}

fn engine(reader: &mut Reader<'_>, mut table: Table, engine: &mut Engine) {
    reader.read(&mut table, "device", &mut engine.device, device);
    reader.read(&mut table, "dtype", &mut engine.dtype, dtype);
    reader.read(&mut table, "simd", &mut engine.simd, simd);
    reader.read(&mut table, "threads", &mut engine.threads, |item| count(item, 0..=MOST_THREADS));
    reader.read(&mut table, "max_batch_tokens", &mut engine.max_batch_tokens, budget);
    reader.read(&mut table, "calibrate", &mut engine.calibrate, |item| item.flag());
    reader.read(&mut table, "max_queue_tokens", &mut engine.max_queue_tokens, budget);
    reader.read(&mut table, "cache", &mut engine.cache, |item| item.size(0));
    reader.read(&mut table, "disk_cache", &mut engine.disk_cache, |item| item.path().map(Some));
    reader.read(&mut table, "disk_cache_limit", &mut engine.disk_cache_limit, |item| item.size(LEAST_DISK_CACHE));
    reader.read(&mut table, "memory", &mut engine.memory, memory);
    reader.read(&mut table, "default_model", &mut engine.default_model, |item| item.text().map(Some));
    reader.close(table);
}

fn limits(reader: &mut Reader<'_>, mut table: Table, limits: &mut Limits) {
    reader.read(&mut table, "inputs", &mut limits.inputs, |item| count(item, 1..=u64::MAX));
    reader.read(&mut table, "text", &mut limits.text, |item| item.size(1));
    reader.close(table);
}

fn model(reader: &mut Reader<'_>, mut table: Table) -> Model {
    let mut model = Model {
        id: String::new(),
        source: Source::default(),
        revision: None,
        devices: vec![Device::Auto],
        dtype: Dtype::Auto,
        reference: None,
        load: Load::Eager,
        pinned: false,
    };
    let has_id = reader.read(&mut table, "id", &mut model.id, |item| item.text());
    let has_source = reader
        .read(&mut table, "source", &mut model.source, |item| Ok(Source { path: item.path()?, text: item.text()? }));
    reader.read(&mut table, "revision", &mut model.revision, |item| {
        let revision = item.text().ok().filter(|revision| !revision.trim().is_empty());
        revision.map(Some).ok_or_else(|| item.expected("a branch, tag or commit"))
    });
    reader.read(&mut table, "device", &mut model.devices, |item| item.one_or_more(device));
    reader.read(&mut table, "dtype", &mut model.dtype, dtype);
    reader.read(&mut table, "reference", &mut model.reference, |item| item.text().map(Some));
    let loads = [("eager", Load::Eager), ("lazy", Load::Lazy)];
    reader.read(&mut table, "load", &mut model.load, |item| item.choice(&loads));
    reader.read(&mut table, "pinned", &mut model.pinned, |item| item.flag());
    if !has_id {
        reader.missing(&table, "id");
    }
    if !has_source {
        reader.missing(&table, "source");
    }
    reader.close(table);
    model
}

fn token_counts(reader: &mut Reader<'_>, mut table: Table) -> TokenCounts {
    let mut counts = TokenCounts::default();
    let has_id = reader.read(&mut table, "id", &mut counts.id, |item| item.text());
    let has_file = reader.read(&mut table, "file", &mut counts.file, |item| item.path());
    if !has_id {
        reader.missing(&table, "id");
    }
    if !has_file {
        reader.missing(&table, "file");
    }
    reader.close(table);
    counts
}

fn log(reader: &mut Reader<'_>, mut table: Table, log: &mut Log) {
    let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
    reader.read(&mut table, "format", &mut log.format, |item| item.choice(&formats));
    reader.read(&mut table, "level", &mut log.level, |item| {
        let level = item.text()?;
        match tracing_subscriber::EnvFilter::builder().parse(&level) {
            Ok(_) if !level.trim().is_empty() => Ok(level),
            _ => Err(item.expected("a filter as in \"info\" or \"warn,pdr_audit=debug\"")),
        }
    });
    reader.close(table);
}

/// `auto`, `cpu`, `cuda` or `cuda:N`.
fn device(item: &Item<'_>) -> Result<Device, String> {
    let expected = || item.expected("\"auto\", \"cpu\", \"cuda\" or \"cuda:N\"");
    match item.text().map_err(|_| expected())?.as_str() {
        "auto" => Ok(Device::Auto),
        "cpu" => Ok(Device::Cpu),
        "cuda" => Ok(Device::Cuda(0)),
        other => {
            let index = other.strip_prefix("cuda:").filter(|index| index.bytes().all(|byte| byte.is_ascii_digit()));
            index.and_then(|index| index.parse().ok()).map(Device::Cuda).ok_or_else(expected)
        }
    }
}

fn dtype(item: &Item<'_>) -> Result<Dtype, String> {
    item.choice(&[("auto", Dtype::Auto), ("f32", Dtype::F32), ("f16", Dtype::F16), ("bf16", Dtype::Bf16)])
}

fn simd(item: &Item<'_>) -> Result<Simd, String> {
    item.choice(&[("auto", Simd::Auto), ("avx512", Simd::Avx512), ("avx2", Simd::Avx2), ("scalar", Simd::Scalar)])
}

/// `auto` or a size.
fn memory(item: &Item<'_>) -> Result<Option<ByteSize>, String> {
    if item.text().is_ok_and(|text| text == "auto") {
        return Ok(None);
    }
    item.size(1).map(Some)
}

/// `auto` or a number of tokens.
fn budget(item: &Item<'_>) -> Result<Option<usize>, String> {
    if item.text().is_ok_and(|text| text == "auto") {
        return Ok(None);
    }
    count(item, 1..=u64::MAX).map(Some).map_err(|_| item.expected("\"auto\" or a whole number, at least 1"))
}

fn count(item: &Item<'_>, range: std::ops::RangeInclusive<u64>) -> Result<usize, String> {
    let number = item.whole(range)?;
    usize::try_from(number).map_err(|_| item.expected("a smaller number"))
}
