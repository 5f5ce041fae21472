//! The tokens that methods select most often, by class.

use mia::TokenStats;
use mia::methods::{LabelledMethod, Method, MethodName, Select, TextStats, WeightContext, Weighting, explain};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// The tokens that some methods select most often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SelectedTokens {
    /// The labels of the methods, which all select the same tokens of every text.
    #[schema(value_type = Vec<String>)]
    pub methods: Vec<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<ClassTokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_members: Option<ClassTokens>,
    /// Of all texts, where there are no labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<ClassTokens>,
}

/// Tokens that are selected of the texts of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClassTokens {
    /// Number of tokens selected, including those that are not listed.
    pub selected: u64,
    /// The tokens selected most often, by falling count and then by id.
    pub tokens: Vec<SelectedToken>,
}

/// A token of the vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SelectedToken {
    pub id: u32,
    /// The decoded piece; U+FFFD where its bytes are not valid UTF-8 alone.
    pub text: String,
    /// Number of times that it is selected.
    pub count: u64,
    /// Number of times that it is a scored token of these texts, selected or not.
    pub occurrences: u64,
}

/// The tokens of one text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextTokens {
    /// The ids of its scored tokens, where they are to be counted: once for each text.
    pub ids: Vec<u32>,
    /// The ids that each selection takes; none of a selection that is not evaluated now.
    pub selected: Vec<Vec<u32>>,
}

impl TextTokens {
    /// The tokens of a text that one round of an audit counts. `ids` are those of its scored
    /// `tokens`. `entropies` are the weights of `entropy_dataset`, empty in the
    /// first round: selections that depend on them are evaluated in the second one, and everything else in the first.
    pub fn new(
        selections: &[TokenSelection],
        text: &str,
        ids: &[u32],
        tokens: &[TokenStats],
        entropies: &[f64],
    ) -> Self {
        let first_round = entropies.is_empty();
        let selected = |selection: &TokenSelection| match needs_entropies(&selection.method) == first_round {
            true => Vec::new(),
            false => selection.selected_ids(text, ids, tokens, entropies),
        };
        let selected = selections.iter().map(selected).collect();
        Self { ids: if first_round { ids.to_vec() } else { Vec::new() }, selected }
    }
}

/// Counts of tokens by class and selection. Their sums do not depend on the order of the texts, and their memory is
/// bounded by the vocabulary.
#[derive(Debug, Default)]
pub struct TokenTally {
    members: ClassTally,
    non_members: ClassTally,
    unlabelled: ClassTally,
}

#[derive(Debug, Default)]
struct ClassTally {
    occurrences: HashMap<u32, u64>,
    /// By selection.
    selected: Vec<HashMap<u32, u64>>,
}

impl TokenTally {
    /// Adds the tokens of one text; `member` is its label, if it has one.
    pub fn add(&mut self, member: Option<bool>, tokens: &TextTokens) {
        let class = match member {
            Some(true) => &mut self.members,
            Some(false) => &mut self.non_members,
            None => &mut self.unlabelled,
        };
        count(&mut class.occurrences, &tokens.ids);
        if class.selected.len() < tokens.selected.len() {
            class.selected.resize_with(tokens.selected.len(), HashMap::new);
        }
        for (counts, ids) in class.selected.iter_mut().zip(&tokens.selected) {
            count(counts, ids);
        }
    }

    /// The tokens that each selection takes most often, at most `most` of a class; `text` decodes an id. `labelled` says
    /// whether the texts have labels.
    pub fn most_selected(
        &self,
        selections: &[TokenSelection],
        most: usize,
        labelled: bool,
        text: impl Fn(u32) -> String,
    ) -> Vec<SelectedTokens> {
        let listed = |(place, selection): (usize, &TokenSelection)| SelectedTokens {
            methods: selection.labels.clone(),
            members: labelled.then(|| self.members.most_selected(place, most, &text)),
            non_members: labelled.then(|| self.non_members.most_selected(place, most, &text)),
            all: (!labelled).then(|| self.unlabelled.most_selected(place, most, &text)),
        };
        selections.iter().enumerate().map(listed).collect()
    }
}

impl ClassTally {
    fn most_selected(&self, place: usize, most: usize, text: &impl Fn(u32) -> String) -> ClassTokens {
        let counts = self.selected.get(place).into_iter().flatten();
        let mut ranked: Vec<(u32, u64)> = counts.map(|(id, count)| (*id, *count)).collect();
        let selected = ranked.iter().map(|(_, count)| count).sum();
        ranked.sort_unstable_by_key(|(id, count)| (Reverse(*count), *id));
        ranked.truncate(most);
        let token = |(id, count)| SelectedToken {
            id,
            text: text(id),
            count,
            occurrences: self.occurrences.get(&id).copied().unwrap_or(0),
        };
        ClassTokens { selected, tokens: ranked.into_iter().map(token).collect() }
    }
}

