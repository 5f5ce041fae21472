//! The interpreter of pickles, with the few instructions that `torch.save` needs for tensors (protocols 2 to 4). Every
//! instruction takes at least one byte of the file and creates at most one value, so memory is bounded.

use super::error::{TorchBinError, escaped};
use super::machine::{Machine, Stop, TOO_FEW};
use super::value::{Global, Id, TorchStorage, TorchView, Value, known};

/// The result of a pickle.
#[derive(Debug)]
pub struct Pickle<'a> {
    values: Vec<Value<'a>>,
    pub root: Id,
}

impl<'a> Pickle<'a> {
    pub fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id as usize]
    }
}

/// Interprets a pickle to its end.
pub fn load(bytes: &[u8]) -> Result<Pickle<'_>, TorchBinError> {
    let mut machine = Machine::new(bytes);
    loop {
        let position = machine.reader.position;
        let error = |stop| match stop {
            Stop::Reason(reason) => TorchBinError::Pickle { byte: position, reason: reason.into_owned() },
            Stop::Global(name) => TorchBinError::Global(name),
        };
        if let Some(root) = machine.step().map_err(error)? {
            return Ok(Pickle { values: machine.values, root });
        }
    }
}

impl<'a> Machine<'a> {
    /// Executes one instruction; returns the value of the whole pickle after the last one.
    fn step(&mut self) -> Result<Option<Id>, Stop> {
        match self.reader.byte()? {
            b'.' => return self.stop().map(Some),
            b'(' => self.marks.push(self.stack.len()),
            0x80 => self.protocol()?,
            0x95 => drop(self.reader.array::<8>()?),
            b'N' => self.push(Value::None)?,
            0x88 | 0x89 => self.push(Value::Bool)?,
            b'G' => {
                self.reader.array::<8>()?;
                self.push(Value::Float)?;
            }
            code @ (b'J' | b'K' | b'M' | 0x8a) => self.integer(code)?,
            code @ (b'X' | 0x8c) => self.text(code)?,
            code @ (b'c' | 0x93) => self.global(code)?,
            code @ (b'q' | b'r' | 0x94) => self.memorize(code)?,
            code @ (b'h' | b'j') => self.recall(code)?,
            b')' => self.push(Value::Tuple(Box::default()))?,
            b']' => self.push(Value::List(Vec::new()))?,
            b'}' => self.push(Value::Dict(Vec::new()))?,
            code @ 0x85..=0x87 => self.short_tuple(usize::from(code - 0x84))?,
            code @ (b't' | b'l' | b'd') => self.collection(code)?,
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' => {
                let items = self.pop_to_mark()?;
                self.append(&items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set(&items)?;
            }
            b'Q' => self.storage()?,
            b'R' => self.reduce()?,
            b'b' => self.build()?,
            other => return Err(format!("instruction 0x{other:02x} is not supported in a file of weights").into()),
        }
        Ok(None)
    }

    fn stop(&mut self) -> Result<Id, Stop> {
        let root = self.pop()?;
        if self.stack.is_empty() && self.marks.is_empty() && self.reader.is_at_end() {
            return Ok(root);
        }
        Err("the pickle continues after its end, or leaves values on the stack".into())
    }

    fn protocol(&mut self) -> Result<(), Stop> {
        match self.reader.byte()? {
            2..=4 => Ok(()),
            other => Err(format!("pickle protocol {other} is not supported; supported are 2 to 4").into()),
        }
    }

    fn integer(&mut self, code: u8) -> Result<(), Stop> {
        let number = match code {
            b'J' => i32::from_le_bytes(self.reader.array()?).into(),
            b'K' => self.reader.byte()?.into(),
            b'M' => u16::from_le_bytes(self.reader.array()?).into(),
            _ => self.long()?,
        };
        self.push(Value::Int(number))
    }

    /// An integer of up to eight bytes in two's complement; no shape needs more.
    fn long(&mut self) -> Result<i64, Stop> {
        let length = usize::from(self.reader.byte()?);
        if length > 8 {
            return Err(format!("an integer of {length} bytes exceeds the maximum of 8").into());
        }
        let bytes = self.reader.take(length)?;
        let filler = if bytes.last().is_some_and(|&b| b >= 0x80) { 0xff } else { 0 };
        let mut wide = [filler; 8];
        wide[..length].copy_from_slice(bytes);
        Ok(i64::from_le_bytes(wide))
    }

    fn text(&mut self, code: u8) -> Result<(), Stop> {
        let length = match code {
            b'X' => u32::from_le_bytes(self.reader.array()?) as usize,
            _ => self.reader.byte()?.into(),
        };
        let text = self.reader.text(length)?;
        self.push(Value::Text(text))
    }

    fn global(&mut self, code: u8) -> Result<(), Stop> {
        let (module, name) = match code {
            b'c' => (self.reader.line()?, self.reader.line()?),
            _ => {
                let (name, module) = (self.pop()?, self.pop()?);
                (self.expect_text(module)?, self.expect_text(name)?)
            }
        };
        let global =
            known(module, name).ok_or_else(|| Stop::Global(format!("{}.{}", escaped(module), escaped(name))))?;
        self.push(Value::Global(global))
    }

