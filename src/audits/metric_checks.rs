//! Validation and cost of the averages, the profile and the selected tokens of an audit request.

use super::metric_options::{MOST_GROUP_POSITIONS, MOST_POSITIONS, ProfileOptions};
use super::request::AuditMetrics;
use super::token_selection::token_selections;
use mia::methods::{Fault, LabelledMethod};

/// Maximum number of tokens listed for a class.
const MOST_TOKENS: usize = 1000;
/// Maximum number of distinct token selections: each counts the tokens of the vocabulary by class.
const MOST_SELECTIONS: usize = 16;
/// Memory of a position of a profile, counted in scores.
const SCORES_OF_A_POSITION: usize = 8;
/// Memory of a listed token, counted in scores.
const SCORES_OF_A_TOKEN: usize = 4;

impl AuditMetrics {
    /// Returns the faults of the averages, the profile and the selected tokens, with pointers relative to the metrics.
    /// `methods` are those of the request, and `grouped` is true if any sample names a group.
    pub fn option_faults(&self, methods: &[LabelledMethod], grouped: bool) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.average.len() > 1 {
            let detail = format!("`group` is listed {} times", self.average.len());
            faults.push(Fault::new("/average", detail));
        }
        for (pointer, given) in
            [("/average", !self.average.is_empty()), ("/position_profile/by_group", self.position_profile.by_group)]
        {
            if given && !grouped {
                faults.push(Fault::new(pointer, "no sample names a `group`"));
            }
        }
        if let Some(positions) = self.position_profile.positions.filter(|count| !(1..=MOST_POSITIONS).contains(count)) {
            let detail = format!("positions is {positions}, outside 1 to {MOST_POSITIONS}");
            faults.push(Fault::new("/position_profile/positions", detail));
        }
        let detail = self.selected_tokens.and_then(|count| tokens_fault(count, methods));
        faults.extend(detail.map(|detail| Fault::new("/selected_tokens", detail)));
        faults
    }

    /// Maximum memory that these options take in a report on `groups` groups, counted in scores.
    pub fn option_cost(&self, groups: usize) -> usize {
        let ProfileOptions { by_group, positions } = self.position_profile;
        let positions = positions.unwrap_or(MOST_GROUP_POSITIONS).min(MOST_GROUP_POSITIONS);
        let of_profiles = if by_group { groups.saturating_mul(positions * SCORES_OF_A_POSITION) } else { 0 };
        let of_tokens = self.selected_tokens.unwrap_or(0).min(MOST_TOKENS) * 2 * MOST_SELECTIONS * SCORES_OF_A_TOKEN;
        of_profiles.saturating_add(of_tokens)
    }
}

fn tokens_fault(count: usize, methods: &[LabelledMethod]) -> Option<String> {
    if !(1..=MOST_TOKENS).contains(&count) {
        return Some(format!("selected_tokens is {count}, outside 1 to {MOST_TOKENS}"));
    }
    // If the methods themselves have faults, there are none to check.
    match token_selections(methods).len() {
        0 if !methods.is_empty() => Some("no method of the request is `min_k` or `min_k_plus_plus`".to_owned()),
        number if number > MOST_SELECTIONS => Some(format!(
            "`min_k` and `min_k_plus_plus` select tokens in {number} different ways; the limit is {MOST_SELECTIONS}"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mia::methods::{MethodRequest, Scope, default_methods, resolve};
    use serde_json::{Value, json};

    fn metrics(options: Value) -> AuditMetrics {
        serde_json::from_value(options).expect("metrics")
    }

    fn methods(requests: Value) -> Vec<LabelledMethod> {
        let requests: Vec<MethodRequest> = serde_json::from_value(requests).expect("requests");
        resolve(&requests, &Scope::default()).expect("methods")
    }

    #[test]
    fn by_default_nothing_is_added() {
        let metrics = metrics(json!({ "position_profile": null }));
        assert_eq!(metrics, AuditMetrics::default());
        assert_eq!((metrics.option_faults(&default_methods(), false), metrics.option_cost(9)), (Vec::new(), 0));
    }

    #[test]
    fn faults_have_pointers_and_name_what_is_allowed() {
        let grid: Vec<f64> = (1..=17).map(|k| f64::from(k) / 20.0).collect();
        for (options, requests, pointer, words) in [
            (json!({ "average": ["group"] }), json!(["loss"]), "/average", "no sample names a `group`"),
            (
                json!({ "position_profile": { "by_group": true } }),
                json!(["loss"]),
                "/position_profile/by_group",
                "no sample names",
            ),
            (
                json!({ "position_profile": { "positions": 0 } }),
                json!(["loss"]),
                "/position_profile/positions",
                "outside 1 to 4096",
            ),
            (json!({ "selected_tokens": 0 }), json!(["min_k"]), "/selected_tokens", "outside 1 to 1000"),
            (json!({ "selected_tokens": 5 }), json!(["loss", "max_k"]), "/selected_tokens", "`min_k_plus_plus`"),
            (
                json!({ "selected_tokens": 5 }),
                json!([{ "name": "min_k", "k": grid }]),
                "/selected_tokens",
                "17 different ways; the limit is 16",
            ),
        ] {
            let faults = metrics(options).option_faults(&methods(requests), false);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].pointer == pointer && faults[0].detail.contains(words), "{faults:?}");
        }
        let twice = metrics(json!({ "average": ["group", "group"] })).option_faults(&[], true);
        assert_eq!(twice[0].detail, "`group` is listed 2 times");
        for bad in [json!({ "average": ["model"] }), json!({ "position_profile": [true] })] {
            assert!(serde_json::from_value::<AuditMetrics>(bad).is_err());
        }
    }

    #[test]
    fn what_is_listed_counts_in_the_cost() {
        let both = metrics(json!({ "selected_tokens": 10, "position_profile": { "by_group": true } }));
        assert_eq!(both.option_cost(3), 10 * 2 * 16 * 4 + 3 * 1024 * 8);
        let fewer = metrics(json!({ "position_profile": { "by_group": true, "positions": 16 } }));
        assert_eq!(fewer.option_cost(3), 3 * 16 * 8);
    }
}
