//! Trains the two demo models that ship with the program: `cargo run --release --example train_demo [OUTPUT_DIR [CANARIES]]`.
//! CANARIES is a file of canaries to publish, as `pdr-audit canary make` writes it: `demo` is trained on them as on members.
//!
//! A generated corpus is split at random into members, non-members and background. `demo` is trained on background and
//! members, `demo-reference` (smaller) on the background only, so members differ from non-members only in that `demo`
//! has seen them. Everything is seeded: the corpus and the split are the same on every machine, the weights are the
//! same up to rounding.

mod corpus;
mod data;
mod evaluate;
mod save;
mod shape;
mod trainer;
mod vocabulary;

use anyhow::Result;
use std::path::PathBuf;
use trainer::{Schedule, Trainer};

fn main() -> Result<()> {
    let out = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "models".into()));
    let (split, tokenizer) = data::Split::draw()?;
    let planted = std::env::args().nth(2).map_or(Ok(Vec::new()), |file| data::read_texts(file.as_ref(), &tokenizer))?;
    let counts = [&split.background, &split.members, &split.non_members].map(|texts| (texts.len(), data::count(texts)));
    println!("texts and tokens: background {:?}, members {:?}, non-members {:?}", counts[0], counts[1], counts[2]);

    data::save_audit(&out.join("demo"), &split)?;

    let mut demo = Trainer::new(shape::demo(), 1, Schedule { epochs: 4, warm_up: 60, peak: 3e-3 })?;
    let all = [&*split.background, &*split.members, &*planted];
    demo.train(|epoch| if epoch < 2 { all[..1].to_vec() } else { all.to_vec() })?;
    save::save(&out.join("demo"), &demo, &tokenizer)?;

    let mut reference = Trainer::new(shape::reference(), 2, Schedule { epochs: 3, warm_up: 60, peak: 4e-3 })?;
    reference.train(|_| vec![&*split.background])?;
    save::save(&out.join("demo-reference"), &reference, &tokenizer)?;

    for id in ["demo", "demo-reference"] {
        evaluate::print_table(id, &out.join(id), &split)?;
    }
    Ok(())
}
