//! Which tokens of a text `min_k` and `min_k_plus_plus` select.

use mia::TokenStats;
use mia::methods::{LabelledMethod, Method, MethodName, Select, TextStats, WeightContext, Weighting, explain};
use std::sync::Arc;

/// One way of selecting tokens, and the methods of a request that do so.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenSelection {
    /// The labels of the methods, in the order of the request.
    pub labels: Vec<Arc<str>>,
    /// One method that selects the same tokens: without weights, unless they come before the selection.
    method: Method,
}

/// The distinct selections of the methods that are `min_k` or `min_k_plus_plus`, in their order.
pub fn token_selections(methods: &[LabelledMethod]) -> Vec<TokenSelection> {
    let mut selections: Vec<TokenSelection> = Vec::new();
    for LabelledMethod { label, method, .. } in methods {
        if !matches!(method.name(), MethodName::MinK | MethodName::MinKPlusPlus) {
            continue;
        }
        let method = unweighted_selection(method);
        match selections.iter_mut().find(|selection| selection.method == method) {
            Some(selection) => selection.labels.push(Arc::clone(label)),
            None => selections.push(TokenSelection { labels: vec![Arc::clone(label)], method }),
        }
    }
    selections
}

/// The method without its weights, where they change the scores of selected tokens and not the selection.
fn unweighted_selection(method: &Method) -> Method {
    let pdr = method.pdr.filter(|pdr| pdr.select == Select::Before);
    Method { pdr, ..method.clone() }
}

impl TokenSelection {
    /// True if it depends on the entropies of all texts of the audit.
    pub fn needs_entropies(&self) -> bool {
        self.method.pdr.is_some_and(|pdr| pdr.weighting == Weighting::EntropyDataset)
    }

    /// The ids that it selects of a text, in the order of their positions; none of a text that the method cannot score.
    /// `ids` are those of the scored `tokens`, and `dataset` the weights of `entropy_dataset`.
    pub fn selected_ids(&self, text: &str, ids: &[u32], tokens: &[TokenStats], dataset: &[f64]) -> Vec<u32> {
        let stats = TextStats {
            tokens,
            ids,
            zlib_bytes: &|| 0,
            passes: &[],
            token_counts: &[],
            context: WeightContext { text, dataset },
        };
        let selected = explain(&self.method, &stats).ok().flatten().map(|explanation| explanation.selected);
        let chosen = selected.unwrap_or_default();
        ids.iter().zip(chosen).filter(|(_, selected)| *selected).map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mia::methods::{MethodRequest, Scope, resolve};
    use serde_json::{Value, json};

    fn selections(methods: Value) -> Vec<TokenSelection> {
        let requests: Vec<MethodRequest> = serde_json::from_value(methods).expect("requests");
        let scope = Scope { audit: true, ..Scope::default() };
        token_selections(&resolve(&requests, &scope).expect("methods"))
    }

    #[test]
    fn methods_that_select_the_same_are_one_selection() {
        let linear = json!({ "decay": "linear", "alpha": 1 });
        let before = json!({ "decay": "entropy_dataset", "select": "before" });
        let selections = selections(json!([
            "loss",
            { "name": "min_k", "pdr": linear },
            "min_k_plus_plus",
            "min_k",
            { "name": "min_k", "pdr": { "decay": "entropy_dataset" }, "label": "mine" },
            { "name": "min_k", "pdr": before },
            { "name": "min_k", "truncate": 0.5 },
            "max_k",
        ]));
        let labels: Vec<Vec<&str>> =
            selections.iter().map(|selection| selection.labels.iter().map(|label| &**label).collect()).collect();
        let expected = [
            vec!["min_k(k=0.2)+linear(alpha=1)", "min_k(k=0.2)", "mine"],
            vec!["min_k_plus_plus(k=0.2)"],
            vec!["min_k(k=0.2)+entropy_dataset(before)"],
            vec!["min_k(k=0.2,truncate=0.5)"],
        ];
        assert_eq!(labels, expected);
        let entropies: Vec<bool> = selections.iter().map(TokenSelection::needs_entropies).collect();
        assert_eq!(entropies, [false, false, true, false]);
    }

    #[test]
    fn the_lowest_are_selected_in_order() {
        // lp and var; mu is -2.
        let tokens: Vec<TokenStats> = [(-5.0, 1.0), (-1.0, 1.0), (-4.0, 0.01), (-6.0, 100.0)]
            .map(|(lp, var)| TokenStats { lp, mu: -2.0, var, max_lp: -0.5 })
            .to_vec();
        let ids = [7, 8, 9, 7];
        let before = json!({ "decay": "linear", "alpha": 1, "select": "before" });
        let dataset = json!({ "decay": "entropy_dataset", "select": "before" });
        let selections = selections(json!([
            { "name": "min_k", "k": 0.5 },
            { "name": "min_k_plus_plus", "k": 0.5 },
            { "name": "min_k", "k": 0.5, "truncate": 0.5 },
            { "name": "min_k", "k": 0.5, "pdr": before },
            { "name": "min_k", "k": 0.25, "pdr": dataset },
        ]));
        let selected =
            |selection: &TokenSelection| selection.selected_ids("text", &ids, &tokens, &[0.1, 1.0, 0.1, 0.1]);
        // The z are -3, 1, -20 and -0.4; the weights of linear decay 1, 2/3, 1/3 and 0.
        let expected = [vec![7, 7], vec![7, 9], vec![7], vec![7, 9], vec![8]];
        assert_eq!(selections.iter().map(selected).collect::<Vec<_>>(), expected);
        assert!(selections[0].selected_ids("", &[], &[], &[]).is_empty());
    }
}
