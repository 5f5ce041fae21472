//! The windows of a report as rows along its texts.

use super::extraction::ExtractionWindow;
use super::passes::WindowShape;
use crate::datasets::SampleId;
use crate::wire::inert;
use serde::{Deserialize, Serialize};
use std::io;
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
    texts: Vec<MappedText>,
    #[serde(default)]
    control: Vec<MappedText>,
}

#[derive(Debug, Deserialize)]
struct MappedText {
    index: usize,
    #[serde(default)]
    id: Option<SampleId>,
    #[serde(default)]
    longest_run: Option<RunPlace>,
    windows: Vec<ExtractionWindow>,
}

#[derive(Debug, Deserialize)]
struct RunPlace {
    start: usize,
    end: usize,
}

/// Place of a row: the index of a text, those of the control behind the others, and that of its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowPlace {
    text: usize,
    window: usize,
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
    /// The parts of a report that is JSON.
    ///
    /// # Errors
    /// If the text is not the JSON of a report.
    pub fn parse(report: &str) -> serde_json::Result<Self> {
        serde_json::from_str(report)
    }

    /// The rows from this place on, each with the place of the next one: the windows of the texts and then those of the control.
    pub fn rows(&self, first: RowPlace) -> impl Iterator<Item = (MapWindow, RowPlace)> {
        let (prefix, texts) = (self.windows.prefix, self.texts.len());
        let all = self.texts.iter().chain(&self.control).enumerate().skip(first.text);
        all.flat_map(move |(place, text)| {
            let skipped = if place == first.text { first.window } else { 0 };
            text.windows.iter().enumerate().skip(skipped).map(move |(window, numbers)| {
                let next = RowPlace { text: place, window: window + 1 };
                (MapWindow::new(place >= texts, text, numbers, prefix), next)
            })
        })
    }
}

impl MapFormat {
    /// The line before the rows; empty where there is none.
    #[must_use]
    pub fn header(self) -> String {
        match self {
            Self::Ndjson => String::new(),
            Self::Csv => COLUMNS.join(",") + "\n",
        }
    }

    /// A row as a line.
    ///
    /// # Errors
    /// If the row cannot be serialized; no such row is known.
    pub fn line(self, row: MapWindow) -> io::Result<Vec<u8>> {
        match self {
            Self::Ndjson => {
                let mut line = serde_json::to_vec(&row)?;
                line.push(b'\n');
                Ok(line)
            }
            Self::Csv => {
                let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
                writer.serialize(row.inert())?;
                writer.into_inner().map_err(|error| error.into_error())
            }
        }
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

    fn new(control: bool, text: &MappedText, window: &ExtractionWindow, prefix: usize) -> Self {
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
        let source = MapSource::parse(&report.to_string()).unwrap();
        let rows = |first| {
            let rows = source.rows(first).map(|(row, _)| (row.control, row.start, row.given, row.in_longest_run));
            rows.collect::<Vec<_>>()
        };
        // Suffixes are 5 to 9, 8 to 12, 12 to 16 and 7 to 11; the run is 9 to 12.
        let all = [(false, 0, 5, false), (false, 3, 8, true), (false, 7, 5, false), (true, 2, 5, true)];
        assert_eq!(rows(RowPlace::default()), all);
        let mut place = RowPlace::default();
        for left in (0..4).rev() {
            place = source.rows(place).next().unwrap().1;
            assert_eq!(rows(place), all[4 - left..]);
        }
        let written = |format: MapFormat| {
            let lines = source.rows(RowPlace::default()).take(2).map(|(row, _)| format.line(row).unwrap());
            format.header() + &String::from_utf8(lines.collect::<Vec<_>>().concat()).unwrap()
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
