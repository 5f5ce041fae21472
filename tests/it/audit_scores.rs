//! The scores of an audit as lines of JSON, CSV and Parquet, with what came along with the samples.

use crate::common::app::App;
use crate::common::client::{Answer, send};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use reqwest::Method;
use serde_json::{Value, json};

const PARQUET: &str = "application/vnd.apache.parquet";

async fn scores(app: &App, audit: &Value, accept: &str) -> Answer {
    let path = format!("/v1/audits/{}/scores", audit["id"].as_str().unwrap());
    let answer = send(app.request(Method::GET, &path).header("accept", accept)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of a table: the name and the value of each column.
fn rows(answer: &Answer) -> Vec<Vec<(String, Field)>> {
    assert_eq!(answer.header("content-type"), PARQUET);
    let reader = SerializedFileReader::new(bytes::Bytes::from(answer.body.clone())).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|row| row.unwrap().get_column_iter().map(|(name, value)| (name.clone(), value.clone())).collect())
        .collect()
}

async fn upload(app: &App, query: &str, body: String) -> Value {
    let answer = app.post_bytes(&format!("/v1/datasets{query}"), Some("application/x-ndjson"), body.into()).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()
}

async fn audited(app: &App, dataset: &Value) -> Value {
    app.audit(&json!({ "dataset": dataset["id"], "methods": ["loss", { "name": "min_k", "label": "=k" }] })).await.ok()
}

/// Samples, some with extra columns, also ones named like those of results.
fn samples(count: usize) -> String {
    let sample = |number: usize| {
        let mut sample =
            json!({ "text": format!("Sample {number} of the dataset."), "label": number % 2, "id": number });
        if number.is_multiple_of(3) {
            sample["page"] = json!(number);
            sample["index"] = json!("=index");
            sample["source"] = json!({ "book": [number] });
        }
        format!("{sample}\n")
    };
    (0..count).map(sample).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_formats_hold_the_same_rows() {
    let app = App::start().await;
    let audit = audited(&app, &upload(&app, "?keep_columns=false", samples(1_100)).await).await;
    let lines = lines(&scores(&app, &audit, "*/*").await);
    let table = rows(&scores(&app, &audit, PARQUET).await);
    assert_eq!((lines.len(), table.len()), (1_100, 1_100));
    let names: Vec<&str> = table[0].iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "index",
        "id",
        "label",
        "group",
        "document",
        "cluster",
        "scored_tokens",
        "truncated",
        "windows",
        "loss",
        "=k",
        "alpha_used",
        "errors",
        "posterior",
        "p_values",
        "p_value_adjusted",
        "flagged",
        "control_scores",
        "control_measures",
        "log_odds",
        "text_digest",
        "baseline_scores",
    ];
    assert_eq!(names, expected);
    for (line, row) in lines.iter().zip(&table) {
        assert!(line.get("columns").is_none(), "{line}");
        let value = |name: &str| row.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap();
        assert_eq!(value("index"), Field::Long(line["index"].as_i64().unwrap()));
        assert_eq!(value("id"), Field::Str(line["id"].to_string()));
        assert_eq!(value("label"), Field::Long(line["label"].as_i64().unwrap()));
        assert_eq!(value("truncated"), Field::Bool(false));
        assert_eq!((value("group"), value("windows"), value("errors")), (Field::Null, Field::Null, Field::Null));
        for label in ["loss", "=k"] {
            assert_eq!(value(label), Field::Double(line["scores"][label].as_f64().unwrap()), "bit for bit");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_columns_come_back_with_the_scores_as_long_as_the_samples_are_there() {
    let app = App::start().await;
    let dataset = upload(&app, "", samples(1_100)).await;
    assert_eq!(dataset["columns"], json!(["page", "index", "source"]));
    let audit = audited(&app, &dataset).await;
    let csv = scores(&app, &audit, "text/csv").await;
    let mut reader = csv::Reader::from_reader(csv.text().as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(
        header[9..],
        [
            "loss",
            "'=k",
            "alpha_used",
            "errors",
            "posterior",
            "p_values",
            "p_value_adjusted",
            "flagged",
            "control_scores",
            "control_measures",
            "log_odds",
            "text_digest",
            "baseline_scores",
            "page",
            "index (input)",
            "source"
        ]
    );
    let records: Vec<Vec<String>> =
        reader.records().map(|record| record.unwrap().iter().map(str::to_owned).collect()).collect();
    let (lines, table) = (lines(&scores(&app, &audit, "*/*").await), rows(&scores(&app, &audit, PARQUET).await));
    for (number, ((line, row), record)) in lines.iter().zip(&table).zip(&records).enumerate() {
        let columns: Vec<&Field> = row[row.len() - 3..].iter().map(|(_, value)| value).collect();
        let others = &record[record.len() - 3..];
        if number % 3 > 0 {
            assert!(line.get("columns").is_none() && columns == [&Field::Null; 3] && others == ["", "", ""], "{line}");
            continue;
        }
        let source = json!({ "book": [number] });
        assert_eq!(line["columns"], json!({ "page": number, "index": "=index", "source": source }));
        let text = |text: &str| Field::Str(text.to_owned());
        assert_eq!(columns, [&Field::Long(number as i64), &text("=index"), &text(&source.to_string())]);
        assert_eq!(others, [&number.to_string(), "'=index", &source.to_string()]);
    }
    assert_eq!(table[0].iter().map(|(name, _)| name).next_back().unwrap(), "source");

    // The same numbers, and nothing of what was deleted.
    app.delete(&format!("/v1/datasets/{}", dataset["id"].as_str().unwrap())).await;
    let without = |lines: &[Value]| {
        let mut lines = lines.to_vec();
        lines.iter_mut().for_each(|line| drop(line.as_object_mut().unwrap().remove("columns")));
        lines
    };
    let after = self::lines(&scores(&app, &audit, "*/*").await);
    assert_eq!(after, without(&lines));
    assert_eq!(rows(&scores(&app, &audit, PARQUET).await)[0].len(), 22);
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_in_a_request_bring_columns_along_too_within_bounds() {
    let app = App::start().await;
    let sample = |text: &str, page: Value| json!({ "text": text, "columns": { "page": page } });
    let body =
        |page| json!({ "samples": [sample("One text.", json!(1)), sample("Another one.", page)], "methods": ["loss"] });
    let audit = app.audit(&body(json!("x"))).await.ok();
    let pages: Vec<Value> =
        lines(&scores(&app, &audit, "*/*").await).iter().map(|line| line["columns"]["page"].clone()).collect();
    assert_eq!(pages, [json!(1), json!("x")]);
    // One of the two is a text, so the column is.
    let table = rows(&scores(&app, &audit, PARQUET).await);
    let pages: Vec<&Field> = table.iter().map(|row| &row.last().unwrap().1).collect();
    assert_eq!(pages, [&Field::Str("1".to_owned()), &Field::Str("x".to_owned())]);

    let refused = app.post("/v1/audits", &body(json!("x".repeat(70_000)))).await;
    assert_eq!(refused.pointers(), ["/samples/1/columns"]);
    let long = format!("{}\n", json!({ "text": "One.", "page": "x".repeat(70_000) }));
    let refused = app.post_bytes("/v1/datasets", Some("application/x-ndjson"), long.clone().into()).await.problem(422);
    assert!(refused["detail"].as_str().unwrap().contains("line 1: the other columns take 70011 bytes"), "{refused}");
    let many: String =
        (0..300).map(|number| format!("{}\n", json!({ "text": "One.", format!("c{number}"): 1 }))).collect();
    let refused = app.post_bytes("/v1/datasets", Some("application/x-ndjson"), many.clone().into()).await.problem(422);
    assert!(refused["detail"].as_str().unwrap().contains("more than 256 other columns"), "{refused}");
    for body in [long, many] {
        assert_eq!(upload(&app, "?keep_columns=false", body).await["columns"], json!([]));
    }
}
