//! Simulates what lists and tests do on scores from a file, for `verdict.py`, which makes the file and compares with known numbers:
//!
//!     cargo bench --bench verdict -- SCORES.json [--draws 400] [--seed N]
//!
//! SCORES.json has `labels` (0 or 1 for each text) and `scores`: by name of a method a number for each text. Prints one JSON object:
//! the false discovery proportion and the power of each procedure at 0.1, over draws of 200 non-members as the calibration; for each
//! test, number of clusters and level the share of null draws (non-members against non-members) in which it rejects and its power; and the
//! power of the dataset test at 0.01.

use anyhow::{Context, Result, ensure};
use mia::statistics::{
    CalibrationScores, CanaryRank, DocumentScores, Procedure, RankColumn, canary_rank, discover, kolmogorov_smirnov,
    mann_whitney, max_t, publication_test, welch,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const CALIBRATION: usize = 200;
const FDR: f64 = 0.1;
/// Texts on each side of a null draw.
const SIDE: usize = 100;
/// The same of the table of rejections, with its levels.
const SIDES: [usize; 3] = [20, 50, 150];
const LEVELS: [f64; 2] = [0.05, 0.01];

#[derive(Deserialize)]
struct Scores {
    labels: Vec<u8>,
    scores: BTreeMap<String, Vec<f64>>,
}

/// The scores of one method.
struct Method<'a> {
    members: Vec<f64>,
    non_members: Vec<f64>,
    name: &'a str,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let option = |name: &str, default: u64| -> Result<u64> {
        let value = arguments.iter().skip_while(|argument| *argument != name).nth(1);
        Ok(value.map_or(Ok(default), |value| value.parse())?)
    };
    let path = arguments.first().context("a file of scores is needed")?;
    let file: Scores = serde_json::from_slice(&std::fs::read(path)?)?;
    let (draws, seed) = (option("--draws", 400)?, option("--seed", 0)?);
    let class = |scores: &[f64], label: u8| -> Vec<f64> {
        scores.iter().zip(&file.labels).filter(|(_, known)| **known == label).map(|(score, _)| *score).collect()
    };
    let methods: Vec<Method> = file
        .scores
        .iter()
        .map(|(name, scores)| Method { members: class(scores, 1), non_members: class(scores, 0), name })
        .collect();
    for method in &methods {
        ensure!(
            method.non_members.len() > CALIBRATION,
            "{}: more than {CALIBRATION} non-members are needed",
            method.name
        );
    }
    let mut results = serde_json::Map::new();
    for (place, method) in methods.iter().enumerate() {
        let lists = [Procedure::Bh, Procedure::Storey, Procedure::By].map(|procedure| {
            let outcomes: Vec<[f64; 2]> =
                (0..draws).map(|draw| list(method, procedure, seed, draw)).collect::<Result<_>>()?;
            let [fdp, power] =
                [0, 1].map(|part| summary(&outcomes.iter().map(|outcome| outcome[part]).collect::<Vec<_>>()));
            Ok::<_, anyhow::Error>((procedure.to_string(), json!({ "fdp": fdp, "power": power })))
        });
        let lists: serde_json::Map<String, Value> = lists.into_iter().collect::<Result<_>>()?;
        let powers: serde_json::Map<String, Value> = [10, 25, 50, 100]
            .map(|side| (side.to_string(), json!(power(method, side, seed, draws))))
            .into_iter()
            .collect();
        let control = &methods[(place + 1) % methods.len()];
        let rejections = rejections(method, control, seed, draws);
        results.insert(method.name.to_owned(), json!({ "lists": lists, "rejections": rejections, "power": powers }));
    }
    results.insert("best_of_all".to_owned(), best_of_all(&methods, seed, draws));
    println!("{}", Value::Object(results));
    Ok(())
}

/// Mean and standard error.
fn summary(values: &[f64]) -> [f64; 2] {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    [mean, (squares / (count - 1.0) / count).sqrt()]
}

/// Purpose of a draw; each has its own stream of random numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Calibration,
    Members,
    NonMembers,
    Null,
    Best,
}

/// The places of a list in a random order.
fn order(count: usize, seed: u64, purpose: Purpose, draw: u64) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(8 * draw + purpose as u64);
    let mut keyed: Vec<(u64, usize)> = (0..count).map(|place| (random.next_u64(), place)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, place)| place).collect()
}

fn shuffled(values: &[f64], seed: u64, purpose: Purpose, draw: u64) -> Vec<f64> {
    order(values.len(), seed, purpose, draw).into_iter().map(|place| values[place]).collect()
}

/// The false discovery proportion and the power of one list.
fn list(method: &Method, procedure: Procedure, seed: u64, draw: u64) -> Result<[f64; 2]> {
    let non_members = shuffled(&method.non_members, seed, Purpose::Calibration, draw);
    let (calibration, tested) = non_members.split_at(CALIBRATION);
    let known = CalibrationScores::new(calibration.to_vec())?;
    let p_values: Vec<f64> = method.members.iter().chain(tested).map(|score| known.p_value(*score)).collect();
    let rejected = discover(&p_values, FDR, procedure).rejected;
    let count = |places: std::ops::Range<usize>| rejected[places].iter().filter(|rejected| **rejected).count() as f64;
    let (hits, false_alarms) = (count(0..method.members.len()), count(method.members.len()..rejected.len()));
    Ok([false_alarms / (hits + false_alarms).max(1.0), hits / method.members.len() as f64])
}

