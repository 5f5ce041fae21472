//! The flags that name methods, their parameters and their weights.

use crate::wire::in_words;
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use mia::methods::{MethodName, MethodRequest, catalogue, parse_list};
use serde_json::{Map, Value, json};

/// The methods that parameters apply to where none are named.
const DEFAULTS: &str = "loss,zlib,min_k,min_k_plus_plus";

/// The value of `--decay` that stands for no weights.
const NO_DECAY: &str = "none";

/// Methods, and values that each of them is combined with.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Methods")]
pub struct MethodFlags {
    /// Names or labels separated by commas, or a JSON array as in a request; `pdr-audit methods` lists the names. By default loss,
    /// zlib, min_k and min_k_plus_plus, plain and with linear PDR, and of `test` the method that its verdict is about.
    #[arg(long, value_name = "METHODS")]
    pub methods: Option<String>,
    /// Shares of the tokens that methods select, as in `0.1,0.2`: each method that takes `k` is computed with each.
    #[arg(long, value_name = "SHARES", value_delimiter = ',')]
    pub k: Vec<f64>,
    /// Decays of PDR, as in `linear,exponential`: each method that takes weights is computed with each; `none` is the method
    /// without weights.
    #[arg(long, value_name = "DECAYS", value_delimiter = ',')]
    pub decay: Vec<String>,
    /// Rates at which the weights fall, as in `0.5,1`: each decay is computed with each. Without `--decay` it is linear.
    #[arg(long, value_name = "RATES", value_delimiter = ',')]
    pub alpha: Vec<f64>,
    /// A list of methods with the parameters of the PDR paper, as in `paper_wikimia`, in addition to `--methods`.
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Length of the texts in words, by which `paper_wikimia` and `paper_ablation` choose parameters: 32, 64 or 128.
    #[arg(long, value_name = "WORDS", requires = "preset")]
    pub length: Option<usize>,
}

impl MethodFlags {
    /// Returns true if any of the flags is given.
    pub fn is_given(&self) -> bool {
        let Self { methods, k, decay, alpha, preset, length: _ } = self;
        methods.is_some() || !k.is_empty() || !decay.is_empty() || !alpha.is_empty() || preset.is_some()
    }

    /// The methods that the flags ask for; `None` where they ask for none.
    ///
    /// # Errors
    /// Where `--methods` cannot be read, or a flag fits none of the methods.
    pub fn requests(&self) -> Result<Option<Vec<MethodRequest>>> {
        if !self.is_given() {
            return Ok(None);
        }
        let has_parameters = !self.k.is_empty() || !self.decay.is_empty() || !self.alpha.is_empty();
        let default = if has_parameters && self.preset.is_none() { DEFAULTS } else { "" };
        let list = self.methods.as_deref().unwrap_or(default);
        let mut requests = if list.is_empty() && self.methods.is_none() { Vec::new() } else { objects(list)? };
        self.apply_shares(&mut requests)?;
        let mut requests = self.weighted(requests)?;
        requests.extend(self.preset.as_ref().map(|preset| {
            let length = self.length.map(|length| ("length".to_owned(), json!(length)));
            [("preset".to_owned(), json!(preset))].into_iter().chain(length).collect()
        }));
        let request = |object: Map<String, Value>| match (object.len(), object.get("name")) {
            (1, Some(Value::String(name))) => Ok(MethodRequest::Name(name.clone())),
            _ => Ok(serde_json::from_value(Value::Object(object))?),
        };
        requests.into_iter().map(request).collect::<Result<_>>().map(Some)
    }

    /// Gives `k` to the methods that take it and have none of their own.
    fn apply_shares(&self, requests: &mut [Map<String, Value>]) -> Result<()> {
        if self.k.is_empty() {
            return Ok(());
        }
        let takes = |name: MethodName| name.definition().parameters.iter().any(|parameter| parameter.name == "k");
        let mut has_fit = false;
        for request in requests.iter_mut().filter(|request| name(request).is_some_and(takes)) {
            has_fit |= !request.contains_key("k");
            request.entry("k").or_insert_with(|| json!(self.k));
        }
        ensure!(has_fit, "--k: none of the methods {}", without(requests, "takes `k` and has none of its own"));
        Ok(())
    }

    /// Each method with each decay, where it takes weights and has none of its own.
    fn weighted(&self, requests: Vec<Map<String, Value>>) -> Result<Vec<Map<String, Value>>> {
        let weights = self.weights()?;
        if weights.is_empty() {
            return Ok(requests);
        }
        let entries = catalogue().methods;
        let accepts = |name| entries.iter().any(|entry| entry.name == name && entry.pdr_refused.is_none());
        let is_free = |request: &Map<String, Value>| !request.contains_key("pdr") && name(request).is_some_and(accepts);
        let flag = if self.decay.is_empty() { "--alpha" } else { "--decay" };
        ensure!(
            requests.iter().any(is_free),
            "{flag}: none of the methods {}",
            without(&requests, "takes weights and has none of its own")
        );
        let with = |request: Map<String, Value>| -> Vec<Map<String, Value>> {
            if !is_free(&request) {
                return vec![request];
            }
            let one = |weight: &Option<Value>| {
                let pdr = weight.clone().map(|pdr| ("pdr".to_owned(), pdr));
                request.clone().into_iter().chain(pdr).collect()
            };
            weights.iter().map(one).collect()
        };
        Ok(requests.into_iter().flat_map(with).collect())
    }

