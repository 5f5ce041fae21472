//! The comparisons of the paper.

use super::*;
use serde_json::json;

fn labels(preset: serde_json::Value, scope: &Scope) -> Vec<String> {
    let methods = resolve(&parse(json!([preset])), scope).expect("methods");
    super::labels_of(&methods).into_iter().map(str::to_owned).collect()
}

#[test]
fn wikimia_has_every_row_of_its_tables() {
    let got = labels(json!({ "preset": "paper_wikimia", "length": 64 }), &scope());
    let expected = [
        "lowercase",
        "zlib",
        "loss",
        "loss+slope",
        "loss+linear(alpha=1)",
        "loss+exponential(alpha=0.002)",
        "loss+polynomial(alpha=2)",
        "ref(reference=small)",
        "ref(reference=small)+slope",
        "ref(reference=small)+linear(alpha=1)",
        "ref(reference=small)+exponential(alpha=0.02)",
        "ref(reference=small)+polynomial(alpha=2)",
        "min_k(k=0.2)",
        "min_k(k=0.2)+slope",
        "min_k(k=0.2)+linear(alpha=1)",
        "min_k(k=0.2)+exponential(alpha=0.002)",
        "min_k(k=0.2)+polynomial(alpha=2)",
        "min_k_plus_plus(k=0.2)",
        "min_k_plus_plus(k=0.2)+slope",
        "min_k_plus_plus(k=0.2)+linear(alpha=1)",
        "min_k_plus_plus(k=0.2)+exponential(alpha=0.02)",
        "min_k_plus_plus(k=0.2)+polynomial(alpha=2)",
    ];
    assert_eq!(got, expected);
    let short = labels(json!({ "preset": "paper_wikimia", "length": 32 }), &scope());
    assert!(
        short.contains(&"loss+linear(alpha=0.1)".to_owned())
            && short.contains(&"loss+polynomial(alpha=0.1)".to_owned())
    );
    assert_eq!(labels(json!({ "preset": "paper_wikimia", "length": 128 }), &scope()), got);
}

#[test]
fn mimir_has_no_reference_model() {
    let got = labels(json!({ "preset": "paper_mimir" }), &Scope::default());
    assert_eq!(got.len(), 2 + 3 * 5);
    assert!(got.iter().all(|label| !label.starts_with("ref")));
    assert!(got.contains(&"min_k_plus_plus(k=0.2)+exponential(alpha=0.002)".to_owned()));
}

fn generated(model: &str, count: usize) -> serde_json::Value {
    json!({ "preset": "paper_mimir", "generator": { "model": model, "count": count } })
}

#[test]
fn neighbours_where_there_are_some() {
    let generated = json!({ "preset": "paper_mimir", "generator": { "model": "bert" } });
    assert_eq!(labels(generated, &scope())[2], "neighbor(generator=bert,count=25)");
    let given = Scope { neighbors: true, ..scope() };
    assert_eq!(labels(json!({ "preset": "paper_mimir" }), &given)[2], "neighbor");
}

#[test]
fn what_a_preset_lacks_or_does_not_take_is_named() {
    for (preset, scope, pointers) in [
        (json!({ "preset": "paper_wikimia" }), scope(), vec!["/0/length"]),
        (json!({ "preset": "paper_wikimia", "length": 65 }), scope(), vec!["/0/length"]),
        (json!({ "preset": "paper_wikimia", "length": 64 }), Scope::default(), vec!["/0/reference"]),
        (json!({ "preset": "paper", "length": 64 }), scope(), vec!["/0/preset"]),
        (
            json!({ "preset": "paper_mimir", "length": 64, "k": 0.1, "name": "loss" }),
            scope(),
            vec!["/0/name", "/0/k", "/0/length"],
        ),
        (generated("no", 3), scope(), vec!["/0/generator/model"]),
        (generated("bert", 0), scope(), vec!["/0/generator/count"]),
        (json!({ "preset": "paper_ablation", "length": 64 }), scope(), vec!["/0/preset"]),
        (json!({ "preset": "paper_alpha", "length": 64 }), in_audit(), vec!["/0/length"]),
        (json!({ "preset": "paper_truncation", "truncate": [0.5] }), in_audit(), vec!["/0/truncate"]),
        (
            json!({ "preset": "paper_ablation", "generator": { "model": "bert" }, "reference": "none" }),
            in_audit(),
            vec!["/0/generator", "/0/length", "/0/reference"],
        ),
        (json!({ "preset": "paper_mimir", "reference": "small" }), in_audit(), vec!["/0/reference"]),
    ] {
        assert_eq!(pointers_of(&faults(json!([preset]), &scope)), pointers, "{preset}");
    }
    let needs_audit = faults(json!([{ "preset": "paper_ablation", "length": 64 }]), &scope());
    let detail =
        "`paper_ablation` weights tokens by `entropy_dataset`, which is made of all texts of an audit, and needs one";
    assert_eq!(needs_audit[0].detail, detail);
}

