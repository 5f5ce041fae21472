//! The memory of a forward pass, beside the weights, does not grow with the vocabulary. The test runs in a process of its
//! own, since it measures the size of the process.

use crate::common::alone::alone;
use crate::common::gpt2::Gpt2;
use crate::common::resident;
use candle_core::{DType, Device};
use lm::models::CausalLm;
use lm::models::checkpoint::Checkpoint;
use lm::models::device::ComputeDevice;
use lm::models::files::ModelFiles;
use lm::models::ops::{Form, Multiply};

const TOKENS: usize = 4_096;
const TEXTS: usize = 16;
const LARGE: usize = 50_304;
const SMALL: usize = 4_096;
/// Whole logits of the large vocabulary would take 824 MB, those of the small one 67 MB.
const MOST: u64 = 100 << 20;

fn model(vocab: usize, form: Form) -> Box<dyn CausalLm> {
    let directory = tempfile::tempdir().unwrap();
    Gpt2 { vocab, hidden: 64, layers: 2, heads: 4, positions: TOKENS / TEXTS }.write(directory.path());
    let files = ModelFiles::Directory(directory.path().to_owned());
    Checkpoint::open(&files).unwrap().load_in(form, DType::F32, &Device::Cpu).unwrap().causal().unwrap()
}

/// Measures the peak memory of a batch beside what was there before it.
fn peak_of_a_batch(model: &dyn CausalLm, vocab: usize) -> u64 {
    let texts: Vec<Vec<u32>> =
        (0..TEXTS).map(|t| (0..TOKENS / TEXTS).map(|i| ((t * 7919 + i * 31) % vocab) as u32).collect()).collect();
    let sequences: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
    ComputeDevice::cpu().trim();
    let before = resident::now();
    forget_peak();
    let stats = model.token_stats(&sequences).unwrap();
    assert!(stats.iter().flatten().all(|token| token.lp.is_finite()));
    resident::status("VmHWM:").saturating_sub(before)
}

/// Makes the peak what is in memory now.
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[test]
fn a_batch_takes_no_more_memory_at_a_large_vocabulary() {
    alone(|| {
        let mut forms = vec![Form::Fused(Multiply::Gemm)];
        forms.extend(Some(Form::inference(&Device::Cpu, DType::F32)).filter(|best| *best != forms[0]));
        for form in forms {
            let [small, large] = [SMALL, LARGE].map(|vocab| peak_of_a_batch(&*model(vocab, form), vocab));
            println!("{form:?}: {TOKENS} tokens take {small} bytes at {SMALL} entries, {large} at {LARGE}");
            assert!(large < small + MOST, "{form:?}: {small} bytes at {SMALL} entries, {large} at {LARGE}");
        }
    });
}
