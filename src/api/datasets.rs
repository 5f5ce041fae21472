//! `/v1/datasets`: upload, list, show and delete datasets.

use super::check::RequestFaults;
use super::conversations::{self, SampleOrChat};
use super::extract::PathNames;
use super::problem::responses::{DatasetProblems, ListProblems, LookProblems, StateProblems};
use super::problem::{Kind, PointedFault, Problem};
use super::query;
use super::state::{ApiState, ClientState};
use super::upload::{FormFile, UploadOptions, drain, store_body};
use super::upload_media::{boundary, known_media, media};
use crate::datasets::{DatasetError, SampleTotals};
use crate::samples::{ChatRenderer, ColumnNames, DatasetOptions, ParquetProcess, ReadOptions};
use crate::store::{DatasetRow, Principal, RowPage, listed};
use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use documents::{Cut, CutAt, PassageTally, ReadLimits};
use mia::json::by_name;
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

/// Maximum number of skipped files in an answer.
const MAX_SKIPPED: usize = 1_000;
/// Name of a document that comes without one.
const UNNAMED: &str = "document";
/// Maximum size in bytes of a compressed document, or of a document in an archive, once decompressed: an EPUB is held in memory.
const MAX_DOCUMENT: u64 = 64 << 20;

/// A dataset.
#[derive(Serialize, ToSchema)]
pub struct Dataset {
    /// The address of its content: SHA-256 over its samples as lines of JSON.
    #[schema(examples("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"))]
    id: String,
    /// The name of the key that owns it; only clients with the scope `admin` are told. Absent where no key owns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    samples: usize,
    members: usize,
    non_members: usize,
    /// Number of different groups of its samples.
    groups: usize,
    /// Bytes of the texts, as UTF-8.
    bytes: u64,
    /// True if the texts are kept after an audit has used them.
    retain: bool,
    /// True if the texts are stored.
    texts: bool,
    /// The names of the other columns, which come back with the scores of an audit.
    columns: Vec<String>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    /// Counts of the documents read and of the text left out; in the answer to their upload.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<DocumentTally>,
}

/// Counts of what was read of documents and what was left out.
#[derive(Serialize, ToSchema)]
pub struct DocumentTally {
    #[serde(flatten)]
    tally: PassageTally,
    /// The first 1,000 files of an archive that were skipped, each with the reason.
    skipped: Vec<String>,
}

/// A file as it is.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it stands for bytes in the document")]
pub struct DatasetFile(Vec<u8>);

