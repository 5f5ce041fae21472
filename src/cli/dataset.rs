//! `pdr-audit dataset`: samples of a file or of a dataset on the Hub in, the same samples with `text` and `label` out.

use super::export::{self, result_file};
use super::input::{InputArgs, tell_documents};
use super::scoring_args::chat_renderer;
use super::source::SampleSource;
use crate::config::{ModelFlags, Overrides, Settings};
use crate::datasets::Sample;
use crate::samples::{FileSample, ReadOptions};
use crate::table::ResultRow;
use crate::telemetry;
use crate::wire::number_of;
use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use std::cell::Cell;
use std::io::{BufWriter, Write, stdout};
use std::iter;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct DatasetArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Column or field of the labels; by default `label`.
    #[arg(long, value_name = "NAME")]
    label_column: Option<String>,
    /// Put all samples into this group; by default each is in the group that its field `group` names.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Model whose chat template renders conversations, records with `messages` in place of a text: the id of a configured model,
    /// a directory, or a repository on the Hub. The samples have its text and the spans of what the assistant says.
    #[arg(long, value_name = "MODEL")]
    chat_template: Option<String>,
    /// Write the samples to this file, in the formats of `score --output`; by default as NDJSON to standard output. The file is
    /// written as a whole or not at all.
    #[arg(long, value_name = "FILE", value_parser = result_file())]
    output: Option<PathBuf>,
}

/// Number of samples, in total and of each kind.
#[derive(Clone, Copy, Default)]
struct LabelCounts {
    all: usize,
    members: usize,
    non_members: usize,
}

/// Writes the samples. A bad record is an error, and no file is written.
pub fn run(args: &DatasetArgs, config: Option<&Path>) -> Result<()> {
    // A download may take long; it says how far it is.
    telemetry::init_tracing(false, "warn,lm::hub=info")?;
    let mut options = args.input.reader.options(None, true, args.label_column.clone());
    if let Some(model) = &args.chat_template {
        let flags = ModelFlags { models: vec![model.clone()], ..ModelFlags::default() };
        let settings = Settings::load(config, &Overrides::default())?.with_models(&flags)?;
        options.columns.chat = Some(chat_renderer(&settings));
    }
    let source = args.input.source()?;
    ensure!(
        source.size().is_some() || !export::is_table(args.output.as_deref())?,
        "a table is written in two passes, and a pipe is read only once; write NDJSON"
    );
    let counts = Cell::new(LabelCounts::default());
    match &args.output {
        Some(target) => export::write(target, &[], || args.rows(&source, &options, &counts))?,
        None => {
            let mut out = BufWriter::new(stdout().lock());
            for row in args.rows(&source, &options, &counts)? {
                serde_json::to_writer(&mut out, &row?).map_err(std::io::Error::from)?;
                out.write_all(b"\n")?;
            }
            out.flush()?;
        }
    }
    tell_documents(&options);
    let LabelCounts { all, members, non_members } = counts.get();
    eprintln!(
        "{}: {}, {}, {} without a label",
        number_of(all, "sample"),
        number_of(members, "member"),
        number_of(non_members, "non-member"),
        all - members - non_members
    );
    Ok(())
}

impl DatasetArgs {
    /// The samples from the first one on, counted anew.
    fn rows<'a>(
        &'a self,
        source: &SampleSource,
        options: &'a ReadOptions,
        counts: &'a Cell<LabelCounts>,
    ) -> Result<impl Iterator<Item = Result<ResultRow>>> {
        counts.set(LabelCounts::default());
        let records = source.records(options).with_context(|| self.input.unreadable())?;
        let rows = records.map(move |record| {
            let read = record.map_err(anyhow::Error::from);
            let read =
                read.and_then(|record| self.input.reader.sample(record, options).map_err(|bad| anyhow!(bad.fault)));
            let read = read.with_context(|| self.input.unreadable())?;
            let LabelCounts { all, members, non_members } = counts.get();
            let member = read.sample.is_member();
            counts.set(LabelCounts {
                all: all + 1,
                members: members + usize::from(member == Some(true)),
                non_members: non_members + usize::from(member == Some(false)),
            });
            Ok(self.row(read))
        });
        let nothing = || anyhow!("{}: there are no texts", self.input.file.display());
        Ok(rows.chain(iter::once_with(move || (counts.get().all == 0).then(|| Err(nothing()))).flatten()))
    }

    /// The text, the label as it was understood, the group if one is given, and what else came along.
    fn row(&self, FileSample { sample, mut others }: FileSample) -> ResultRow {
        let member = sample.is_member();
        let Sample { text, neighbors, .. } = sample;
        for name in ["label", "neighbors"] {
            others.shift_remove(name);
        }
        if let Some(other) = others.shift_remove("text") {
            others.insert("text (input)".to_owned(), other);
        }
        let mut row = ResultRow::from_iter([("text".to_owned(), text.into())]);
        row.extend(member.map(|member| ("label".to_owned(), u8::from(member).into())));
        row.extend(neighbors.map(|neighbors| ("neighbors".to_owned(), neighbors.into())));
        row.extend(others);
        row.extend(self.group.clone().map(|group| ("group".to_owned(), group.into())));
        row
    }
}
