//! Reading of values that serde alone would read otherwise: sizes and durations with units, `auto`, paths, names.

use super::{DeviceChoice, values};
use bytesize::ByteSize;
use figment::value::magic::RelativePathBuf;
use serde::de::value::{SeqAccessDeserializer, StringDeserializer};
use serde::de::{DeserializeOwned, Error, IntoDeserializer, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use serde_untagged::UntaggedEnumVisitor;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

const A_SIZE: &str = "a number of bytes or a string as in \"256MiB\" (B, KB, KiB, MB, MiB, GB, GiB)";
const A_SIZE_OR_AUTO: &str = "\"auto\", a number of bytes or a string as in \"256MiB\" (B, KB, KiB, MB, MiB, GB, GiB)";
const A_COUNT_OR_AUTO: &str = "\"auto\" or a whole number";
const A_DURATION: &str = "a number of seconds or a whole number with ms, s, m, h or d, as in \"60s\"";

/// One of a few names, which must be a string: derived code would take the number of a variant as well.
pub(super) fn name<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<T, D::Error> {
    let name: StringDeserializer<D::Error> = String::deserialize(deserializer)?.into_deserializer();
    T::deserialize(name)
}

/// As [`name`], for a setting without a default.
pub(super) fn some_name<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    name(deserializer).map(Some)
}

/// A number of bytes: a whole number, or a string with a unit.
pub(super) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
    UntaggedEnumVisitor::new()
        .expecting(A_SIZE)
        .u64(|bytes| Ok(ByteSize::b(bytes)))
        .string(|text| parse_size(text).ok_or_else(|| Error::invalid_value(Unexpected::Str(text), &A_SIZE)))
        .deserialize(deserializer)
}

/// As [`size`], or `"auto"`, which is none.
pub(super) fn size_or_auto<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ByteSize>, D::Error> {
    UntaggedEnumVisitor::new()
        .expecting(A_SIZE_OR_AUTO)
        .u64(|bytes| Ok(Some(ByteSize::b(bytes))))
        .string(|text| match (text, parse_size(text)) {
            ("auto", _) => Ok(None),
            (_, None) => Err(Error::invalid_value(Unexpected::Str(text), &A_SIZE_OR_AUTO)),
            (_, size) => Ok(size),
        })
        .deserialize(deserializer)
}

/// A whole number, or `"auto"`, which is none.
pub(super) fn count_or_auto<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let too_large = |count| Error::invalid_value(Unexpected::Unsigned(count), &A_COUNT_OR_AUTO);
    UntaggedEnumVisitor::new()
        .expecting(A_COUNT_OR_AUTO)
        .u64(|count| usize::try_from(count).map(Some).map_err(|_| too_large(count)))
        .string(|text| match text {
            "auto" => Ok(None),
            _ => Err(Error::invalid_value(Unexpected::Str(text), &A_COUNT_OR_AUTO)),
        })
        .deserialize(deserializer)
}

/// A whole number of seconds, or a string with a unit.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    UntaggedEnumVisitor::new()
        .expecting(A_DURATION)
        .u64(|seconds| Ok(Duration::from_secs(seconds)))
        .string(|text| parse_duration(text).ok_or_else(|| Error::invalid_value(Unexpected::Str(text), &A_DURATION)))
        .deserialize(deserializer)
}

/// As [`duration()`], for a setting that need not be there.
pub(super) fn optional_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

/// One device, or a list of them. By hand, since serde-untagged would turn a fault inside the list into mere text.
pub(super) fn devices<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DeviceChoice>, D::Error> {
    struct DevicesVisitor;

    impl<'de> Visitor<'de> for DevicesVisitor {
        type Value = Vec<DeviceChoice>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a string or an array of strings")
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
            DeviceChoice::deserialize(name.into_deserializer()).map(|device| vec![device])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, devices: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(devices))
        }
    }

    deserializer.deserialize_any(DevicesVisitor)
}