    /// The `pdr` of each decay; `None` for no weights.
    fn weights(&self) -> Result<Vec<Option<Value>>> {
        if self.decay.is_empty() && self.alpha.is_empty() {
            return Ok(Vec::new());
        }
        let decays = catalogue().decays;
        // Unknown names are refused with the methods.
        let takes_alpha = |decay: &str| {
            let known = decays.iter().find(|known| known.name == decay);
            known.is_none_or(|known| known.parameters.iter().any(|parameter| parameter.name == "alpha"))
        };
        let linear = ["linear".to_owned()];
        let named = if self.decay.is_empty() { &linear[..] } else { &self.decay };
        let mut has_fit = self.alpha.is_empty();
        let weight = |decay: &String| match decay.trim() {
            NO_DECAY => Ok(None),
            decay if !takes_alpha(decay) => Ok(Some(json!({ "decay": decay }))),
            decay if self.alpha.is_empty() => bail!("--decay: `{decay}` takes --alpha, as in `--alpha 0.5,1`"),
            decay => {
                has_fit = true;
                Ok(Some(json!({ "decay": decay, "alpha": self.alpha })))
            }
        };
        let weights = named.iter().map(weight).collect::<Result<Vec<_>>>()?;
        ensure!(has_fit, "--alpha: none of the decays {} takes it", named.join(", "));
        Ok(weights)
    }
}

/// The methods of a list as objects.
fn objects(list: &str) -> Result<Vec<Map<String, Value>>> {
    let requests = parse_list(list)
        .map_err(|error| anyhow!(in_words(&error.to_string())))
        .context("--methods is not a JSON array of methods")?;
    let object = |request: &MethodRequest| match serde_json::to_value(request)? {
        Value::Object(object) => Ok(object),
        name => Ok(Map::from_iter([("name".to_owned(), name)])),
    };
    requests.iter().map(object).collect()
}

/// The name of the method of a request, where it is one.
fn name(request: &Map<String, Value>) -> Option<MethodName> {
    request.get("name")?.as_str()?.parse().ok()
}

/// The end of an error: the names of the methods, and what none of them does.
fn without(requests: &[Map<String, Value>], what: &str) -> String {
    let names = requests.iter().filter_map(|request| request.get("name").or(request.get("preset"))?.as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() { format!("of a preset {what}") } else { format!("{} {what}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use mia::methods::{Scope, resolve};

    #[derive(Parser)]
    struct FlagsParser {
        #[command(flatten)]
        flags: MethodFlags,
    }

    fn requests(flags: &str) -> Result<Option<Vec<MethodRequest>>> {
        FlagsParser::try_parse_from(["test"].into_iter().chain(flags.split_whitespace()))?.flags.requests()
    }

    fn labels(flags: &str) -> Vec<String> {
        let requests = requests(flags).unwrap().unwrap();
        resolve(&requests, &Scope::default()).unwrap().iter().map(|method| method.label.to_string()).collect()
    }

    #[test]
    fn flags_are_combined_to_a_product() {
        for (flags, expected) in [
            ("--methods loss,min_k", &["loss", "min_k(k=0.2)"][..]),
            ("--methods loss,min_k --k 0.1,0.3", &["loss", "min_k(k=0.1)", "min_k(k=0.3)"]),
            ("--methods min_k(k=0.4),max_k --k 0.1", &["min_k(k=0.4)", "max_k(k=0.1)"]),
            ("--k 0.1", &["loss", "zlib", "min_k(k=0.1)", "min_k_plus_plus(k=0.1)"]),
            ("--methods loss --alpha 0.5,1", &["loss+linear(alpha=0.5)", "loss+linear(alpha=1)"]),
            (
                "--methods loss,gap_k --decay none,exponential,slope --alpha 0.1",
                &["loss", "loss+exponential(alpha=0.1)", "loss+slope", "gap_k(k=0.2,window=3)"],
            ),
            (
                "--methods min_k --k 0.1,0.2 --decay linear --alpha 0,1",
                &[
                    "min_k(k=0.1)+linear(alpha=0)",
                    "min_k(k=0.1)+linear(alpha=1)",
                    "min_k(k=0.2)+linear(alpha=0)",
                    "min_k(k=0.2)+linear(alpha=1)",
                ],
            ),
            ("--methods loss+slope,zlib --alpha 1", &["loss+slope", "zlib+linear(alpha=1)"]),
        ] {
            assert_eq!(labels(flags), expected, "{flags}");
        }
        let preset = labels("--methods loss --preset paper_mimir");
        assert!(preset.len() > 10 && preset[0] == "loss", "{preset:?}");
        assert!(requests("").unwrap().is_none());
    }

    #[test]
    fn a_flag_that_fits_nothing_is_refused_by_its_name() {
        for (flags, words) in [
            ("--methods loss,zlib --k 0.1", "--k: none of the methods loss, zlib takes `k`"),
            ("--methods min_k(k=0.1) --k 0.1", "has none of its own"),
            ("--methods gap_k --decay slope", "--decay: none of the methods gap_k takes weights"),
            ("--methods gap_k --alpha 1", "--alpha: none of the methods gap_k takes weights"),
            ("--methods loss --decay slope --alpha 1", "--alpha: none of the decays slope takes it"),
            ("--methods loss --decay linear", "--decay: `linear` takes --alpha, as in `--alpha 0.5,1`"),
            ("--preset paper_mimir --k 0.1", "--k: none of the methods of a preset takes `k`"),
            ("--length 32", "--preset"),
            ("--methods [1]", "--methods is not a JSON array of methods"),
        ] {
            let error = format!("{:#}", requests(flags).unwrap_err());
            assert!(error.contains(words), "{flags}: {error}");
        }
    }
}
