//! Records that hold members and non-members in columns of their own, as the datasets of MIMIR do:
//!
//! ```text
//! member, nonmember                        a text each, or a list of texts each
//! member_neighbors, nonmember_neighbors    perhaps the neighbours of the text, or a list of them for each text
//! ```
//!
//! Each text becomes a record with `text`, `label` and perhaps `neighbors`; other columns come along with each.

use super::columns::{ColumnNames, MEMBER, NON_MEMBER};
use super::record::{Fields, Record};
use crate::wire::number_of;
use serde_json::Value;

/// The columns of the two kinds of texts and of their neighbours, with the label.
const KINDS: [(&str, &str, u8); 2] = [(MEMBER, "member_neighbors", 1), (NON_MEMBER, "nonmember_neighbors", 0)];

/// The records that one record of a file stands for: one for each text, where it has a column for each kind of text, or itself.
pub fn split(record: Record, columns: &ColumnNames) -> impl Iterator<Item = Record> + use<> {
    let Record { place, position, fields } = record;
    let (texts, common) = match fields {
        Ok(mut fields) if columns.are_paired(|name| fields.contains_key(name)) => match take_texts(&mut fields) {
            Ok(texts) => (texts.into_iter().map(Ok).collect(), fields),
            Err(fault) => (vec![Err(fault)], Fields::new()),
        },
        fields => (vec![fields], Fields::new()),
    };
    texts.into_iter().map(move |text: Result<Fields, String>| {
        let fields = text.map(|mut fields| {
            fields.extend(common.clone());
            fields
        });
        Record { place, position, fields }
    })
}

/// Takes the texts out of a record, each with its label and neighbours. An error says what is wrong with them.
fn take_texts(fields: &mut Fields) -> Result<Vec<Fields>, String> {
    let labelled = |text: Value, label: u8, neighbors: Option<Value>| {
        let mut fields = Fields::from_iter([("text".to_owned(), text), ("label".to_owned(), label.into())]);
        fields.extend(neighbors.map(|neighbors| ("neighbors".to_owned(), neighbors)));
        fields
    };
    let mut all = Vec::new();
    for (column, neighbors_column, label) in KINDS {
        let neighbors = fields.shift_remove(neighbors_column).filter(|value| !is_empty(value));
        match fields.shift_remove(column).unwrap_or_default() {
            Value::Null => {}
            Value::Array(texts) => {
                let neighbors = for_each(neighbors, texts.len()).map_err(|lists| {
                    format!("`{neighbors_column}` has {lists}, where `{column}` has {}", number_of(texts.len(), "text"))
                })?;
                let zipped = texts.into_iter().zip(neighbors);
                all.extend(zipped.map(|(text, neighbors)| labelled(text, label, neighbors)));
            }
            text => all.push(labelled(text, label, neighbors)),
        }
    }
    if all.is_empty() { Err(format!("neither `{MEMBER}` nor `{NON_MEMBER}` holds a text")) } else { Ok(all) }
}

/// The neighbours of each text of a list. An error says what there is instead.
fn for_each(neighbors: Option<Value>, texts: usize) -> Result<Vec<Option<Value>>, String> {
    match neighbors {
        None => Ok(vec![None; texts]),
        Some(Value::Array(lists)) if lists.len() == texts => {
            Ok(lists.into_iter().map(|list| Some(list).filter(|list| !is_empty(list))).collect())
        }
        Some(Value::Array(lists)) => Err(format!("{} lists", lists.len())),
        Some(_) => Err("no list of lists".to_owned()),
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::RecordPlace;
    use serde_json::json;

    fn split_fields(fields: Value) -> Result<Vec<Value>, String> {
        let fields = Ok(fields.as_object().unwrap().clone());
        let record = Record { place: RecordPlace::Row(3), position: 7, fields };
        split(record, &ColumnNames::default()).map(|record| record.fields.map(Value::Object)).collect()
    }

    #[test]
    fn a_row_of_a_member_and_a_non_member_is_two_samples() {
        let row =
            json!({"member": "a", "nonmember": "b", "member_neighbors": ["c"], "nonmember_neighbors": [], "more": 1});
        let expected = [
            json!({"text": "a", "label": 1, "neighbors": ["c"], "more": 1}),
            json!({"text": "b", "label": 0, "more": 1}),
        ];
        assert_eq!(split_fields(row).unwrap(), expected);
        assert_eq!(
            split_fields(json!({"member": null, "nonmember": "b"})).unwrap(),
            [json!({"text": "b", "label": 0})]
        );
    }

    #[test]
    fn a_row_of_lists_is_a_sample_for_each_text() {
        let row = json!({"member": ["a", "b"], "nonmember": ["c"], "member_neighbors": [["d"], []]});
        let sample = |text: &str, label: u8| json!({"text": text, "label": label});
        let mut expected = [sample("a", 1), sample("b", 1), sample("c", 0)];
        expected[0]["neighbors"] = json!(["d"]);
        assert_eq!(split_fields(row).unwrap(), expected);
        let fault =
            split_fields(json!({"member": ["a", "b"], "nonmember": [], "member_neighbors": [["d"]]})).unwrap_err();
        assert_eq!(fault, "`member_neighbors` has 1 lists, where `member` has 2 texts");
        let fault = split_fields(json!({"member": ["a"], "nonmember": [], "member_neighbors": "d"})).unwrap_err();
        assert_eq!(fault, "`member_neighbors` has no list of lists, where `member` has 1 text");
        assert!(split_fields(json!({"member": [], "nonmember": null})).unwrap_err().contains("holds a text"));
    }

    #[test]
    fn a_record_with_a_text_stays_as_it_is() {
        for row in [
            json!({"text": "t", "member": "a", "nonmember": "b"}),
            json!({"member": "a", "nonmember": "b", "label": 1}),
            json!({"member": "a"}),
        ] {
            assert_eq!(split_fields(row.clone()).unwrap(), [row]);
        }
    }
}
