//! Reads a request to score. By hand, since the number of inputs is bounded by a setting while the list is read, and derived
//! code cannot be told of it.

use super::extract::RequestBody;
use super::inputs::InputsSeed;
use super::score::ScoreRequest;
use crate::config::LimitSettings;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum ScoreField {
    Model,
    Inputs,
    Methods,
    Overflow,
    Details,
    Calibration,
}

impl RequestBody for ScoreRequest {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, limits: &LimitSettings) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ScoreRequestVisitor { inputs: limits.inputs })
    }
}

struct ScoreRequestVisitor {
    /// The limit `limits.inputs`.
    inputs: usize,
}

impl<'de> Visitor<'de> for ScoreRequestVisitor {
    type Value = ScoreRequest;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ScoreRequest, A::Error> {
        let (mut model, mut inputs, mut methods, mut overflow) = (None, None, None, None);
        let (mut details, mut calibration) = (None, None);
        while let Some(field) = map.next_key()? {
            match field {
                ScoreField::Model if model.is_none() => model = Some(map.next_value()?),
                ScoreField::Inputs if inputs.is_none() => {
                    inputs = Some(map.next_value_seed(InputsSeed { limit: self.inputs })?);
                }
                ScoreField::Methods if methods.is_none() => methods = Some(map.next_value()?),
                ScoreField::Overflow if overflow.is_none() => overflow = Some(map.next_value()?),
                ScoreField::Details if details.is_none() => details = Some(map.next_value()?),
                ScoreField::Calibration if calibration.is_none() => calibration = Some(map.next_value()?),
                ScoreField::Model => return Err(A::Error::duplicate_field("model")),
                ScoreField::Inputs => return Err(A::Error::duplicate_field("inputs")),
                ScoreField::Methods => return Err(A::Error::duplicate_field("methods")),
                ScoreField::Overflow => return Err(A::Error::duplicate_field("overflow")),
                ScoreField::Details => return Err(A::Error::duplicate_field("details")),
                ScoreField::Calibration => return Err(A::Error::duplicate_field("calibration")),
            }
        }
        Ok(ScoreRequest {
            model: model.flatten(),
            inputs: inputs.ok_or_else(|| A::Error::missing_field("inputs"))?,
            methods: methods.flatten(),
            overflow: overflow.flatten(),
            details: details.flatten(),
            calibration: calibration.flatten(),
        })
    }
}