    fn memorize(&mut self, code: u8) -> Result<(), Stop> {
        let index = match code {
            b'q' => self.reader.byte()?.into(),
            b'r' => u32::from_le_bytes(self.reader.array()?),
            _ => self.memo.len() as u32,
        };
        let top = self.top()?;
        self.memo.insert(index, top);
        Ok(())
    }

    fn recall(&mut self, code: u8) -> Result<(), Stop> {
        let index = match code {
            b'h' => self.reader.byte()?.into(),
            _ => u32::from_le_bytes(self.reader.array()?),
        };
        let id = *self.memo.get(&index).ok_or_else(|| format!("the memo has no entry {index}"))?;
        self.stack.push(id);
        Ok(())
    }

    fn short_tuple(&mut self, length: usize) -> Result<(), Stop> {
        let floor = self.floor();
        let start = self.stack.len().checked_sub(length).filter(|&start| start >= floor).ok_or(TOO_FEW)?;
        let items = self.stack.split_off(start);
        self.push(Value::Tuple(items.into()))
    }

    /// A tuple, list or dictionary of the values on the stack above the last mark.
    fn collection(&mut self, code: u8) -> Result<(), Stop> {
        let items = self.pop_to_mark()?;
        let value = match code {
            b't' => Value::Tuple(items.into()),
            b'l' => Value::List(items),
            _ => Value::Dict(pairs(&items)?.collect()),
        };
        self.push(value)
    }

    fn append(&mut self, items: &[Id]) -> Result<(), Stop> {
        let top = self.top()?;
        match self.value_mut(top) {
            Value::List(list) => list.extend(items),
            other => return Err(format!("items are appended to {} instead of a list", other.kind()).into()),
        }
        Ok(())
    }

    fn set(&mut self, items: &[Id]) -> Result<(), Stop> {
        let pairs = pairs(items)?;
        let top = self.top()?;
        match self.value_mut(top) {
            Value::Dict(dict) => dict.extend(pairs),
            other => return Err(format!("keys are set on {} instead of a dictionary", other.kind()).into()),
        }
        Ok(())
    }

    /// BINPERSID: the tuple that represents a storage.
    fn storage(&mut self) -> Result<(), Stop> {
        let id = self.pop()?;
        let storage = match self.expect_tuple(id)? {
            &[tag, class, key, _device, count] if matches!(self.value(tag), Value::Text("storage")) => {
                let Value::Global(Global::Storage(dtype)) = *self.value(class) else {
                    return Err("a storage has an unsupported class".into());
                };
                TorchStorage { dtype, key: self.expect_text(key)?, count: self.expect_integer(count)? }
            }
            _ => return Err("a persistent object is not a storage".into()),
        };
        self.push(Value::Storage(Box::new(storage)))
    }

    /// REDUCE: the call of a function; only those of [`Global`] are supported, and each is implemented here.
    fn reduce(&mut self) -> Result<(), Stop> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let arguments = self.expect_tuple(arguments)?;
        let result = match (self.value(function), arguments) {
            (Value::Global(Global::OrderedDict), []) => Value::Dict(Vec::new()),
            (Value::Global(Global::RebuildTensor), &[storage, offset, shape, strides, _gradient, hooks]) => {
                self.no_hooks(hooks)?;
                Value::Tensor(Box::new(self.view(storage, offset, shape, strides)?))
            }
            (Value::Global(Global::RebuildParameter), &[tensor, _gradient, hooks]) => {
                self.no_hooks(hooks)?;
                let Value::Tensor(view) = self.value(tensor) else { return Err("a parameter has no tensor".into()) };
                Value::Tensor(view.clone())
            }
            (Value::Global(global), _) => return Err(format!("a call of {global:?} has unsupported arguments").into()),
            (other, _) => return Err(format!("{} is called", other.kind()).into()),
        };
        self.push(result)
    }

    fn view(&self, storage: Id, offset: Id, shape: Id, strides: Id) -> Result<TorchView<'a>, Stop> {
        let Value::Storage(storage) = self.value(storage) else { return Err("a tensor has no storage".into()) };
        Ok(TorchView {
            storage: TorchStorage::clone(storage),
            offset: self.expect_integer(offset)?,
            shape: self.dimensions(shape)?,
            strides: self.dimensions(strides)?,
        })
    }

    /// Hooks are functions; a saved tensor has none.
    fn no_hooks(&self, hooks: Id) -> Result<(), Stop> {
        match self.value(hooks) {
            Value::Dict(hooks) if hooks.is_empty() => Ok(()),
            _ => Err("a tensor has hooks".into()),
        }
    }

    /// BUILD: sets attributes of the value below. An ordered dictionary may have some (torch's `_metadata`), which do
    /// not affect tensors.
    fn build(&mut self) -> Result<(), Stop> {
        let state = self.pop()?;
        let top = self.top()?;
        match (self.value(top), self.value(state)) {
            (Value::Dict(_), Value::Dict(_)) => Ok(()),
            (other, _) => Err(format!("attributes are set on {}", other.kind()).into()),
        }
    }
}

/// Groups keys with their values.
fn pairs(items: &[Id]) -> Result<impl Iterator<Item = (Id, Id)>, Stop> {
    match items.as_chunks::<2>() {
        (pairs, []) => Ok(pairs.iter().map(|&[key, value]| (key, value))),
        _ => Err("a key has no value".into()),
    }
}
