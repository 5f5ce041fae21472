//! The operations of a kind of job in the OpenAPI document.

use super::JobResource;
use super::view::JobState;
use crate::api::page;
use crate::api::problem::responses::{ListProblems, LookProblems, ReportProblems, StateProblems, SubmitProblems};
use crate::audits::MOST_STRIPS;
use crate::store::JobStatus;
use serde_json::Value;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathItemBuilder, PathsBuilder,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{AllOfBuilder, ArrayBuilder, ObjectBuilder, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, ResponseBuilder,
    ResponsesBuilder, Schema,
};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

const JSON: &str = "application/json";

/// The operations of a kind of job, with their schemas.
pub fn document<K: JobResource>() -> OpenApi {
    let jobs = K::DOCUMENT.path();
    let item = PathItemBuilder::new;
    let paths = PathsBuilder::new()
        .path(
            &jobs,
            item().operation(HttpMethod::Post, submission::<K>()).operation(HttpMethod::Get, list::<K>()).build(),
        )
        .path(
            format!("{jobs}/{{id}}"),
            item().operation(HttpMethod::Get, get::<K>()).operation(HttpMethod::Delete, deletion::<K>()).build(),
        )
        .path(format!("{jobs}/{{id}}/cancel"), PathItem::new(HttpMethod::Post, cancellation::<K>()))
        .path(format!("{jobs}/{{id}}/events"), PathItem::new(HttpMethod::Get, events::<K>()))
        .path(format!("{jobs}/{{id}}/report"), PathItem::new(HttpMethod::Get, report_of_one::<K>()));
    let components = ComponentsBuilder::new().schemas_from_iter(schemas::<K>()).build();
    OpenApiBuilder::new().paths(paths).components(Some(components)).build()
}

fn submission<K: JobResource>() -> Operation {
    let noun = K::NAME;
    let wait = format!("`wait=N` waits up to N seconds, at most 600, for the {noun} to finish");
    let key = format!("Name of this submission: the same again returns the same {noun}, another body is refused");
    let waited = || header("The wait that was honoured; absent if there was none");
    let finished = job_answer::<K>(format!("The {noun}, finished within the time of `Prefer: wait=N`"));
    let accepted = job_answer::<K>(format!("The {noun}, not finished"));
    let accepted = accepted.header("Location", header(&format!("Path of the {noun}")));
    let example = serde_json::from_str::<Value>(K::DOCUMENT.example).ok();
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(K::Body::name()))).example(example);
    let body = RequestBodyBuilder::new().content(JSON, content.build()).required(Some(Required::True));
    operation::<K>(&format!("submit_{}", K::DOCUMENT.operation), format!("Submit {}.", with_article(noun)))
        .description(Some(K::DOCUMENT.description))
        .parameter(optional_header("Prefer", wait, "wait=60"))
        .parameter(optional_header("Idempotency-Key", key, "8c9a4d2e-books-2019"))
        .request_body(Some(body.build()))
        .responses(
            responses::<SubmitProblems>()
                .response("200", finished.header("Preference-Applied", waited()))
                .response("202", accepted.header("Preference-Applied", waited()))
                .build(),
        )
        .build()
}

fn list<K: JobResource>() -> Operation {
    let nouns = format!("{}s", K::NAME);
    let limit = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(500));
    let query = |name: &str, description: &str, schema: RefOr<Schema>| {
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(description))
            .schema(Some(schema))
    };
    let status = Ref::from_schema_name(<JobStatus as ToSchema>::name()).into();
    let page = answer(&K::DOCUMENT.list_schema(), format!("The {nouns} without their results, newest first"));
    operation::<K>(&format!("list_{}", K::DOCUMENT.segment), format!("List {nouns}."))
        .parameter(query("status", &format!("Status of the {nouns} to list"), status))
        .parameter(query("model", &format!("Id of the model of the {nouns} to list"), text()))
        .parameter(query("limit", &format!("Maximum number of {nouns} in a page; 500 if left out"), limit.into()))
        .parameter(query("after", "The `next` of the previous page", text()))
        .responses(responses::<ListProblems>().response("200", page).build())
        .build()
}

