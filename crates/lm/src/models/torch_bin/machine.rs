//! The state of the machine that interprets a pickle, and the stack operations of its instructions.

use super::value::{Id, Value};
use std::collections::HashMap;

/// No weight has more; the limit prevents one long shape from being copied into many tensors.
const MOST_DIMENSIONS: usize = 8;

pub const TOO_FEW: &str = "an instruction needs more values than the stack has";

/// Why the machine stops before the end of the pickle.
pub enum Stop {
    Reason(Reason),
    /// A function or class that is not supported.
    Global(String),
}

impl<T: Into<Reason>> From<T> for Stop {
    fn from(reason: T) -> Self {
        Self::Reason(reason.into())
    }
}

/// The state that instructions read and modify.
pub struct Machine<'a> {
    pub reader: PickleReader<'a>,
    pub values: Vec<Value<'a>>,
    pub stack: Vec<Id>,
    /// The stack length at each MARK that is still open.
    pub marks: Vec<usize>,
    pub memo: HashMap<u32, Id>,
}

impl<'a> Machine<'a> {
    pub fn new(pickle: &'a [u8]) -> Self {
        Self {
            reader: PickleReader::new(pickle),
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        }
    }

    pub fn push(&mut self, value: Value<'a>) -> Result<(), Stop> {
        let id = Id::try_from(self.values.len()).map_err(|_| "too many values")?;
        self.values.push(value);
        self.stack.push(id);
        Ok(())
    }

    /// The index of the first value above the last mark; instructions that need no mark do not access values below it.
    pub fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    pub fn top(&self) -> Result<Id, Stop> {
        self.stack[self.floor()..].last().copied().ok_or_else(|| TOO_FEW.into())
    }

    pub fn pop(&mut self) -> Result<Id, Stop> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    pub fn pop_to_mark(&mut self) -> Result<Vec<Id>, Stop> {
        let mark = self.marks.pop().ok_or("no mark is open")?;
        Ok(self.stack.split_off(mark))
    }

    pub fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id as usize]
    }

    pub fn value_mut(&mut self, id: Id) -> &mut Value<'a> {
        &mut self.values[id as usize]
    }

    pub fn expect_text(&self, id: Id) -> Result<&'a str, Stop> {
        match self.value(id) {
            Value::Text(text) => Ok(text),
            other => Err(format!("expected a string, found {}", other.kind()).into()),
        }
    }

    pub fn expect_integer(&self, id: Id) -> Result<i64, Stop> {
        match self.value(id) {
            Value::Int(number) => Ok(*number),
            other => Err(format!("expected an integer, found {}", other.kind()).into()),
        }
    }

    pub fn expect_tuple(&self, id: Id) -> Result<&[Id], Stop> {
        match self.value(id) {
            Value::Tuple(items) => Ok(items),
            other => Err(format!("expected a tuple, found {}", other.kind()).into()),
        }
    }

    pub fn dimensions(&self, id: Id) -> Result<Vec<i64>, Stop> {
        let items = self.expect_tuple(id)?;
        if items.len() > MOST_DIMENSIONS {
            return Err(
                format!("a tensor of {} dimensions exceeds the maximum of {MOST_DIMENSIONS}", items.len()).into()
            );
        }
        items.iter().map(|&item| self.expect_integer(item)).collect()
    }
}

/// Why the current instruction failed.
pub type Reason = std::borrow::Cow<'static, str>;

/// Bytes and a position in them.
pub struct PickleReader<'a> {
    bytes: &'a [u8],
    pub position: usize,
}

impl<'a> PickleReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Returns true if every byte was read.
    pub fn is_at_end(&self) -> bool {
        self.position == self.bytes.len()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Reason> {
        let taken =
            self.bytes[self.position..].get(..count).ok_or("the pickle ends in the middle of an instruction")?;
        self.position += count;
        Ok(taken)
    }

    /// The next `N` bytes, as for `from_le_bytes`.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Reason> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub fn byte(&mut self) -> Result<u8, Reason> {
        Ok(self.array::<1>()?[0])
    }

    /// A string of the given length.
    pub fn text(&mut self, length: usize) -> Result<&'a str, Reason> {
        std::str::from_utf8(self.take(length)?).map_err(|_| "a string is not UTF-8".into())
    }

    /// A string up to the end of the line.
    pub fn line(&mut self) -> Result<&'a str, Reason> {
        let length = self.bytes[self.position..].iter().position(|&b| b == b'\n').ok_or("a name has no end of line")?;
        let line = self.text(length)?;
        self.position += 1;
        Ok(line)
    }
}
