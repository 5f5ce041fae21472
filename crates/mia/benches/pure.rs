//! Benchmarks of the pure parts: scores, explanations, AUROC, the bootstrap, words and clusters of texts. `cargo bench --bench pure`.

use criterion::{Criterion, criterion_group, criterion_main};
use mia::TokenStats;
use mia::methods::{TextStats, WeightContext, default_methods, explain, score, zlib_bytes};
use mia::statistics::{
    Bootstrap, BootstrapColumn, LabelledScore, PositionProfile, Roc, WordTable, bootstrap, words_baseline,
};
use mia::texts::clusters;
use std::hint::black_box;

/// Deterministic pseudo-random numbers in (0, 1).
fn noise(count: usize) -> impl Iterator<Item = f64> {
    let mut seed = 1u64;
    (0..count).map(move |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64
    })
}

fn methods(c: &mut Criterion) {
    let stats = |x: f64| TokenStats { lp: -10.0 * x, mu: -5.0 - x, var: 1.0 + x, max_lp: -0.1 * x };
    let tokens: Vec<TokenStats> = noise(90).map(stats).collect();
    let context = WeightContext { text: "", dataset: &[] };
    let text = TextStats { tokens: &tokens, ids: &[], zlib_bytes: &|| 300, passes: &[], token_counts: &[], context };
    let methods = default_methods();
    c.bench_function("score/8 methods, 90 tokens", |b| {
        b.iter(|| methods.iter().filter_map(|m| score(&m.method, black_box(&text)).ok()).sum::<f64>());
    });
    c.bench_function("explain/8 methods, 90 tokens", |b| {
        b.iter(|| methods.iter().filter_map(|m| explain(&m.method, black_box(&text)).ok()).count());
    });
    let words = "the quick brown fox jumps over the lazy dog while seven wizards box ".repeat(6);
    c.bench_function("zlib_bytes/400 bytes", |b| b.iter(|| zlib_bytes(black_box(&words))));
}

fn statistics(c: &mut Criterion) {
    let samples: Vec<LabelledScore> = noise(10_000)
        .enumerate()
        .map(|(i, x)| LabelledScore { score: x + 0.2 * (i % 2) as f64, member: i % 2 == 1 })
        .collect();
    c.bench_function("roc/10,000 samples with DeLong", |b| {
        b.iter(|| {
            let roc = Roc::new(black_box(&samples));
            roc.ok().map(|roc| (roc.auroc(), roc.auroc_standard_error(), roc.tpr_at_fpr(0.05, 0.95)))
        });
    });
}

fn resampling(c: &mut Criterion) {
    let labels: Vec<bool> = (0..10_000).map(|i| i % 2 == 1).collect();
    let scores: Vec<Option<f64>> = noise(200_000).enumerate().map(|(i, x)| Some(x + 0.2 * (i % 2) as f64)).collect();
    let columns: Vec<BootstrapColumn> =
        scores.chunks(labels.len()).map(|scores| BootstrapColumn { scores, baseline: None }).collect();
    let mut group = c.benchmark_group("bootstrap");
    group.sample_size(10);
    group.bench_function("20x10000x1000", |b| {
        b.iter(|| bootstrap(&labels, &[], black_box(&columns), &[0.005, 0.01, 0.05], &Bootstrap::default(), &|| true));
    });
}

/// `texts` texts of `words` words from a vocabulary of 100,000 with Zipf frequencies; every fifth text repeats most of the one before.
fn corpus(texts: usize, words: usize) -> Vec<String> {
    let mut random = noise(texts * words);
    let mut drawn: Vec<Vec<usize>> = Vec::new();
    for text in 0..texts {
        let fresh: Vec<usize> = random.by_ref().take(words).map(|x| (100_000_f64.powf(x)) as usize).collect();
        let text = match drawn.last().filter(|_| text % 5 == 4) {
            Some(before) => [&before[..words - 2], &fresh[words - 2..]].concat(),
            None => fresh,
        };
        drawn.push(text);
    }
    drawn.iter().map(|words| words.iter().map(|word| format!("w{word}")).collect::<Vec<_>>().join(" ")).collect()
}

fn texts(c: &mut Criterion) {
    let mut group = c.benchmark_group("texts");
    group.sample_size(10);
    for (samples, words) in [(800, 64), (100_000, 100)] {
        let texts = corpus(samples, words);
        let labels: Vec<bool> = (0..samples).map(|i| i % 2 == 1).collect();
        let ids: Vec<usize> = (0..samples).collect();
        group.bench_function(format!("words/{samples} of {words} words, 199 permutations"), |b| {
            b.iter(|| {
                let mut table = WordTable::new(samples);
                texts.iter().for_each(|text| table.add(text));
                words_baseline(&table, black_box(&labels), &ids, 0, &|| true).map(|baseline| baseline.p_value)
            });
        });
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        group.bench_function(format!("clusters/{samples} of {words} words"), |b| {
            b.iter(|| clusters(black_box(&texts)).len());
        });
    }
}

fn profile(c: &mut Criterion) {
    let stats = |x: f64| TokenStats { lp: -10.0 * x, mu: -5.0 - x, var: 1.0 + x, max_lp: -0.1 * x };
    let tokens: Vec<TokenStats> = noise(512).map(stats).collect();
    let mut profile = PositionProfile::default();
    c.bench_function("position profile/512 tokens", |b| b.iter(|| profile.add(Some(true), black_box(&tokens))));
}

criterion_group!(benches, methods, statistics, resampling, texts, profile);
criterion_main!(benches);
