//! The metadata of a GGUF file: values of a few types under names.

use super::cursor::Cursor;
use super::error::GgufError;
use std::collections::BTreeMap;

/// The value types of the format by their numbers.
const U8: u32 = 0;
const I8: u32 = 1;
const U16: u32 = 2;
const I16: u32 = 3;
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
const U64: u32 = 10;
const I64: u32 = 11;
const F64: u32 = 12;

/// One value. Arrays stay in the file until somebody reads them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetadataValue<'a> {
    Integer(i128),
    /// Finite. One stored in f32 is the shortest decimal number that rounds to it, as its author wrote it: 1e-5 instead of
    /// 0.00000999999974737875.
    Float(f64),
    Flag(bool),
    Text(&'a str),
    Array(MetadataArray<'a>),
}

/// An array whose elements are verified to be within the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetadataArray<'a> {
    kind: u32,
    count: usize,
    elements: Cursor<'a>,
}

/// All values by their keys.
#[derive(Clone, Debug, Default)]
pub struct Metadata<'a>(BTreeMap<&'a str, MetadataValue<'a>>);

impl<'a> Metadata<'a> {
    /// Reads `count` values.
    pub fn read(cursor: &mut Cursor<'a>, count: u64) -> Result<Self, GgufError> {
        let mut values = BTreeMap::new();
        for _ in 0..count {
            let key = cursor.text()?;
            let kind = cursor.u32()?;
            let value = MetadataValue::read(cursor, kind).map_err(|reason| GgufError::key(key, reason))?;
            if values.insert(key, value).is_some() {
                return Err(GgufError::key(key, "is listed twice"));
            }
        }
        Ok(Self(values))
    }

    pub fn get(&self, key: &str) -> Option<MetadataValue<'a>> {
        self.0.get(key).copied()
    }

    pub fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.0.keys().copied()
    }

    pub fn text(&self, key: &str) -> Result<Option<&'a str>, GgufError> {
        self.typed(key, "a string", |value| if let MetadataValue::Text(text) = value { Some(text) } else { None })
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.typed(key, "true or false", |value| if let MetadataValue::Flag(flag) = value { Some(flag) } else { None })
    }

    /// A non-negative integer.
    pub fn count(&self, key: &str) -> Result<Option<usize>, GgufError> {
        self.typed(key, "a non-negative integer", |value| match value {
            MetadataValue::Integer(number) => usize::try_from(number).ok(),
            _ => None,
        })
    }

    /// A number, whole or not.
    pub fn number(&self, key: &str) -> Result<Option<f64>, GgufError> {
        self.typed(key, "a number", |value| match value {
            MetadataValue::Integer(number) => Some(number as f64),
            MetadataValue::Float(number) => Some(number),
            _ => None,
        })
    }

    pub fn array(&self, key: &str) -> Result<Option<MetadataArray<'a>>, GgufError> {
        self.typed(key, "an array", |value| if let MetadataValue::Array(array) = value { Some(array) } else { None })
    }

    /// The strings of an array.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<&'a str>>, GgufError> {
        let texts = |array: MetadataArray<'a>| array.texts().map_err(|reason| GgufError::key(key, reason));
        self.array(key)?.map(texts).transpose()
    }

    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(MetadataValue<'a>) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let wrong = || GgufError::key(key, format!("expected {expected}, found {}", value.kind()));
        read(value).map(Some).ok_or_else(wrong)
    }
}

impl<'a> MetadataValue<'a> {
    fn read(cursor: &mut Cursor<'a>, kind: u32) -> Result<Self, GgufError> {
        let float = |number: f64| match number.is_finite() {
            true => Ok(Self::Float(number)),
            false => Err(GgufError::new(format!("{number} is not a number"))),
        };
        Ok(match kind {
            U8 => Self::Integer(u8::from_le_bytes(cursor.array()?).into()),
            I8 => Self::Integer(i8::from_le_bytes(cursor.array()?).into()),
            U16 => Self::Integer(u16::from_le_bytes(cursor.array()?).into()),
            I16 => Self::Integer(i16::from_le_bytes(cursor.array()?).into()),
            U32 => Self::Integer(cursor.u32()?.into()),
            I32 => Self::Integer(i32::from_le_bytes(cursor.array()?).into()),
            U64 => Self::Integer(cursor.u64()?.into()),
            I64 => Self::Integer(i64::from_le_bytes(cursor.array()?).into()),
            F32 => float(shortest(f32::from_le_bytes(cursor.array()?)))?,
            F64 => float(f64::from_le_bytes(cursor.array()?))?,
            BOOL => match cursor.array()? {
                [0] => Self::Flag(false),
                [1] => Self::Flag(true),
                [other] => return Err(GgufError::new(format!("expected true or false, found the byte {other}"))),
            },
            TEXT => Self::Text(cursor.text()?),
            ARRAY => Self::Array(MetadataArray::read(cursor)?),
            other => return Err(GgufError::new(format!("type {other} is unknown"))),
        })
    }

    /// The kind of the value, for messages.
    pub fn kind(&self) -> String {
        match self {
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Text(_) => "a string".to_owned(),
            Self::Array(array) => format!("an array of {} elements", array.count),
        }
    }
}

/// The shortest decimal number that rounds to this one in f32.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| number.into())
}

impl<'a> MetadataArray<'a> {
    /// Skips the elements: those of a fixed size at once, and strings one by one.
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, GgufError> {
        let (kind, count) = (cursor.u32()?, cursor.u64()?);
        let elements = *cursor;
        let size = match kind {
            U8 | I8 | BOOL => 1,
            U16 | I16 => 2,
            U32 | I32 | F32 => 4,
            U64 | I64 | F64 => 8,
            TEXT => 0,
            ARRAY => return Err(GgufError::new("arrays of arrays are not supported")),
            other => return Err(GgufError::new(format!("elements of type {other} are unknown"))),
        };
        if kind == TEXT {
            for _ in 0..count {
                cursor.skip_text()?;
            }
        } else {
            cursor.take(count.saturating_mul(size))?;
        }
        let count = usize::try_from(count).map_err(|_| GgufError::new(format!("has {count} elements")))?;
        Ok(Self { kind, count, elements })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    fn texts(self) -> Result<Vec<&'a str>, GgufError> {
        if self.kind != TEXT {
            return Err(GgufError::new("expected an array of strings"));
        }
        let mut elements = self.elements;
        (0..self.count).map(|_| elements.text()).collect()
    }

    /// The elements as f32.
    pub fn floats(self) -> Result<Vec<f32>, GgufError> {
        if self.kind != F32 {
            return Err(GgufError::new("expected an array of numbers in single precision"));
        }
        let mut elements = self.elements;
        (0..self.count).map(|_| Ok(f32::from_le_bytes(elements.array()?))).collect()
    }

    /// The elements as integers.
    pub fn integers(self) -> Result<Vec<i128>, GgufError> {
        let mut elements = self.elements;
        let integer = |_| match MetadataValue::read(&mut elements, self.kind)? {
            MetadataValue::Integer(number) => Ok(number),
            _ => Err(GgufError::new("expected an array of integers")),
        };
        (0..self.count).map(integer).collect()
    }
}