/// Share of draws of `side` members and `side` non-members in which the dataset test has p below 0.01.
fn power(method: &Method, side: usize, seed: u64, draws: u64) -> f64 {
    let rejects = |draw: &u64| {
        let members = shuffled(&method.members, seed, Purpose::Members, *draw);
        let non_members = shuffled(&method.non_members, seed, Purpose::NonMembers, *draw);
        mann_whitney(&members[..side], &non_members[..side]).is_ok_and(|test| test.p_value < 0.01)
    };
    (0..draws).filter(rejects).count() as f64 / draws as f64
}

/// By test, number of clusters a side and level: the share of null draws (non-members against non-members) in which it rejects, and
/// that of draws of members against non-members. `control` is another method on the same texts, in the place of a control model.
fn rejections(method: &Method, control: &Method, seed: u64, draws: u64) -> Vec<Value> {
    let mut rows = Vec::new();
    for side in SIDES {
        let mut counts: BTreeMap<(&str, usize), [u64; 2]> = BTreeMap::new();
        for draw in 0..draws {
            let null = order(method.non_members.len(), seed, Purpose::Null, draw);
            let members = order(method.members.len(), seed, Purpose::Members, draw);
            let (others, rest) = null.split_at(side);
            let of = |places: &[usize], known: bool| -> [Vec<f64>; 2] {
                let scores = |method: &Method| if known { method.members.clone() } else { method.non_members.clone() };
                [method, control].map(|method| places.iter().map(|&place| scores(method)[place]).collect())
            };
            for (at, first) in [of(&rest[..side], false), of(&members[..side], true)].iter().enumerate() {
                for (test, p_value) in p_values(first, &of(others, false), draw) {
                    for (place, level) in LEVELS.iter().enumerate() {
                        counts.entry((test, place)).or_default()[at] += u64::from(p_value <= *level);
                    }
                }
            }
        }
        rows.extend(counts.into_iter().map(|((test, place), [null, power])| {
            let share = |count: u64| count as f64 / draws as f64;
            json!({ "test": test, "side": side, "level": LEVELS[place], "null": share(null), "power": share(power) })
        }));
    }
    rows
}

/// The p-values of all tests of one list against another, each by a method and by its control.
fn p_values(
    [first, first_control]: &[Vec<f64>; 2],
    [second, second_control]: &[Vec<f64>; 2],
    seed: u64,
) -> Vec<(&'static str, f64)> {
    let side = first.len();
    let pairs: Vec<DocumentScores> = (first.iter().zip(second))
        .map(|(&published, &private)| DocumentScores { published, private: vec![private] })
        .collect();
    // A canary among four twins, as far as the second list has them.
    let canaries: Vec<CanaryRank> = first
        .iter()
        .zip(second.chunks_exact(4))
        .filter_map(|(canary, twins)| CanaryRank::new(*canary, twins).ok())
        .collect();
    let known = CalibrationScores::new(second.clone());
    let column =
        |first: &[f64], second: &[f64]| -> Vec<Option<f64>> { first.iter().chain(second).copied().map(Some).collect() };
    let (labels, strata): (Vec<bool>, Vec<usize>) =
        ((0..2 * side).map(|place| place < side).collect(), vec![0; 2 * side]);
    let (target, control) = (column(first, second), column(first_control, second_control));
    let columns = [RankColumn::new(&target, &strata), RankColumn::difference(&target, &control, &strata)];
    let permuted = max_t(&labels, &strata, &columns, 999, seed, &|| true);
    vec![
        ("audit", permuted[0].map_or(1.0, |test| test.p_value)),
        ("difference", permuted[1].map_or(1.0, |test| test.p_value)),
        ("dataset", mann_whitney(first, second).map_or(1.0, |test| test.p_value)),
        ("welch", welch(first, second).map_or(1.0, |test| test.p_value)),
        ("paired", publication_test(&pairs, seed, &|| true).map_or(1.0, |test| test.p_value)),
        ("rank", canary_rank(&canaries).map_or(1.0, |test| test.p_value)),
        ("text", known.map_or(1.0, |known| known.p_value(first[0]))),
        ("lengths", kolmogorov_smirnov(first, second).map_or(1.0, |test| test.p_value)),
    ]
}

/// The share of null draws in which the best of all methods has p at most 0.05, without and with the adjustment for their number.
fn best_of_all(methods: &[Method], seed: u64, draws: u64) -> Value {
    let labels: Vec<bool> = (0..2 * SIDE).map(|place| place < SIDE).collect();
    let strata = vec![0; 2 * SIDE];
    let (mut alone, mut adjusted) = (0, 0);
    for draw in 0..draws {
        let count = methods.iter().map(|method| method.non_members.len()).min().unwrap_or(0);
        let order = order(count, seed, Purpose::Best, draw);
        let column = |method: &Method| {
            let scores: Vec<Option<f64>> =
                order[..2 * SIDE].iter().map(|&place| Some(method.non_members[place])).collect();
            RankColumn::new(&scores, &strata)
        };
        let columns: Vec<RankColumn> = methods.iter().map(column).collect();
        let tests: Vec<_> = max_t(&labels, &strata, &columns, 199, draw, &|| true).into_iter().flatten().collect();
        alone += u64::from(tests.iter().any(|test| test.p_value <= 0.05));
        adjusted += u64::from(tests.iter().any(|test| test.p_value_adjusted <= 0.05));
    }
    json!({ "alone": alone as f64 / draws as f64, "adjusted": adjusted as f64 / draws as f64 })
}
