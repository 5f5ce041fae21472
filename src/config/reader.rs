//! Reads typed values out of the merged tree and gathers every fault on the way.
//!
//! A key at fault keeps its default, so that reading goes on; whoever asks for the settings gets the faults instead.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use figment::value::{Dict, Value};

use super::size::duration;
use super::sources::Sources;
use super::{ByteSize, Fault};

/// The state of reading.
pub(super) struct Reader<'a> {
    sources: &'a Sources,
    /// Where the keys that were read came from.
    origins: BTreeMap<String, String>,
    faults: Vec<Fault>,
}

/// A table that is being read. What is not taken from it until it is closed is unknown.
pub(super) struct Table {
    path: String,
    entries: Dict,
    known: Vec<&'static str>,
}

/// A value that is being read.
pub(super) struct Item<'a> {
    value: &'a Value,
    /// The unparsed text of the variable that it came from.
    raw: Option<&'a str>,
    directory: Option<PathBuf>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(sources: &'a Sources) -> Self {
        Self { sources, origins: BTreeMap::new(), faults: sources.faults.clone() }
    }

    /// The table of everything.
    pub(super) fn root(&self) -> Table {
        Table::new(String::new(), self.sources.root.as_dict().cloned().unwrap_or_default())
    }

    /// The table at `key`; empty where there is none.
    pub(super) fn table(&mut self, parent: &mut Table, key: &'static str) -> Table {
        let path = parent.path_of(key);
        let entries = match parent.take(key) {
            None => Dict::new(),
            Some(Value::Dict(_, entries)) => entries,
            Some(other) => {
                self.fault_at(&path, format!("expected a table, got {}", describe(&other)), &other);
                Dict::new()
            }
        };
        Table::new(path, entries)
    }

    /// The array of tables at `key`; empty where there is none or where any of it is something else.
    pub(super) fn tables(&mut self, parent: &mut Table, key: &'static str) -> Vec<Table> {
        let path = parent.path_of(key);
        let values = match parent.take(key) {
            None => Vec::new(),
            Some(Value::Array(_, values)) => values,
            Some(other) => {
                self.fault_at(&path, format!("expected an array of tables, got {}", describe(&other)), &other);
                Vec::new()
            }
        };
        let mut tables = Vec::new();
        let count = values.len();
        for (index, value) in values.into_iter().enumerate() {
            let path = format!("{path}[{index}]");
            match value {
                Value::Dict(_, entries) => tables.push(Table::new(path, entries)),
                other => self.fault_at(&path, format!("expected a table, got {}", describe(&other)), &other),
            }
        }
        if tables.len() == count { tables } else { Vec::new() }
    }

    /// Reads the value at `key` into `target`, which stays as it is where there is no value or a wrong one. Says whether
    /// there was a value, right or wrong.
    pub(super) fn read<T>(
        &mut self,
        table: &mut Table,
        key: &'static str,
        target: &mut T,
        parse: impl FnOnce(&Item<'_>) -> Result<T, String>,
    ) -> bool {
        let path = table.path_of(key);
        let Some(value) = table.take(key) else { return false };
        let directory = self.sources.file(&value).and_then(|file| file.parent()).map(PathBuf::from);
        let raw = self.sources.variables.get(&path).map(String::as_str);
        match parse(&Item { value: &value, raw, directory }) {
            Ok(parsed) => *target = parsed,
            Err(problem) => self.fault_at(&path, problem, &value),
        }
        if let Some(origin) = self.sources.origin(&value) {
            self.origins.insert(path, origin);
        }
        true
    }

    /// Notes that `key`, which has no default, is not there.
    pub(super) fn missing(&mut self, table: &Table, key: &str) {
        let sibling = table.known.iter().find_map(|known| self.origins.get(&table.path_of(known)).cloned());
        self.faults.push(Fault { key: table.path_of(key), problem: "is required".to_owned(), origin: sibling });
    }

    /// Ends the reading of a table: what is left of it is unknown.
    pub(super) fn close(&mut self, table: Table) {
        for (key, value) in &table.entries {
            let problem = format!("unknown key; known here: {}", table.known.join(", "));
            self.fault_at(&table.path_of(key), problem, value);
        }
    }

    /// Notes a fault of a key that was read before.
    pub(super) fn fault(&mut self, path: &str, problem: String) {
        let origin = self.origins.get(path).cloned();
        self.faults.push(Fault { key: path.to_owned(), problem, origin });
    }

    /// Whether a key that satisfies the condition is at fault already, so that nothing follows from its value.
    pub(super) fn any_faulty(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        self.faults.iter().any(|fault| is_meant(&fault.key))
    }

    /// All faults.
    pub(super) fn finish(self) -> Vec<Fault> {
        self.faults
    }

    fn fault_at(&mut self, path: &str, problem: String, value: &Value) {
        let origin = self.sources.origin(value);
        self.faults.push(Fault { key: path.to_owned(), problem, origin });
    }
}