fn get<K: JobResource>() -> Operation {
    of_one::<K>("get", format!("Get {}.", with_article(K::NAME)))
        .responses(responses::<LookProblems>().response("200", job_answer::<K>(format!("The {}", K::NAME))).build())
        .build()
}

fn cancellation<K: JobResource>() -> Operation {
    let cancelled = job_answer::<K>(format!("The {}, cancelled", K::NAME));
    of_one::<K>("cancel", format!("Cancel {}.", with_article(K::NAME)))
        .description(K::DOCUMENT.cancellation)
        .responses(responses::<StateProblems>().response("200", cancelled).build())
        .build()
}

fn deletion<K: JobResource>() -> Operation {
    let deleted = ResponseBuilder::new().description(format!("The {} is deleted", K::NAME));
    of_one::<K>("delete", format!("Delete a finished {}.", K::NAME))
        .description(K::DOCUMENT.deletion)
        .responses(responses::<StateProblems>().response("204", deleted).build())
        .build()
}

fn events<K: JobResource>() -> Operation {
    let description = format!(
        "An event `progress` has {}, an event `status` has `status`. Both are sent at the beginning and after each change. Ids of events \
         increase; a client that sends the last one as `Last-Event-ID` receives the events after it. The stream ends after the final status.",
        K::DOCUMENT.progress
    );
    let events = ResponseBuilder::new()
        .description("The events, each with `id`, `event` and `data`, which is JSON")
        .content("text/event-stream", ContentBuilder::new().build());
    of_one::<K>("follow", format!("Stream the events of {}.", with_article(K::NAME)))
        .description(Some(description))
        .parameter(optional_header("Last-Event-ID", "Id of the last event that was received".to_owned(), "7"))
        .responses(responses::<LookProblems>().response("200", events).build())
        .build()
}

fn report_of_one<K: JobResource>() -> Operation {
    let noun = K::NAME;
    let json: RefOr<Schema> = match K::DOCUMENT.has_results {
        true => Ref::from_schema_name(K::Report::name()).into(),
        false => ObjectBuilder::new().into(),
    };
    let report = ResponseBuilder::new()
        .description(format!("The report of the {noun}"))
        .content(page::HTML, ContentBuilder::new().schema(Some(text())).build())
        .content(page::JSON, ContentBuilder::new().schema(Some(json)).build())
        .content(page::DSSE, ContentBuilder::new().schema(Some(ObjectBuilder::new())).build())
        .content(page::BUNDLE, ContentBuilder::new().schema(Some(text())).build());
    let formats = format!("`{}`, `{}`, `{}` or `{}`", page::HTML, page::JSON, page::DSSE, page::BUNDLE);
    let id = format!("get_{}_report", K::DOCUMENT.operation);
    let operation = on_one::<K>(&id, format!("Get the report of {}.", with_article(noun)))
        .description(Some(
            "As a page of HTML that needs nothing beside it, which is what a client without a preference gets, as the JSON that the \
             page is made of, or signed: an in-toto statement in a DSSE envelope, where the service has a signing key (409 without \
             one). A bundle has the signed report and, for an audit with a verdict, its claims as in-toto's proposed `eval-result`. Each number on the page is a `data` element with the JSON pointer to it as `data-at`.",
        ))
        .parameter(optional_header("Accept", formats, page::JSON))
        .responses(responses::<ReportProblems>().response("200", report).build());
    if K::SHOWS_TEXTS { operation.parameter(texts_of_page()).build() } else { operation.build() }
}

fn texts_of_page() -> ParameterBuilder {
    let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(MOST_STRIPS as u64));
    ParameterBuilder::new()
        .name("texts")
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some(
            "Number of texts that the page shows token by token, with their weights and what the primary method selects: the first ones, \
             which are scored again; 409 if the texts are not kept",
        ))
        .schema(Some(count))
}

