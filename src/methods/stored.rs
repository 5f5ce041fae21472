//! Reads a method back from what it serialises as: the echo of its request, which holds every parameter.

use super::base::{Base, NamedCounts, Reading};
use super::labelled::LabelledMethod;
use super::request::{MethodObject, MethodRequest};
use super::resolve::resolve;
use super::scope::Scope;
use super::token_counts::TokenCounts;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::sync::Arc;

impl<'de> Deserialize<'de> for LabelledMethod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        fields.remove("extension");
        let reads_own_ids = fields.remove("note").is_some();
        let mut object: MethodObject = serde_json::from_value(Value::Object(fields)).map_err(Error::custom)?;
        let label = object.label.take().ok_or_else(|| Error::missing_field("label"))?;
        let generator = object.generator.as_ref().map(|generator| generator.model.clone());
        let models = [object.reference.clone(), generator];
        let unbound = |id: &String| NamedCounts { id: id.as_str().into(), table: Arc::new(TokenCounts::unbound()) };
        let scope = Scope {
            models: models.iter().flatten().map(String::as_str).collect(),
            reference: None,
            counts: object.counts.iter().map(unbound).collect(),
            audit: true,
            neighbors: true,
        };
        let faults = |faults: Vec<super::Fault>| {
            Error::custom(faults.into_iter().map(|fault| fault.detail).collect::<Vec<_>>().join("; "))
        };
        let methods = resolve(&[MethodRequest::Object(Box::new(object.clone()))], &scope).map_err(faults)?;
        let [mut method] = <[LabelledMethod; 1]>::try_from(methods)
            .map_err(|methods| Error::custom(format!("{} methods in place of one", methods.len())))?;
        method.label = label.into();
        if let Base::Ref { reading, .. } = &mut method.method.base
            && reads_own_ids
        {
            *reading = Reading::OwnIds;
        }
        Ok(method)
    }
}
