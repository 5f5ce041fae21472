//! One JSON array of objects, read an element at a time.

use super::error::ReadError;
use super::input::InputFile;
use super::ndjson::{BYTE_ORDER_MARK, fields};
use super::place::RecordPlace;
use super::record::Record;
use crate::wire::without_place;
use serde::Deserialize;
use serde_json::{Deserializer, Value};
use std::io::{BufRead, Read};
use std::iter::from_fn;
use std::sync::atomic::Ordering::Relaxed;

/// The elements of an array, each of at most `limit` bytes.
pub fn read(mut input: InputFile, limit: u64) -> Result<impl Iterator<Item = Result<Record, ReadError>>, ReadError> {
    if input.peek(BYTE_ORDER_MARK.len())?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    let first = next_byte(&mut input)?;
    if first != Some(b'[') {
        let begins = first.map_or("nothing".to_owned(), |byte| format!("{:?}", char::from(byte)));
        return Err(ReadError::Unfit(format!("a JSON array begins with '[', and this file with {begins}")));
    }
    input.consume(1);
    let counter = input.counter();
    let (mut number, mut ended) = (0, false);
    Ok(from_fn(move || {
        if ended {
            return None;
        }
        let next = next_element(&mut input, number == 0, limit);
        number += 1;
        let place = RecordPlace::Element(number);
        // After a fault there is no telling where the next element begins.
        ended = !matches!(next, Ok(Some(_)));
        match next {
            Ok(None) => None,
            Ok(Some(value)) => Some(Ok(Record { place, position: counter.load(Relaxed), fields: fields(value) })),
            Err(fault) => Some(Err(ReadError::Broken { place, fault })),
        }
    }))
}

/// The next element; none at the end of the array, after which nothing may follow.
fn next_element(input: &mut InputFile, is_first: bool, limit: u64) -> Result<Option<Value>, String> {
    let cut_off = "the file ends in the middle of the array";
    let unreadable = |error: std::io::Error| error.to_string();
    let byte = next_byte(input).map_err(unreadable)?.ok_or(cut_off)?;
    if byte == b']' {
        input.consume(1);
        return match next_byte(input).map_err(unreadable)? {
            None => Ok(None),
            Some(_) => Err("something follows the end of the array".to_owned()),
        };
    }
    if !is_first {
        if byte != b',' {
            return Err(format!("expected ',' or ']', found {:?}", char::from(byte)));
        }
        input.consume(1);
        next_byte(input).map_err(unreadable)?.ok_or(cut_off)?;
    }
    if !matches!(input.fill_buf().map_err(unreadable)?.first(), Some(b'{' | b'"')) {
        return Err("expected an object with `text`".to_owned());
    }
    let mut element = Read::take(input, limit);
    // An object or a string ends with its last byte: nothing that follows it is read.
    let value = Value::deserialize(&mut Deserializer::from_reader(&mut element));
    value.map(Some).map_err(|error| match (error.is_eof(), element.limit()) {
        (true, 0) => format!("the element is longer than {limit} bytes (server.body_limit)"),
        (true, _) => cut_off.to_owned(),
        (false, _) => format!("not JSON: {}", without_place(&error)),
    })
}

/// The next byte that is no white space, without taking it.
fn next_byte(input: &mut InputFile) -> std::io::Result<Option<u8>> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let next = bytes.get(blank).copied();
        input.consume(blank);
        if next.is_some() {
            return Ok(next);
        }
    }
}
