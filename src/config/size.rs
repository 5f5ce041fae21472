//! Sizes and durations as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes. Written as a whole number or as a string with a unit: `"256MiB"`, `"1 GB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

/// The units with their bytes, larger before smaller.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// The units with their milliseconds.
const DURATION_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

impl ByteSize {
    /// So many bytes.
    #[must_use]
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// So many times 2^20 bytes.
    #[must_use]
    pub const fn mebibytes(mebibytes: u32) -> Self {
        Self((mebibytes as u64) << 20)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        with_unit(text, &SIZE_UNITS).map(Self).map_err(|problem| match problem {
            Problem::Shape => {
                format!(
                    "expected a number of bytes or a whole number with B, KB, KiB, MB, MiB, GB or GiB, got {text:?}"
                )
            }
            Problem::TooLarge => format!("{text:?} is more than can be counted"),
        })
    }
}

impl fmt::Display for ByteSize {
    /// In the largest unit of a power of 1024 that leaves a whole number.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut binary = SIZE_UNITS.iter().filter(|(_, bytes)| bytes.is_power_of_two());
        match binary.find(|(_, bytes)| self.0 >= *bytes && self.0.is_multiple_of(*bytes)) {
            Some((unit, bytes)) => write!(formatter, "{}{unit}", self.0 / bytes),
            None => write!(formatter, "{}B", self.0),
        }
    }
}

/// A duration written with a unit: `"500ms"`, `"60s"`, `"2m"`, `"1h"`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    with_unit(text, &DURATION_UNITS).map(Duration::from_millis).map_err(|problem| match problem {
        Problem::Shape => format!("expected a number of seconds or a whole number with ms, s, m or h, got {text:?}"),
        Problem::TooLarge => format!("{text:?} is more than can be counted"),
    })
}

enum Problem {
    Shape,
    TooLarge,
}

/// A whole number times its unit. Space between the two is allowed, a sign or a fraction is not.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Result<u64, Problem> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit).ok_or(Problem::Shape)?;
    if number.is_empty() {
        return Err(Problem::Shape);
    }
    let number: u64 = number.parse().map_err(|_| Problem::TooLarge)?;
    number.checked_mul(*factor).ok_or(Problem::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_units() {
        let cases = [
            ("0B", 0),
            ("7B", 7),
            ("3KB", 3_000),
            ("3KiB", 3_072),
            ("32MiB", 33_554_432),
            ("32MB", 32_000_000),
            ("2GB", 2_000_000_000),
            (" 2 GiB ", 2_147_483_648),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(ByteSize::bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn sizes_refused() {
        for text in ["", "12", "MiB", "-1MiB", "+1MiB", "1.5GiB", "1mib", "1TB", "1 M iB", "٣B"] {
            let problem = text.parse::<ByteSize>().unwrap_err();
            assert!(problem.contains("KiB") && problem.contains(&format!("{text:?}")), "{problem}");
        }
        for text in ["99999999999999999999B", "18446744073709551615GiB"] {
            let problem = text.parse::<ByteSize>().unwrap_err();
            assert!(problem.contains("more than can be counted"), "{problem}");
        }
    }

    #[test]
    fn sizes_are_shown_as_they_may_be_written() {
        for text in ["0B", "1000B", "1KiB", "1536B", "256MiB", "3GiB", "1025MiB"] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!(size.to_string().parse(), Ok(size));
        }
        assert_eq!(ByteSize::mebibytes(256).to_string(), "256MiB");
        assert_eq!(ByteSize::bytes(1_000).to_string(), "1000B");
    }

    #[test]
    fn durations_with_units() {
        for (text, milliseconds) in [("500ms", 500), ("60s", 60_000), ("2m", 120_000), ("1 h", 3_600_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "60", "s", "-1s", "1.5s", "1d", "1m30s"] {
            assert!(duration(text).unwrap_err().contains("ms, s, m or h"), "{text}");
        }
        assert!(duration("18446744073709551615h").unwrap_err().contains("more than can be counted"));
    }
}