/// An operation on one job; its id is in the path.
fn of_one<K: JobResource>(verb: &str, summary: String) -> OperationBuilder {
    on_one::<K>(&format!("{verb}_{}", K::DOCUMENT.operation), summary)
}

/// The same under an operation id of its own.
fn on_one<K: JobResource>(operation_id: &str, summary: String) -> OperationBuilder {
    let id = ParameterBuilder::new()
        .name("id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(format!("Id of the {}", K::NAME)))
        .schema(Some(text()));
    operation::<K>(operation_id, summary).parameter(id)
}

fn operation<K: JobResource>(id: &str, summary: String) -> OperationBuilder {
    OperationBuilder::new().tag(K::DOCUMENT.segment).operation_id(Some(id)).summary(Some(summary))
}

fn responses<P: IntoResponses>() -> ResponsesBuilder {
    ResponsesBuilder::new().responses_from_into_responses::<P>()
}

fn job_answer<K: JobResource>(description: String) -> ResponseBuilder {
    answer(K::DOCUMENT.schema, description)
}

fn answer(schema: &str, description: String) -> ResponseBuilder {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
    ResponseBuilder::new().description(description).content(JSON, content)
}

fn optional_header(name: &str, description: String, example: &str) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(optional_text()))
        .example(Some(example.into()))
}

fn header(description: &str) -> Header {
    HeaderBuilder::new().schema(Some(text())).description(Some(description)).build()
}

fn text() -> RefOr<Schema> {
    String::schema()
}

fn optional_text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::Array(vec![Type::String, Type::Null]))
}

/// A noun after `a` or `an`.
fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// The schemas that the operations refer to, by name.
fn schemas<K: JobResource>() -> Vec<(String, RefOr<Schema>)> {
    let (noun, document) = (K::NAME, K::DOCUMENT);
    let reference = |name: &str| Ref::from_schema_name(name);
    let next = optional_text().description(Some("The value of `after` for the next page; absent on the last page"));
    let page = ObjectBuilder::new()
        .description(Some(format!("A page of {noun}s, newest first.")))
        .property(document.list, ArrayBuilder::new().items(reference(&document.summary_schema())))
        .required(document.list)
        .property("next", next);
    let mut schemas = vec![
        (K::Body::name().into_owned(), K::Body::schema()),
        (K::Progress::name().into_owned(), K::Progress::schema()),
        (<JobStatus as ToSchema>::name().into_owned(), JobStatus::schema()),
        (document.list_schema(), page.into()),
    ];
    if document.has_results {
        let results = OneOfBuilder::new()
            .item(reference(&K::Report::name()))
            .item(ObjectBuilder::new().schema_type(Type::Null))
            .description(Some(format!("The report; null until the {noun} has succeeded.")));
        let job = AllOfBuilder::new()
            .description(Some(format!("{} with its report.", capitalised(&with_article(noun)))))
            .item(reference(&document.summary_schema()))
            .item(ObjectBuilder::new().property("results", results));
        schemas.push((document.schema.to_owned(), job.into()));
        schemas.push((K::Report::name().into_owned(), K::Report::schema()));
        K::Report::schemas(&mut schemas);
    }
    let shown = if document.has_results { " without its report." } else { "." };
    let progress = ObjectBuilder::new().property("progress", reference(&K::Progress::name())).required("progress");
    let summary = AllOfBuilder::new()
        .description(Some(capitalised(&with_article(noun)) + shown))
        .item(JobState::schema())
        .item(K::Details::schema())
        .item(progress);
    schemas.push((document.summary_schema(), summary.into()));
    JobState::schemas(&mut schemas);
    K::Body::schemas(&mut schemas);
    K::Details::schemas(&mut schemas);
    K::Progress::schemas(&mut schemas);
    schemas
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