fn count(counts: &mut HashMap<u32, u64>, ids: &[u32]) {
    for id in ids {
        *counts.entry(*id).or_default() += 1;
    }
}

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

/// True if the score of a text does not depend on the other texts of its audit, as it does by weights or by a tuning.
pub fn is_of_text_alone(method: &Method) -> bool {
    method.split().is_none() && !needs_entropies(method)
}

/// True if the method weights tokens by entropies over all texts of the audit.
pub fn needs_entropies(method: &Method) -> bool {
    method.pdr.is_some_and(|pdr| pdr.weighting == Weighting::EntropyDataset)
}

impl TokenSelection {
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
    use crate::audits::fixtures::methods;
    use mia::methods::{Scope, default_methods};
    use serde_json::{Value, json};

    fn selections(requests: Value) -> Vec<TokenSelection> {
        token_selections(&methods(requests, &Scope { audit: true, ..Scope::default() }))
    }

    fn default_selections() -> Vec<TokenSelection> {
        token_selections(&default_methods())
    }

    fn tokens(ids: &[u32], selected: [&[u32]; 2]) -> TextTokens {
        TextTokens { ids: ids.to_vec(), selected: selected.map(<[u32]>::to_vec).to_vec() }
    }

    fn rows(class: &Option<ClassTokens>) -> Vec<(u32, &str, u64, u64)> {
        let class = class.as_ref().expect("the class");
        class.tokens.iter().map(|token| (token.id, &*token.text, token.count, token.occurrences)).collect()
    }

    #[test]
    fn counts_by_class_and_selection_in_a_fixed_order() {
        let texts = [
            (Some(true), tokens(&[5, 3, 3, 9], [&[3, 9], &[5]])),
            (Some(false), tokens(&[1, 3], [&[1], &[3]])),
            (Some(true), tokens(&[3, 9, 4], [&[3, 4], &[4]])),
            // A second round evaluates other selections and counts no occurrences.
            (Some(false), tokens(&[], [&[], &[1]])),
        ];
        let tallied = |order: &[usize]| {
            let mut tally = TokenTally::default();
            order.iter().for_each(|&place| tally.add(texts[place].0, &texts[place].1));
            tally.most_selected(&default_selections(), 2, true, |id| format!("<{id}>"))
        };
        let listed = tallied(&[0, 1, 2, 3]);
        assert_eq!(listed[0].methods, ["min_k(k=0.2)".into(), "min_k(k=0.2)+linear(alpha=1)".into()] as [Arc<str>; 2]);
        assert_eq!(rows(&listed[0].members), [(3, "<3>", 2, 3), (4, "<4>", 1, 1)]);
        assert_eq!(listed[0].members.as_ref().map(|class| class.selected), Some(4));
        assert_eq!(rows(&listed[0].non_members), [(1, "<1>", 1, 1)]);
        assert_eq!(rows(&listed[1].members), [(4, "<4>", 1, 1), (5, "<5>", 1, 1)]);
        assert_eq!(rows(&listed[1].non_members), [(1, "<1>", 1, 1), (3, "<3>", 1, 1)]);
        assert!(listed.iter().all(|selection| selection.all.is_none()));
        assert_eq!(listed, tallied(&[3, 2, 1, 0]));
    }

    #[test]
    fn each_token_is_counted_in_one_round() {
        let requests = json!([
            { "name": "min_k", "k": 0.5 },
            { "name": "min_k", "k": 0.5, "pdr": { "decay": "entropy_dataset", "select": "before" } },
        ]);
        let selections = selections(requests);
        let stats = [-3.0, -2.0].map(|lp| TokenStats { lp, mu: -1.0, var: 1.0, max_lp: -0.5 });
        let round = |entropies: &[f64]| TextTokens::new(&selections, "text", &[8, 9], &stats, entropies);
        assert_eq!(round(&[]), TextTokens { ids: vec![8, 9], selected: vec![vec![8], vec![]] });
        assert_eq!(round(&[0.1, 1.0]), TextTokens { ids: vec![], selected: vec![vec![], vec![9]] });
    }

    #[test]
    fn without_labels_all_texts_are_one_class() {
        let mut tally = TokenTally::default();
        tally.add(None, &tokens(&[2, 2], [&[2], &[2, 2]]));
        let listed = tally.most_selected(&default_selections(), 9, false, |_| String::new());
        assert_eq!(rows(&listed[1].all), [(2, "", 2, 2)]);
        assert!(listed[0].members.is_none() && listed[0].non_members.is_none());
        let empty = TokenTally::default().most_selected(&default_selections(), 9, true, |_| String::new());
        assert_eq!(empty[1].members, Some(ClassTokens { selected: 0, tokens: Vec::new() }));
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
        let entropies: Vec<bool> = selections.iter().map(|selection| needs_entropies(&selection.method)).collect();
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
