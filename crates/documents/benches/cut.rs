//! Times the reading and cutting of a folder of books on one thread:
//!
//!     cargo bench -p pdr-audit-documents --bench cut -- [--books 100] [--words 100000] [--path FILE]
//!
//! Prints one JSON object for each cut: megabytes of text a second, by the clock and by the time that the process had a processor (Linux),
//! the best of three, and the most memory that the process has held, in bytes (Linux). With `--path` it reads that file instead. The
//! books have paragraphs of all lengths, wrapped lines, quotations and some characters beyond ASCII.

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
    let paragraphs = Cut::default();
    if let Some(path) = arguments.iter().skip_while(|argument| *argument != "--path").nth(1) {
        return measure(Path::new(path), std::fs::metadata(path)?.len() as usize, paragraphs);
    }
    let folder = tempfile::tempdir()?;
    let (books, words) = (option("--books", 100)?, option("--words", 100_000)?);
    let mut bytes = 0;
    for number in 0..books {
        let book = book(number, words);
        bytes += book.len();
        std::fs::write(folder.path().join(format!("{number:04}.txt")), book)?;
    }
    for cut in [paragraphs, Cut { at: CutAt::Sentence, ..paragraphs }, Cut { overlap: 32, ..paragraphs }] {
        measure(folder.path(), bytes, cut)?;
    }
    Ok(())
}

fn measure(folder: &Path, bytes: usize, cut: Cut) -> Result<(), Box<dyn std::error::Error>> {
    let (mut seconds, mut processor) = (f64::INFINITY, f64::INFINITY);
    let mut count = 0;
    for _ in 0..RUNS {
        let (start, processor_start) = (Instant::now(), processor_seconds());
        let mut stream = passages(open(&[folder.to_owned()], ReadLimits::default())?, cut)?;
        stream.by_ref().try_for_each(|passage| passage.map(drop))?;
        count = stream.tally().passages;
        seconds = seconds.min(start.elapsed().as_secs_f64());
        processor = processor.min(processor_seconds() - processor_start);
    }
    let line = serde_json::json!({
        "cut": cut,
        "megabytes": bytes as f64 / 1e6,
        "passages": count,
        "megabytes_per_second": (bytes as f64 / 1e6 / seconds).round(),
        "megabytes_per_processor_second": (bytes as f64 / 1e6 / processor).round(),
        "peak_memory": peak_memory(),
    });
    println!("{line}");
    Ok(())
}

/// The seconds that this process had a processor, NaN where the system does not tell.
fn processor_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = times.split_whitespace().next().and_then(|time| time.parse::<f64>().ok());
    nanoseconds.map_or(f64::NAN, |time| time / 1e9)
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