/// A form with a file, which has its own media type, and a name that tells its kind if that is not known.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it stands for a form in the document")]
pub struct DatasetForm {
    /// The file; the only part of the form.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Datasets, newest first.
#[derive(Serialize, ToSchema)]
pub struct DatasetList {
    datasets: Vec<Dataset>,
    /// The value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Dataset {
    fn new(row: DatasetRow, client: &Principal) -> Result<Self, DatasetError> {
        let DatasetRow { key, id, owner, description, retain, has_texts, created_at, .. } = row;
        let SampleTotals { samples, members, non_members, groups, text_bytes, columns, .. } =
            serde_json::from_str(&description)
                .map_err(|error| DatasetError::Internal(format!("the dataset {key} as it is stored: {error}")))?;
        let id = id.ok_or_else(|| DatasetError::Internal(format!("the dataset {key} has no id")))?;
        let (bytes, texts, owner) = (text_bytes, has_texts, client.visible_name(owner));
        Ok(Self {
            id,
            owner,
            samples,
            members,
            non_members,
            groups,
            bytes,
            retain,
            texts,
            columns,
            created_at,
            cut: None,
        })
    }
}

/// Upload a dataset.
///
/// One sample: `text` (or `input`), and perhaps `id`, `label`, `group` and `neighbors`, as an object or as a row with these columns.
/// Instead of `text` and `label` there may be `member` and `nonmember`. Other columns, at most 256 and 64 KiB for each sample, come
/// back with the scores of an audit. A sample may have `messages` in place of the text, where `chat_template` in the query names a model.
/// The body is read as it arrives; a bad line is refused with its number, and nothing is kept. The
/// same samples again are the same dataset.
///
/// A document (plain text, Markdown, HTML, EPUB, or a ZIP archive of such) is cut into passages, each a sample of its `document`
/// with `offset` and `length` in characters. Headers and licences of Project Gutenberg, tables of contents, headers of pages,
/// passages without letters and repeated ones are left out; `cut` counts them. With `cut` in the query the texts of other files
/// are cut as well.
#[utoipa::path(
    post,
    path = "/v1/datasets",
    operation_id = "upload_dataset",
    tag = "datasets",
    params(
        ("retain" = Option<bool>, Query, description = "If true, the texts are kept after an audit has used them; true if left out"),
        ("text_column" = Option<String>, Query, description = "Column or field of the texts; `text` or else `input` if left out"),
        ("label_column" = Option<String>, Query, description = "Column or field of the labels; `label` if left out"),
        ("id_column" = Option<String>, Query, description = "Column or field of the ids; `id` if left out"),
        ("keep_columns" = Option<bool>, Query, description = "If true, other columns are kept; true if left out"),
        ("words" = Option<usize>, Query, minimum = 1, description = "Maximum number of words of a text; the rest is cut off"),
        ("cut" = Option<usize>, Query, minimum = 1, maximum = 100_000, description = "Maximum number of words of a passage; 128 for documents if left out, and other texts stay whole"),
        ("overlap" = Option<usize>, Query, description = "Words that a passage repeats of the one before; 0 if left out"),
        ("at" = Option<CutAt>, Query, description = "Unit that passages are made of; `paragraph` if left out"),
        ("chat_template" = Option<String>, Query, description = "Id of the model whose chat template renders samples with `messages`"),
        ("name" = Option<String>, Query, description = "Name of the document, as the id of its passages; `document` if left out"),
        ("Content-Encoding" = Option<String>, Header, description = "`gzip` or `zstd`", example = "gzip")
    ),
    request_body(
        description = "Samples",
        content(
            (String = "application/x-ndjson", example = json!("{\"text\": \"a text\", \"label\": 1}\n{\"text\": \"another\", \"label\": 0}\n")),
            (String = "text/csv"),
            (Vec<SampleOrChat> = "application/json"),
            (DatasetFile = "application/vnd.apache.parquet"),
            (String = "text/plain"),
            (String = "text/markdown"),
            (String = "text/html"),
            (DatasetFile = "application/epub+zip"),
            (DatasetFile = "application/zip"),
            (DatasetFile = "application/octet-stream"),
            (DatasetForm = "multipart/form-data")
        )
    ),
    responses(
        (status = 201, description = "The dataset", body = Dataset, headers(("Location" = String, description = "Path of the dataset"))),
        DatasetProblems
    )
)]
pub async fn upload(
    ClientState(state): ClientState,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (mut options, chat_template) = upload_options(&state, &uri, &headers)?;
    if let Some(model) = chat_template {
        let problem = |detail| Problem::invalid(vec![PointedFault::of_parameter("chat_template", detail)], 1);
        let template = conversations::template(&state, Some(&model), problem).await?;
        options.read.columns.chat = Some(ChatRenderer::new(state.limits.text.as_u64(), move || Ok(template)));
    }
    let slot = match state.slot(&state.slots.uploads, "upload") {
        Ok(slot) => slot,
        Err(refusal) => {
            drain(body.into_data_stream(), state.request_timeout).await;
            return Err(refusal);
        }
    };
    let report = options.read.report.clone();
    let unnamed = || Some(UNNAMED.to_owned());
    let encoded = match boundary(&headers)? {
        Some(boundary) => {
            let FormFile { name, media_type, content } = FormFile::open(body, boundary, state.request_timeout).await?;
            // The bytes of a type that is not known tell what they are.
            (options.read.kind, options.read.delimiter) =
                media_type.and_then(|media_type| known_media(&media_type)).unwrap_or_default();
            options.read.document_name = options.read.document_name.or(name).or_else(unnamed);
            store_body(&state, slot, content, options).await?
        }
        None => {
            options.read.document_name = options.read.document_name.or_else(unnamed);
            store_body(&state, slot, body.into_data_stream(), options).await?
        }
    };
    state.note.update(|work| work.dataset = Some(encoded.id.clone()));
    let row = state.jobs.store().dataset(state.jobs.client(), &encoded.id).await?;
    let row = row.ok_or_else(|| {
        Problem::new(Kind::Unavailable, "the dataset was deleted as soon as it was stored; send it again")
    })?;
    let cut = report.get().map(|(tally, skipped)| DocumentTally {
        tally: *tally,
        skipped: skipped.iter().take(MAX_SKIPPED).cloned().collect(),
    });
    let dataset = Dataset { cut, ..Dataset::new(row, state.jobs.client())? };
    let location = format!("/v1/datasets/{}", dataset.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(dataset)).into_response())
}

