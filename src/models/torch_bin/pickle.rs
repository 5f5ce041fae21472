//! The machine that a pickle is a program for, with the few instructions that `torch.save` needs for tensors (protocols 2
//! to 4). Every instruction takes at least one byte of the file and makes at most one value, so memory is bounded.

use super::globals::{Global, known};
use super::machine::{Machine, Stop, TOO_FEW};
use super::value::{Id, Storage, Value, View};
use super::{TorchBinError, shown};

/// What a pickle made.
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

/// Runs a pickle to its end.
pub fn load(bytes: &[u8]) -> Result<Pickle<'_>, TorchBinError> {
    let mut machine = Machine::new(bytes);
    loop {
        let at = machine.reader.at;
        let fault = |stop| match stop {
            Stop::Fault(reason) => TorchBinError::Pickle { at, reason: reason.into_owned() },
            Stop::Global(name) => TorchBinError::Global(name),
        };
        if let Some(root) = machine.step().map_err(fault)? {
            return Ok(Pickle { values: machine.values, root });
        }
    }
}

impl<'a> Machine<'a> {
    /// Does one instruction; the value of the whole pickle after the last.
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
            other => return Err(format!("instruction 0x{other:02x} is none that tensors need").into()),
        }
        Ok(None)
    }

    fn stop(&mut self) -> Result<Id, Stop> {
        let root = self.pop()?;
        if self.stack.is_empty() && self.marks.is_empty() && self.reader.at_end() {
            return Ok(root);
        }
        Err("the pickle's end is not its last instruction, or leaves values behind".into())
    }

    fn protocol(&mut self) -> Result<(), Stop> {
        match self.reader.byte()? {
            2..=4 => Ok(()),
            other => Err(format!("protocol {other} of pickle; 2 to 4 are read").into()),
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

    /// An integer of up to eight bytes in two's complement; more belong to no shape.
    fn long(&mut self) -> Result<i64, Stop> {
        let length = usize::from(self.reader.byte()?);
        if length > 8 {
            return Err(format!("an integer of {length} bytes").into());
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
                (self.text_of(module)?, self.text_of(name)?)
            }
        };
        let global = known(module, name).ok_or_else(|| Stop::Global(format!("{}.{}", shown(module), shown(name))))?;
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
        let id = *self.memo.get(&index).ok_or_else(|| format!("nothing was memorized as {index}"))?;
        self.stack.push(id);
        Ok(())
    }

    fn short_tuple(&mut self, length: usize) -> Result<(), Stop> {
        let floor = self.floor();
        let start = self.stack.len().checked_sub(length).filter(|&start| start >= floor).ok_or(TOO_FEW)?;
        let items = self.stack.split_off(start);
        self.push(Value::Tuple(items.into()))
    }

    /// A tuple, list or dictionary of what is on the stack above the last mark.
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
            other => return Err(format!("items for {}, which is no list", other.kind()).into()),
        }
        Ok(())
    }

    fn set(&mut self, items: &[Id]) -> Result<(), Stop> {
        let pairs = pairs(items)?;
        let top = self.top()?;
        match self.value_mut(top) {
            Value::Dict(dict) => dict.extend(pairs),
            other => return Err(format!("keys for {}, which is no dictionary", other.kind()).into()),
        }
        Ok(())
    }

    /// BINPERSID: the tuple that stands for a storage.
    fn storage(&mut self) -> Result<(), Stop> {
        let id = self.pop()?;
        let storage = match self.items(id)? {
            &[tag, class, key, _device, count] if matches!(self.value(tag), Value::Text("storage")) => {
                let Value::Global(Global::Storage(dtype)) = *self.value(class) else {
                    return Err("a storage whose class is no storage".into());
                };
                Storage { dtype, key: self.text_of(key)?, count: self.integer_of(count)? }
            }
            _ => return Err("a persistent object that is no storage".into()),
        };
        self.push(Value::Storage(Box::new(storage)))
    }

    /// REDUCE: the call of a function; only those of [`Global`] are known, and each is a few lines here.
    fn reduce(&mut self) -> Result<(), Stop> {
        let (arguments, function) = (self.pop()?, self.pop()?);
        let arguments = self.items(arguments)?;
        let result = match (self.value(function), arguments) {
            (Value::Global(Global::OrderedDict), []) => Value::Dict(Vec::new()),
            (Value::Global(Global::RebuildTensor), &[storage, offset, shape, strides, _gradient, hooks]) => {
                self.no_hooks(hooks)?;
                Value::Tensor(Box::new(self.view(storage, offset, shape, strides)?))
            }
            (Value::Global(Global::RebuildParameter), &[tensor, _gradient, hooks]) => {
                self.no_hooks(hooks)?;
                let Value::Tensor(view) = self.value(tensor) else { return Err("a parameter without a tensor".into()) };
                Value::Tensor(view.clone())
            }
            (Value::Global(global), _) => return Err(format!("a call of {global:?} in an unknown form").into()),
            (other, _) => return Err(format!("a call of {}", other.kind()).into()),
        };
        self.push(result)
    }

    fn view(&self, storage: Id, offset: Id, shape: Id, strides: Id) -> Result<View<'a>, Stop> {
        let Value::Storage(storage) = self.value(storage) else { return Err("a tensor without a storage".into()) };
        Ok(View {
            storage: Storage::clone(storage),
            offset: self.integer_of(offset)?,
            shape: self.dimensions(shape)?,
            strides: self.dimensions(strides)?,
        })
    }

    /// Hooks are functions; a saved tensor has none.
    fn no_hooks(&self, hooks: Id) -> Result<(), Stop> {
        match self.value(hooks) {
            Value::Dict(hooks) if hooks.is_empty() => Ok(()),
            _ => Err("a tensor with hooks".into()),
        }
    }

    /// BUILD: attributes for the value below. An ordered dictionary may have some (torch's `_metadata`), which no tensor
    /// depends on.
    fn build(&mut self) -> Result<(), Stop> {
        let state = self.pop()?;
        let top = self.top()?;
        match (self.value(top), self.value(state)) {
            (Value::Dict(_), Value::Dict(_)) => Ok(()),
            (other, _) => Err(format!("attributes for {}", other.kind()).into()),
        }
    }
}

/// Keys with their values.
fn pairs(items: &[Id]) -> Result<impl Iterator<Item = (Id, Id)>, Stop> {
    match items.as_chunks::<2>() {
        (pairs, []) => Ok(pairs.iter().map(|&[key, value]| (key, value))),
        _ => Err("a key without a value".into()),
    }
}
