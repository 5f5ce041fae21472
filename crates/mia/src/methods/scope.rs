//! The surroundings of a request's methods: models, corpora and texts that they may refer to, and the entry that asks for them.

use super::access::Access;
use super::fault::Fault;
use super::grid::{EMPTY, Grid};
use super::value::{GivenParameters, ParameterValue};
use std::fmt;

/// The models, corpora and texts around a request.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    /// Ids of all models.
    pub models: Vec<&'a str>,
    /// Ids of those that give log-probabilities of tokens alone, and not their whole distribution.
    pub without_logits: Vec<&'a str>,
    /// Ids of those that give log-probabilities of tokens without that of their first choice.
    pub without_first_choice: Vec<&'a str>,
    /// The id of the model that is asked about.
    pub model: Option<&'a str>,
    /// Why no adapter of it can be tuned, where none can.
    pub untunable: Option<Untunable>,
    /// The reference model where a method names none.
    pub reference: Option<&'a str>,
    /// The model that the one asked about was tuned from, where that is known.
    pub base: Option<&'a str>,
    /// Ids of the token counts of reference corpora.
    pub token_counts: Vec<&'a str>,
    /// True if the texts are those of an audit, which are known together.
    pub audit: bool,
    /// True if every text comes with neighbours.
    pub neighbors: bool,
}

/// The reason why no adapter of a model can be tuned. In words, it goes on from the model's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untunable {
    Served,
    Gguf,
    Streamed,
}

impl Untunable {
    /// Returns true if adapters that were tuned elsewhere can be used.
    pub fn takes_adapters(self) -> bool {
        self == Self::Streamed
    }
}

impl fmt::Display for Untunable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Served => "which is served elsewhere: its weights are not here",
            Self::Gguf => "which is in GGUF: adapters are of the original that it was made from",
            Self::Streamed => "whose layers are streamed: tuning needs all of them in memory",
        })
    }
}

impl<'a> Scope<'a> {
    /// Returns true if the model that is asked about gives its whole distribution at each token.
    pub fn has_full_logits(&self) -> bool {
        !self.model.is_some_and(|model| self.without_logits.contains(&model))
    }

    /// Returns what the model that is asked about does not give of what methods need, each with the models that do not give it either.
    pub fn lacking(&self) -> impl Iterator<Item = (Access, &[&'a str])> {
        let lists = [
            (Access::FullLogits, self.without_logits.as_slice()),
            (Access::FirstChoice, self.without_first_choice.as_slice()),
        ];
        lists.into_iter().filter(|(_, without)| self.model.is_some_and(|model| without.contains(&model)))
    }

    /// Describes what the model that is asked about lacks, for a sentence that says that something needs it.
    pub fn lacks(&self, access: Access) -> String {
        let model = self.model.unwrap_or_default();
        match access {
            Access::FirstChoice => format!(
                "`first_choice`, the log-probability of the model's first choice at each token, which the server of model \
                 `{model}` does not give"
            ),
            _ => format!(
                "`full_logits`, the model's whole distribution at each token; the server of model `{model}` gives \
                 log-probabilities alone"
            ),
        }
    }

    /// The id of an adapter that a request names: its own, or its name among those of the model that is asked about.
    pub fn adapter(&self, name: &str) -> Option<&'a str> {
        let mut adapters = self.adapters().into_iter();
        adapters.find(|id| *id == name || id.rsplit(':').next() == Some(name))
    }

    /// The ids of all adapters of the model that is asked about.
    pub fn adapters(&self) -> Vec<&'a str> {
        let is_adapter = |id: &&str| id.split_once(':').is_some_and(|(base, _)| Some(base) == self.model);
        self.models.iter().copied().filter(is_adapter).collect()
    }
}

/// The entry of a request's list of methods that parameters are read from.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub given: &'a GivenParameters,
    /// JSON pointer to the entry.
    pub entry: &'a str,
    /// True if that entry is a name alone, which has no fields to point at.
    pub name_alone: bool,
    /// Scope of the names in the request; `None` for a method that was stored, whose names were checked before.
    pub scope: Option<&'a Scope<'a>>,
    /// Index of the value that is read from a list, for the parameter that is swept.
    pub sweep: usize,
}

impl Place<'_> {
    /// JSON pointer to a field; to the entry, where that is a name alone.
    pub fn pointer(&self, field: &str) -> String {
        if self.name_alone { self.entry.to_owned() } else { format!("{}/{field}", self.entry) }
    }

    pub fn fault(&self, field: &str, detail: impl Into<String>) -> Fault {
        Fault::new(self.pointer(field), detail)
    }

    /// A parameter that is a string, if it is given.
    pub fn string(&self, field: &str) -> Option<&str> {
        match self.given.get(field) {
            Some(ParameterValue::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Refuses the id of a model that there is not. `field` holds the id.
    pub fn check_model(&self, id: &str, field: &str) -> Result<(), Fault> {
        match self.scope {
            Some(scope) if !scope.models.contains(&id) => {
                Err(Fault::unknown("model", id, &scope.models, self.pointer(field)))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The value of a list that is read, or the only one, and the JSON pointer to it.
    pub fn swept(&self, field: &str, grid: &Grid) -> Result<(f64, String), Fault> {
        match grid.values().get(self.sweep) {
            Some((value, below)) => Ok((*value, format!("{}{below}", self.pointer(field)))),
            None => Err(self.fault(field, EMPTY)),
        }
    }
}