impl Table {
    fn new(path: String, entries: Dict) -> Self {
        Self { path, entries, known: Vec::new() }
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.entries.remove(key)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl Item<'_> {
    /// The value as text.
    pub(super) fn text(&self) -> Result<String, String> {
        match (self.value, self.raw) {
            (Value::String(_, text), _) => Ok(text.clone()),
            (Value::Num(..) | Value::Bool(..), Some(raw)) => Ok(raw.to_owned()),
            _ => Err(self.expected("a string")),
        }
    }

    /// The value as true or false.
    pub(super) fn flag(&self) -> Result<bool, String> {
        match self.value {
            Value::Bool(_, flag) => Ok(*flag),
            _ => Err(self.expected("true or false")),
        }
    }

    /// The value as one thing, or as an array of at least one, none of them twice.
    pub(super) fn one_or_more<T: PartialEq>(
        &self,
        parse: impl Fn(&Item<'_>) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let Value::Array(_, values) = self.value else { return Ok(vec![parse(self)?]) };
        let mut things = Vec::new();
        for value in values {
            let thing = parse(&Item { value, raw: None, directory: None })?;
            if things.contains(&thing) {
                return Err(format!("{} stands there twice", describe(value)));
            }
            things.push(thing);
        }
        if things.is_empty() { Err(self.expected("at least one")) } else { Ok(things) }
    }

    /// The value as one of these words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, String> {
        let found = self.text().ok().and_then(|text| choices.iter().find(|(word, _)| *word == text));
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words: Vec<_> = choices.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            self.expected(&words.join(" or "))
        })
    }

    /// The value as a whole number of this range.
    pub(super) fn whole(&self, range: RangeInclusive<u64>) -> Result<u64, String> {
        let number = self.number().filter(|number| range.contains(number));
        number.ok_or_else(|| match (*range.start(), *range.end()) {
            (0, u64::MAX) => self.expected("a whole number"),
            (least, u64::MAX) => self.expected(&format!("a whole number, at least {least}")),
            (least, most) => self.expected(&format!("a whole number from {least} to {most}")),
        })
    }

    /// The value as a number of bytes, at least `least`.
    pub(super) fn size(&self, least: u64) -> Result<ByteSize, String> {
        let size = match (self.number(), self.value) {
            (Some(bytes), _) => ByteSize::bytes(bytes),
            (None, Value::String(_, text)) => text.parse()?,
            _ => return Err(self.expected("a number of bytes or a string as in \"256MiB\"")),
        };
        if size.as_u64() < least {
            return Err(self.expected(&format!("at least {}", ByteSize::bytes(least))));
        }
        Ok(size)
    }

    /// The value as a duration, more than zero and at most `most`.
    pub(super) fn duration(&self, most: Duration) -> Result<Duration, String> {
        let duration = match (self.number(), self.value) {
            (Some(seconds), _) => Duration::from_secs(seconds),
            (None, Value::String(_, text)) => duration(text)?,
            _ => return Err(self.expected("a number of seconds or a string as in \"60s\" or \"500ms\"")),
        };
        if duration.is_zero() || duration > most {
            return Err(self.expected(&format!("more than 0 and at most {} hours", most.as_secs() / 3_600)));
        }
        Ok(duration)
    }

    /// The value as a path. A relative one from the file counts from the file's directory.
    pub(super) fn path(&self) -> Result<PathBuf, String> {
        let text = self.text()?;
        if text.is_empty() {
            return Err(self.expected("a path"));
        }
        Ok(match &self.directory {
            Some(directory) => directory.join(text),
            None => PathBuf::from(text),
        })
    }

    /// Says that something else is there.
    pub(super) fn expected(&self, what: &str) -> String {
        format!("expected {what}, got {}", describe(self.value))
    }

    fn number(&self) -> Option<u64> {
        match self.value {
            Value::Num(_, number) => {
                // Signed and unsigned kinds are kept apart by the tree, and the widest conversions exclude each other.
                let number =
                    number.to_u128().or_else(|| number.to_i128().and_then(|number| u128::try_from(number).ok()));
                number.and_then(|number| u64::try_from(number).ok())
            }
            _ => None,
        }
    }
}

/// The value in words.
fn describe(value: &Value) -> String {
    match value {
        Value::String(_, text) => format!("{text:?}"),
        Value::Char(_, character) => format!("{character:?}"),
        Value::Bool(_, value) => value.to_string(),
        Value::Num(_, number) => match (number.to_u128(), number.to_i128(), number.to_f64()) {
            (Some(number), _, _) => number.to_string(),
            (None, Some(number), _) => number.to_string(),
            (None, None, Some(number)) => format!("{number:?}"),
            (None, None, None) => "a number".to_owned(),
        },
        Value::Empty(..) => "nothing".to_owned(),
        Value::Dict(..) => "a table".to_owned(),
        Value::Array(..) => "an array".to_owned(),
    }
}
