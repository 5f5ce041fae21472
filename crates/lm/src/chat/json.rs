//! The filter `tojson`, which writes JSON as Python's `json.dumps` does.

use super::python::BYTES_PER_FUEL;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};
use std::fmt::Write;

/// Maximum depth of a value.
const MAX_DEPTH: usize = 32;

/// Maximum number of bytes of a separator, which is written for the fuel of a value.
const MAX_SEPARATOR: usize = 8;

/// Writes a value as JSON, by the arguments that the filter of transformers takes.
pub fn to_json(state: &State, value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let (between, after_key) = match separators.as_deref() {
        Some([between, after_key]) if between.len().max(after_key.len()) <= MAX_SEPARATOR => {
            (between.clone(), after_key.clone())
        }
        Some(_) => {
            let detail = format!("`separators` takes two texts of at most {MAX_SEPARATOR} bytes");
            return Err(Error::new(ErrorKind::InvalidOperation, detail));
        }
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
    };
    let ascii = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    let sorted = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    let mut writer = JsonWriter { state, indent, between, after_key, ascii, sorted, json: String::new() };
    writer.value(value, 0)?;
    Ok(writer.json.into())
}

struct JsonWriter<'s, 't, 'e> {
    state: &'s State<'t, 'e>,
    indent: Option<usize>,
    between: String,
    after_key: String,
    ascii: bool,
    sorted: bool,
    json: String,
}

impl JsonWriter<'_, '_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.state.consume_fuel(1)?;
        if depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::BadSerialization, "the value is nested too deeply"));
        }
        match value.kind() {
            ValueKind::None => self.json.push_str("null"),
            ValueKind::Bool => self.json.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.json.push_str(&value.to_string()),
            ValueKind::String => self.text(value.as_str().unwrap_or_default())?,
            ValueKind::Seq | ValueKind::Iterable => {
                self.list('[', ']', value.try_iter()?, depth, |writer, item| writer.value(&item, depth + 1))?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sorted {
                    keys.sort();
                }
                self.list('{', '}', keys.into_iter(), depth, |writer, key| {
                    writer.text(&key.to_string())?;
                    let after_key = writer.after_key.clone();
                    writer.json.push_str(&after_key);
                    writer.value(&value.get_item(&key)?, depth + 1)
                })?;
            }
            kind => {
                return Err(Error::new(ErrorKind::BadSerialization, format!("a value of the kind {kind} is no JSON")));
            }
        }
        Ok(())
    }

    fn list(
        &mut self,
        open: char,
        close: char,
        items: impl Iterator<Item = Value>,
        depth: usize,
        mut write: impl FnMut(&mut Self, Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.json.push(open);
        let mut count = 0_usize;
        for item in items {
            if count > 0 {
                let between = self.between.clone();
                self.json.push_str(&between);
            }
            count += 1;
            self.line(depth + 1)?;
            write(self, item)?;
        }
        if count > 0 {
            self.line(depth)?;
        }
        self.json.push(close);
        Ok(())
    }

    /// Begins a line of this depth, where values are on lines of their own.
    fn line(&mut self, depth: usize) -> Result<(), Error> {
        let Some(indent) = self.indent else { return Ok(()) };
        let width = indent.saturating_mul(depth);
        self.state.consume_fuel((width / BYTES_PER_FUEL) as u64)?;
        self.json.push('\n');
        self.json.extend(std::iter::repeat_n(' ', width));
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Error> {
        self.state.consume_fuel((text.len() / BYTES_PER_FUEL) as u64)?;
        let quoted = serde_json::to_string(text);
        let quoted = quoted.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
        if !self.ascii {
            self.json.push_str(&quoted);
            return Ok(());
        }
        for character in quoted.chars() {
            if character.is_ascii() {
                self.json.push(character);
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a text cannot fail.
                    let _ = write!(self.json, "\\u{unit:04x}");
                }
            }
        }
        Ok(())
    }
}