/// List the datasets.
#[utoipa::path(
    get,
    path = "/v1/datasets",
    operation_id = "list_datasets",
    tag = "datasets",
    params(
        ("limit" = Option<usize>, Query, minimum = 1, maximum = 500, description = "Maximum number of datasets in a page; 500 if left out"),
        ("after" = Option<String>, Query, description = "The `next` of the page before")
    ),
    responses((status = 200, description = "The datasets, newest first", body = DatasetList), ListProblems)
)]
pub async fn list(ClientState(state): ClientState, uri: Uri) -> Result<Json<DatasetList>, Problem> {
    let (after, limit) = query::page(&uri, |_, _| Ok(()))?;
    let RowPage { rows, next } = state.jobs.store().datasets(state.jobs.client(), after, limit).await?;
    let datasets = rows.into_iter().filter_map(|row| listed(Dataset::new(row, state.jobs.client()))).collect();
    Ok(Json(DatasetList { datasets, next: next.map(|key| key.to_string()) }))
}

/// Get a dataset.
#[utoipa::path(
    get,
    path = "/v1/datasets/{id}",
    operation_id = "get_dataset",
    tag = "datasets",
    params(("id" = String, Path, description = "Id of the dataset")),
    responses((status = 200, description = "The dataset", body = Dataset), LookProblems)
)]
pub async fn get(ClientState(state): ClientState, PathNames(id): PathNames<String>) -> Result<Json<Dataset>, Problem> {
    let client = state.jobs.client();
    let row = state.jobs.store().dataset(client, &id).await?.ok_or(DatasetError::Unknown)?;
    Ok(Json(Dataset::new(row, client)?))
}