/// A path as it was written, which knows the file that it was written in.
pub(super) fn relative_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RelativePathBuf, D::Error> {
    let path = RelativePathBuf::deserialize(deserializer)?;
    if path.original().as_os_str().is_empty() {
        return Err(D::Error::invalid_value(Unexpected::Str(""), &"a path"));
    }
    Ok(path)
}

/// A path. A relative one from the file counts from the file's directory.
pub(super) fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    relative_path(deserializer).map(|path| path.relative())
}

/// As [`path()`], for a setting that need not be there.
pub(super) fn optional_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    path(deserializer).map(Some)
}

/// Parses a size with bytesize, with or without space around it. It gives the largest number for all that are larger, and
/// that is no size.
fn parse_size(text: &str) -> Option<ByteSize> {
    text.trim().parse().ok().filter(|size: &ByteSize| size.as_u64() < u64::MAX)
}

/// A whole number and its unit, perhaps with space between the two.
fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|character: char| !character.is_ascii_digit())?);
    let milliseconds: u64 = match unit.trim_start() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 24 * 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(milliseconds).map(Duration::from_millis)
}

/// Server of a model that another process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ServedKind {
    /// Another process of this program.
    PdrAudit,
    Vllm,
    Sglang,
    /// A server with OpenAI's route for completions that echoes prompts with their log-probabilities.
    Openai,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadPolicy {
    /// At start; the service is not ready before.
    Eager,
    /// By the first request.
    Lazy,
}

/// Where the layers of a model are while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::EnumString, strum::VariantNames)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum LayersChoice {
    /// In memory, or on disk where the model does not fit.
    Auto,
    /// In memory.
    Resident,
    /// On disk: every forward pass reads them.
    Stream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

const A_STORE: &str = "`sqlite://FILE` or `postgres://USER@HOST/DATABASE`";

/// Where the store is.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file of SQLite; a relative one from the configuration file counts from that file's directory.
    Sqlite(PathBuf),
    /// A database of PostgreSQL, as a URL that may hold a password.
    Postgres(String),
}

impl fmt::Debug for StoreUrl {
    /// Without the user, the password and what else the URL says.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => formatter.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => formatter.write_str("Postgres(..)"),
        }
    }
}

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = values::relative_path(deserializer)?;
        let url = path.original().to_str().unwrap_or_default();
        match url.split_once("://") {
            Some(("sqlite", file)) if !file.is_empty() => {
                let directory = path.metadata_path().and_then(|file| file.parent());
                Ok(Self::Sqlite(directory.map_or_else(|| file.into(), |directory| directory.join(file))))
            }
            Some(("postgres" | "postgresql", rest)) if !rest.is_empty() => Ok(Self::Postgres(url.to_owned())),
            // Not what was given: it may hold a password.
            _ => Err(D::Error::invalid_value(Unexpected::Other("another string"), &A_STORE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units() {
        let cases = [
            ("0B", 0),
            ("7B", 7),
            ("7", 7),
            ("3KB", 3_000),
            ("3KiB", 3_072),
            ("1.5KiB", 1_536),
            ("32MiB", 33_554_432),
            ("32mib", 33_554_432),
            ("32MB", 32_000_000),
            ("2GB", 2_000_000_000),
            ("1TB", 1_000_000_000_000),
            (" 2 GiB ", 2_147_483_648),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Some(ByteSize::b(bytes)), "{text}");
        }
    }

    #[test]
    fn sizes_refused() {
        for text in
            ["", "MiB", "-1MiB", "+1MiB", "1 M iB", "٣B", "1 day", "99999999999999999999B", "18446744073709551615GiB"]
        {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }

    #[test]
    fn durations_with_units() {
        for (text, milliseconds) in
            [("500ms", 500), ("60s", 60_000), ("2m", 120_000), (" 1 h ", 3_600_000), ("2d", 172_800_000)]
        {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "60", "s", "-1s", "1.5s", "1w", "1m30s", "18446744073709551615h", "99999999999999999999s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
