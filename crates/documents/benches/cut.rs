//! Times the reading and cutting of a folder of books on one thread:
//!
//!     cargo bench -p pdr-audit-documents --bench cut -- [--books 100] [--words 100000]
//!
//! Prints one JSON object for each cut: megabytes of text a second, the best of three, and the most memory that the process has held, in
//! bytes (Linux). The books have paragraphs of all lengths, wrapped lines, quotations and some characters beyond ASCII.

use documents::{Cut, CutAt, ReadLimits, open, passages};
use std::path::Path;
use std::time::Instant;

const RUNS: usize = 3;
const WIDTH: usize = 72;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let option = |name: &str, default: u64| -> Result<u64, std::num::ParseIntError> {
        let value = arguments.iter().skip_while(|argument| *argument != name).nth(1);
        value.map_or(Ok(default), |value| value.parse())
    };
    let folder = tempfile::tempdir()?;
    let (books, words) = (option("--books", 100)?, option("--words", 100_000)?);
    let mut bytes = 0;
    for number in 0..books {
        let book = book(number, words);
        bytes += book.len();
        std::fs::write(folder.path().join(format!("{number:04}.txt")), book)?;
    }
    let paragraphs = Cut::default();
    for cut in [paragraphs, Cut { at: CutAt::Sentence, ..paragraphs }, Cut { overlap: 32, ..paragraphs }] {
        measure(folder.path(), bytes, cut)?;
    }
    Ok(())
}

fn measure(folder: &Path, bytes: usize, cut: Cut) -> Result<(), Box<dyn std::error::Error>> {
    let mut seconds = f64::INFINITY;
    let mut count = 0;
    for _ in 0..RUNS {
        let start = Instant::now();
        let mut stream = passages(open(&[folder.to_owned()], ReadLimits::default())?, cut)?;
        stream.by_ref().try_for_each(|passage| passage.map(drop))?;
        count = stream.tally().passages;
        seconds = seconds.min(start.elapsed().as_secs_f64());
    }
    let line = serde_json::json!({
        "cut": cut,
        "megabytes": bytes as f64 / 1e6,
        "passages": count,
        "megabytes_per_second": (bytes as f64 / 1e6 / seconds).round(),
        "peak_memory": peak_memory(),
    });
    println!("{line}");
    Ok(())
}

/// The most memory that this process has held, in bytes.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// A book of pseudo-random words.
fn book(seed: u64, words: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = move |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % bound
    };
    let syllables = [
        "an", "ber", "cor", "del", "en", "fal", "gor", "hi", "il", "jo", "ka", "lu", "moné", "na", "or", "pe", "qui",
        "ro",
    ];
    let mut text = String::new();
    let (mut column, mut left, mut is_first) = (0, 0, true);
    for _ in 0..words {
        let start = text.len();
        for _ in 0..=draw(3) {
            text.push_str(syllables[draw(syllables.len() as u64) as usize]);
        }
        if std::mem::take(&mut is_first) {
            text[start..=start].make_ascii_uppercase();
        }
        column += text.len() - start + 1;
        match draw(60) {
            0..4 => {
                text.push('.');
                is_first = true;
            }
            4..8 => text.push(','),
            8 => text.push('’'),
            9 => text.push('—'),
            _ => {}
        }
        if left == 0 {
            // A tenth of the paragraphs is longer than a passage.
            left = if draw(10) == 0 { 100 + draw(300) } else { 5 + draw(90) };
            (column, _) = (0, text.push_str("\n\n"));
        } else if column > WIDTH {
            (column, _) = (0, text.push('\n'));
        } else {
            text.push(' ');
        }
        left -= 1;
    }
    text
}
