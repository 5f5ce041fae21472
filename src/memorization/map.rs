//! The windows of a report as rows along its texts.

use super::extraction::{ExtractionWindow, TextExtraction};
use super::report::MemorizationReport;
use super::request::WindowShape;
use crate::datasets::SampleId;
use crate::wire::inert;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use utoipa::ToSchema;

/// Names of the columns of CSV: the fields of a row, in order.
const COLUMNS: [&str; 11] = [
    "index",
    "id",
    "control",
    "start",
    "suffix_start",
    "end",
    "given",
    "log_p",
    "greedy",
    "tries_for_half",
    "in_longest_run",
];

/// Format of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapFormat {
    Ndjson,
    Csv,
}

/// The parts of a report that its map is made of.
#[derive(Debug, Deserialize)]
pub struct MapSource {
    windows: WindowShape,
    texts: Vec<TextExtraction>,
    #[serde(default)]
    control: Option<Vec<TextExtraction>>,
}

/// A window of a text, as a row of the map.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MapWindow {
    /// Index of the text among the texts, or among those of the control, from 0.
    pub index: usize,
    /// Id of the text; null where it has none.
    pub id: Option<SampleId>,
    /// True if the text is one of the control.
    pub control: bool,
    /// Start of the window, prefix and suffix, in Unicode code points of the text.
    pub start: usize,
    /// Start of the suffix.
    pub suffix_start: usize,
    /// End of the window, exclusive.
    pub end: usize,
    /// Tokens that the model was given before the suffix.
    pub given: usize,
    /// The log-probability of the suffix given the tokens before it, in nats.
    pub log_p: f64,
    /// True if every token of the suffix is the most probable one, or as probable.
    pub greedy: bool,
    /// Number of samples after which the suffix has occurred with probability one half; null above 2^53.
    pub tries_for_half: Option<u64>,
    /// True if the suffix has a character of the text's longest run.
    pub in_longest_run: bool,
}

impl MapSource {
    /// The windows of the texts and then those of the control, in order.
    pub fn windows(&self) -> impl Iterator<Item = MapWindow> {
        windows(&self.texts, self.control.as_deref(), self.windows.prefix)
    }
}

impl MemorizationReport {
    /// The windows of the texts and then those of the control, in order.
    pub fn map(&self) -> impl Iterator<Item = MapWindow> {
        windows(&self.texts, self.control.as_deref(), self.windows.prefix)
    }
}

fn windows<'a>(
    texts: &'a [TextExtraction],
    control: Option<&'a [TextExtraction]>,
    prefix: usize,
) -> impl Iterator<Item = MapWindow> + use<'a> {
    let control = control.unwrap_or_default().iter().map(|text| (true, text));
    let texts = texts.iter().map(|text| (false, text)).chain(control);
    texts.flat_map(move |(control, text)| {
        text.windows.iter().map(move |window| MapWindow::new(control, text, window, prefix))
    })
}

impl MapFormat {
    /// What a file has before its rows.
    #[must_use]
    pub fn header(self) -> String {
        match self {
            Self::Ndjson => String::new(),
            Self::Csv => COLUMNS.join(",") + "\n",
        }
    }

    /// Writes some rows, one a line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(self, rows: impl Iterator<Item = MapWindow>, mut out: impl Write) -> io::Result<()> {
        match self {
            Self::Ndjson => {
                for row in rows {
                    serde_json::to_writer(&mut out, &row)?;
                    out.write_all(b"\n")?;
                }
            }
            Self::Csv => {
                let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(&mut out);
                for row in rows {
                    writer.serialize(row.inert())?;
                }
            }
        }
        out.flush()
    }
}

impl MapWindow {
    /// The row with an id that no spreadsheet evaluates.
    fn inert(self) -> Self {
        let id = self.id.map(|id| match id {
            SampleId::Text(text) => SampleId::Text(inert(&text).into_owned()),
            id => id,
        });
        Self { id, ..self }
    }

    fn new(control: bool, text: &TextExtraction, window: &ExtractionWindow, prefix: usize) -> Self {
        let ExtractionWindow { start, suffix_start, end, given, log_p, greedy, tries_for_half } = *window;
        let run = text.longest_run.as_ref();
        Self {
            index: text.index,
            id: text.id.clone(),
            control,
            start,
            suffix_start,
            end,
            given: given.unwrap_or(prefix),
            log_p,
            greedy,
            tries_for_half,
            in_longest_run: run.is_some_and(|run| run.start < end && suffix_start < run.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_report_is_rows_along_its_texts() {
        let window = |start: usize, given: Option<usize>| {
            let window =
                json!({ "start": start, "suffix_start": start + 5, "end": start + 9, "log_p": -1.5, "greedy": false });
            let given = given.map(|given| json!({ "given": given }));
            let fields =
                window.as_object().cloned().into_iter().chain(given.and_then(|given| given.as_object().cloned()));
            Value::Object(fields.flatten().collect())
        };
        let text = |index: usize, windows: Vec<Value>| {
            json!({ "index": index, "id": "=a", "characters": 40, "greedy_windows": 0, "windows": windows,
                    "longest_run": { "start": 9, "end": 12, "tokens": 2 } })
        };
        let report = json!({
            "windows": { "prefix": 5, "suffix": 4, "stride": 3 },
            "texts": [text(0, vec![window(0, None), window(3, Some(8)), window(7, None)])],
            "control": [text(0, vec![window(2, None)])],
        });
        let source: MapSource = serde_json::from_value(report).unwrap();
        let rows: Vec<_> =
            source.windows().map(|row| (row.control, row.start, row.given, row.in_longest_run)).collect();
        // Suffixes are 5 to 9, 8 to 12, 12 to 16 and 7 to 11; the run is 9 to 12.
        assert_eq!(rows, [(false, 0, 5, false), (false, 3, 8, true), (false, 7, 5, false), (true, 2, 5, true)]);
        let written = |format: MapFormat| {
            let mut out = format.header().into_bytes();
            format.write(source.windows().take(2), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            written(MapFormat::Csv),
            "index,id,control,start,suffix_start,end,given,log_p,greedy,tries_for_half,in_longest_run\n\
             0,'=a,false,0,5,9,5,-1.5,false,,false\n\
             0,'=a,false,3,8,12,8,-1.5,false,,true\n"
        );
        let (lines, columns) = (written(MapFormat::Ndjson), COLUMNS);
        let line: Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
        assert_eq!(line.as_object().unwrap().keys().collect::<Vec<_>>(), columns.iter().collect::<Vec<_>>());
        assert_eq!((&line["id"], &line["given"], &line["tries_for_half"]), (&json!("=a"), &json!(8), &Value::Null));
    }
}
