//! What a request says of the method itself.

use super::super::base::{Base, NamedCounts, Reading};
use super::super::grid::Grid;
use super::super::name::MethodName;
use super::super::parameters::{self, A, COUNT, GAMMA, MAX_ENTROPY, MAX_PREFIX_TEXTS, WINDOW};
use super::super::range::Fraction;
use super::super::request::GeneratorRequest;
use super::super::texts::Texts;
use super::super::view::Generator;
use super::{Fault, Faults, One, unknown};
use std::sync::Arc;

impl One<'_> {
    /// One for each value of `k`, or one.
    pub(super) fn bases(&self, name: MethodName, faults: &mut Faults) -> Option<Vec<Base>> {
        let found = faults.0.len();
        self.strangers(name, faults);
        let bases = match name.default_k() {
            Some(default) => self.selecting(name, default, faults),
            None => faults.keep(self.base(name)).map(|base| vec![base]),
        };
        bases.filter(|_| faults.0.len() == found)
    }

    /// Parameters that the method does not take.
    fn strangers(&self, name: MethodName, faults: &mut Faults) {
        let object = self.object;
        let number = |value: Option<f64>| value.map(|value| format!("{value:?}"));
        let list = |texts: &Option<Vec<String>>| texts.as_ref().map(|texts| format!("a list of {}", texts.len()));
        let given = [
            ("k", object.k.as_ref().map(shown)),
            ("reference", object.reference.clone()),
            ("generator", object.generator.as_ref().map(|generator| generator.model.clone())),
            ("prefix", list(&object.prefix)),
            ("align", object.align.map(|align| format!("{align:?}").to_lowercase())),
            ("non_members", list(&object.non_members)),
            ("members", list(&object.members)),
            ("gamma", number(object.gamma)),
            ("window", object.window.map(|window| window.to_string())),
            ("max_entropy", number(object.max_entropy)),
            ("counts", object.counts.clone()),
            ("a", number(object.a)),
        ];
        for (field, value) in given {
            if let Some(value) = value.filter(|_| !parameters::of(name).contains(&field)) {
                let why = if field == "k" { "uses every token and takes none" } else { "takes none" };
                let detail = format!("{field} is {value}, but `{name}` {why}");
                faults.keep::<()>(Err(self.fault(field, detail)));
            }
        }
    }

    fn selecting(&self, name: MethodName, default: Fraction, faults: &mut Faults) -> Option<Vec<Base>> {
        let ks = match &self.object.k {
            None => Some(vec![default]),
            Some(grid) if grid.len() == 0 => faults.keep(Err(self.fault("k", "the list of values is empty"))),
            Some(grid) => {
                let values = grid.values();
                let kept: Vec<Fraction> =
                    values.iter().filter_map(|(k, at)| faults.keep(self.fraction("k", at, *k))).collect();
                (kept.len() == values.len()).then_some(kept)
            }
        };
        let window = faults.keep(self.count("window", self.object.window, WINDOW));
        let max_entropy = faults.keep(self.number("max_entropy", self.object.max_entropy, MAX_ENTROPY));
        let (ks, window, max_entropy) = (ks?, window?, max_entropy?);
        let base = |k| match name {
            MethodName::GapK => Base::GapK { k, window },
            MethodName::Surp => Base::Surp { k, max_entropy },
            MethodName::MinKPlusPlus => Base::MinKPlusPlus { k },
            _ => Base::MinK { k },
        };
        Some(ks.into_iter().map(base).collect())
    }

    fn base(&self, name: MethodName) -> Result<Base, Fault> {
        let object = self.object;
        Ok(match name {
            MethodName::Ref => Base::Ref { reference: self.reference()?, reading: Reading::SameIds },
            MethodName::Zlib => Base::Zlib,
            MethodName::Lowercase => Base::Lowercase,
            MethodName::Neighbor => Base::Neighbor {
                generator: object.generator.as_ref().map(|generator| self.generator(generator)).transpose()?,
            },
            MethodName::Recall => {
                Base::Recall { prefix: self.texts("prefix", &object.prefix)?, align: object.align.unwrap_or_default() }
            }
            MethodName::ConRecall => Base::ConRecall {
                non_members: self.texts("non_members", &object.non_members)?,
                members: self.texts("members", &object.members)?,
                gamma: self.number("gamma", object.gamma, GAMMA)?,
            },
            MethodName::DcPdd => Base::DcPdd { counts: self.counts()?, a: self.number("a", object.a, A)? },
            _ => Base::Loss,
        })
    }

    pub(super) fn reference(&self) -> Result<Arc<str>, Fault> {
        match (&self.object.reference, self.scope.reference) {
            (Some(id), _) => self.model("reference", id),
            (None, Some(id)) => Ok(id.into()),
            (None, None) => {
                let detail = "no reference model: name one as `reference`, or give the model one in the settings";
                Err(self.fault("reference", detail))
            }
        }
    }

    pub(super) fn generator(&self, request: &GeneratorRequest) -> Result<Generator, Fault> {
        let count = self.count("generator/count", request.count, COUNT)?;
        Ok(Generator { model: self.model("generator/model", &request.model)?, count })
    }

    fn texts(&self, field: &str, texts: &Option<Vec<String>>) -> Result<Texts, Fault> {
        let Some(texts) = texts else {
            return Err(self.fault(field, format!("missing field `{field}`: texts to put before the text")));
        };
        let count = texts.len();
        if !(1..=MAX_PREFIX_TEXTS).contains(&count) {
            let detail = format!("there are {count} texts; there must be 1 to {MAX_PREFIX_TEXTS}");
            return Err(self.fault(field, detail));
        }
        match texts.iter().position(String::is_empty) {
            Some(empty) => Err(self.fault(&format!("{field}/{empty}"), "the text is empty")),
            None => Ok(Texts::new(texts.clone())),
        }
    }

    fn counts(&self) -> Result<NamedCounts, Fault> {
        let known = &*self.scope.counts;
        let ids: Vec<&str> = known.iter().map(|counts| &*counts.id).collect();
        match (&self.object.counts, known) {
            (None, [only]) => Ok(only.clone()),
            (_, []) => Err(self.fault(
                "counts",
                "there are no token counts: `pdr-audit count-tokens` makes them and `[[token_counts]]` names them",
            )),
            (None, _) => {
                Err(self.fault("counts", format!("missing field `counts`; configured are {}", ids.join(", "))))
            }
            (Some(id), _) => {
                let found = known.iter().find(|counts| *counts.id == **id).cloned();
                found.ok_or_else(|| unknown("token counts", id, &ids, &format!("{}/counts", self.at)))
            }
        }
    }
}

fn shown(grid: &Grid) -> String {
    match grid {
        Grid::One(value) => format!("{value:?}"),
        Grid::Many(values) => format!("a list of {}", values.len()),
    }
}