/// Delete a dataset.
///
/// Its samples are gone for good, and the statistics of its texts in the caches can no longer be found or read; audits of it keep their
/// results.
#[utoipa::path(
    delete,
    path = "/v1/datasets/{id}",
    operation_id = "delete_dataset",
    tag = "datasets",
    params(("id" = String, Path, description = "Id of the dataset")),
    responses((status = 204, description = "The dataset is gone"), StateProblems)
)]
pub async fn delete(ClientState(state): ClientState, PathNames(id): PathNames<String>) -> Result<StatusCode, Problem> {
    state.note.update(|work| work.dataset = Some(id.clone()));
    // Its own: another's of the same content stays, also where the request comes twice.
    let owner = state.jobs.client().name();
    let key = state.jobs.store().dataset_key(owner, &id).await?.ok_or(DatasetError::Unknown)?;
    // In a task of its own: a client that goes away must not leave one half done.
    let deleting = tokio::spawn(async move {
        let _deleting = state.client.quota.begin_deleting().await;
        let deleted = state.jobs.store().delete_dataset(key).await;
        // A part of it may be gone even if the store fails.
        if !matches!(deleted, Ok(false)) {
            state.scorer.forget(key);
        }
        if deleted? {
            return Ok(());
        }
        // Another request may have deleted it, and a third one uploaded the same samples since.
        let is_there = state.jobs.store().dataset_key(state.jobs.client().name(), &id).await? == Some(key);
        Err(Problem::from(if is_there { DatasetError::InUse } else { DatasetError::Unknown }))
    });
    deleting.await.map_err(Problem::internal)??;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads the upload options from the headers and the query, and the id of the model whose chat template is named.
fn upload_options(
    state: &ApiState,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(UploadOptions, Option<String>), Problem> {
    let (kind, delimiter) = media(headers)?;
    let columns = ColumnNames { labelled: true, ..ColumnNames::default() };
    let documents = ReadLimits { entry: MAX_DOCUMENT, archive: state.limits.dataset.as_u64(), ..ReadLimits::default() };
    let limit = Some(state.body_limit);
    let parquet = Some(ParquetProcess {
        program: state.program.clone(),
        slots: state.slots.parquet.clone(),
        client: state.client.principal().share_name(),
    });
    let read = ReadOptions { kind, delimiter, columns, limit, documents, parquet, ..ReadOptions::default() };
    let text_limit = state.limits.text.as_u64();
    let dataset = DatasetOptions { words: None, keep_columns: true, limit: state.limits.dataset.as_u64(), text_limit };
    let (mut options, mut chat_template) = (UploadOptions { read, dataset, retain: true }, None);
    let (mut is_cut, mut of_cuts) = (false, Vec::new());
    query::read_parameters(uri, |name, value| {
        const NO_FLAG: &str = "it must be `true` or `false`";
        const NO_NUMBER: &str = "it must be a whole number";
        match name {
            "text_column" => options.read.columns.text = Some(value),
            "label_column" => options.read.columns.label = Some(value),
            "id_column" => options.read.columns.id = Some(value),
            "retain" => options.retain = value.parse().map_err(|_| NO_FLAG)?,
            "keep_columns" => options.dataset.keep_columns = value.parse().map_err(|_| NO_FLAG)?,
            "cut" => {
                cut(&mut options).words = value.parse().map_err(|_| NO_NUMBER)?;
                is_cut = true;
            }
            "overlap" => {
                cut(&mut options).overlap = value.parse().map_err(|_| NO_NUMBER)?;
                of_cuts.push(name.to_owned());
            }
            "at" => {
                cut(&mut options).at = by_name(&value)?;
                of_cuts.push(name.to_owned());
            }
            "chat_template" => chat_template = Some(value),
            "name" => options.read.document_name = Some(value),
            "words" => {
                options.dataset.words = Some(value.parse().map_err(|_| "it must be a whole number of at least 1")?);
            }
            _ => {}
        }
        Ok(())
    })?;
    let mut faults = RequestFaults::default();
    for name in of_cuts.into_iter().filter(|_| !is_cut) {
        let fault = "it belongs to a cut; add `cut`, the number of words of a passage, such as `cut=128`";
        faults.keep(PointedFault::of_parameter(name, fault.to_owned()));
    }
    if let Some(Err(fault)) = options.read.cut.filter(|_| is_cut).map(|cut| cut.check()) {
        faults.keep(PointedFault::of_parameter("cut".to_owned(), fault.to_string()));
    }
    if options.read.document_name.is_some() && options.read.kind.is_some_and(|kind| kind.document().is_none()) {
        let fault = "it names a document, and the body is a file of samples, which name theirs";
        faults.keep(PointedFault::of_parameter("name".to_owned(), fault.to_owned()));
    }
    faults.finish()?;
    Ok((options, chat_template))
}

/// The cut that parameters change, with the defaults in the beginning.
fn cut(options: &mut UploadOptions) -> &mut Cut {
    options.read.cut.get_or_insert_default()
}