#[test]
fn a_preset_and_the_list_around_it_may_share_methods() {
    let requests = json!(["loss", { "preset": "paper_mimir" }, { "preset": "paper_wikimia", "length": 64 }, "zlib"]);
    let methods = resolved(requests);
    let place = |method: &LabelledMethod| method.origin.expect("an origin").place;
    let count = |wanted: usize| methods.iter().filter(|method| place(method) == wanted).count();
    // The second preset shares the baselines, the slopes, LPDR and the exponential decay of loss and min_k.
    assert_eq!([count(0), count(1), count(2), count(3)], [1, 16, 22 - 2 - 3 * 3 - 2, 0]);
    assert!(methods[5].pointer("pdr") == "/1/preset");
}

/// Presets of an audit on a pool with a reference model.
fn in_audit() -> Scope<'static> {
    Scope { audit: true, ..scope() }
}

#[test]
fn the_ablation_has_every_column_of_its_table() {
    let got = labels(json!({ "preset": "paper_ablation", "length": 128 }), &in_audit());
    let row = |method: &str, exponential: &str, selects: bool| -> Vec<String> {
        let columns = [
            "",
            "+slope",
            "+random(family=linear,alpha=1,seed=0)",
            "+reverse(family=linear,alpha=1)",
            "+entropy_sample",
            "+entropy_dataset",
        ];
        let before = selects.then_some("+linear(alpha=1,before)");
        let decays = ["+linear(alpha=1)", exponential, "+polynomial(alpha=2)"];
        columns.into_iter().chain(before).chain(decays).map(|column| format!("{method}{column}")).collect()
    };
    let expected = [
        row("loss", "+exponential(alpha=0.002)", false),
        row("ref(reference=small)", "+exponential(alpha=0.02)", false),
        row("min_k(k=0.2)", "+exponential(alpha=0.002)", true),
        row("min_k_plus_plus(k=0.2)", "+exponential(alpha=0.02)", true),
    ];
    assert_eq!(got, expected.concat());
    let short = labels(json!({ "preset": "paper_ablation", "length": 32 }), &in_audit());
    assert!(short.contains(&"loss+reverse(family=linear,alpha=0.1)".to_owned()));
}

#[test]
fn alphas_are_the_grids_of_the_paper() {
    let got = labels(json!({ "preset": "paper_alpha" }), &scope());
    let grid = |decay: &str, alphas: &[&str]| -> Vec<String> {
        alphas.iter().map(|alpha| format!("+{decay}(alpha={alpha})")).collect()
    };
    let columns = [
        vec![String::new()],
        grid("linear", &["0.1", "0.3", "0.5", "0.7", "1"]),
        grid("exponential", &["0.002", "0.004", "0.006", "0.008", "0.01", "0.02", "0.04", "0.06", "0.08", "0.1"]),
        grid("polynomial", &["0.1", "0.3", "0.5", "0.7", "1", "1.2", "1.5", "1.8", "2"]),
    ]
    .concat();
    let methods = ["loss", "ref(reference=small)", "min_k(k=0.2)", "min_k_plus_plus(k=0.2)"];
    let expected: Vec<String> =
        methods.iter().flat_map(|method| columns.iter().map(move |column| format!("{method}{column}"))).collect();
    assert_eq!(got, expected);
}

#[test]
fn truncation_is_compared_with_linear_decay() {
    let got = labels(json!({ "preset": "paper_truncation", "reference": "bert" }), &scope());
    let row = |method: &str, parameters: &str| -> Vec<String> {
        let separator = if parameters.is_empty() { "" } else { "," };
        let tenths = (1..10).map(|tenth| format!("{method}({parameters}{separator}truncate=0.{tenth})"));
        let whole = if parameters.is_empty() { method.to_owned() } else { format!("{method}({parameters})") };
        tenths.chain([whole.clone(), format!("{whole}+linear(alpha=1)")]).collect()
    };
    let expected =
        [row("loss", ""), row("ref", "reference=bert"), row("min_k", "k=0.2"), row("min_k_plus_plus", "k=0.2")];
    assert_eq!(got, expected.concat());
}
