//! The state of the machine that runs a pickle, and what its instructions do to the stack.

use super::reader::{Fault, Reader};
use super::value::{Id, Value};
use std::collections::HashMap;

/// No weight has more; the bound keeps one long shape from being copied into many tensors.
const MOST_DIMENSIONS: usize = 8;

pub const TOO_FEW: &str = "an instruction finds too few values";

/// Why the machine stops before the pickle's end.
pub enum Stop {
    Fault(Fault),
    /// A function or class that is not allowed.
    Global(String),
}

impl<T: Into<Fault>> From<T> for Stop {
    fn from(reason: T) -> Self {
        Self::Fault(reason.into())
    }
}

/// What the instructions read and change.
pub struct Machine<'a> {
    pub reader: Reader<'a>,
    pub values: Vec<Value<'a>>,
    pub stack: Vec<Id>,
    /// How long the stack was at each MARK that is still open.
    pub marks: Vec<usize>,
    pub memo: HashMap<u32, Id>,
}

impl<'a> Machine<'a> {
    pub fn new(pickle: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(pickle),
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

    /// Where the values above the last mark begin; instructions that want no mark do not reach below it.
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

    pub fn text_of(&self, id: Id) -> Result<&'a str, Stop> {
        match self.value(id) {
            Value::Text(text) => Ok(text),
            other => Err(format!("{} instead of a text", other.kind()).into()),
        }
    }

    pub fn integer_of(&self, id: Id) -> Result<i64, Stop> {
        match self.value(id) {
            Value::Int(number) => Ok(*number),
            other => Err(format!("{} instead of an integer", other.kind()).into()),
        }
    }

    pub fn items(&self, id: Id) -> Result<&[Id], Stop> {
        match self.value(id) {
            Value::Tuple(items) => Ok(items),
            other => Err(format!("{} instead of a tuple", other.kind()).into()),
        }
    }

    pub fn dimensions(&self, id: Id) -> Result<Vec<i64>, Stop> {
        let items = self.items(id)?;
        if items.len() > MOST_DIMENSIONS {
            return Err(format!("a tensor of {} dimensions", items.len()).into());
        }
        items.iter().map(|&item| self.integer_of(item)).collect()
    }
}
