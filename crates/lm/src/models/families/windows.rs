//! Sliding windows of attention in the formats of configurations.

use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use serde_json::Value;

/// Which layers attend only to `sliding_window` keys if the configuration does not list `layer_types`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// None; the keys have no meaning and are refused.
    Never,
    /// All (Mistral), with the default for an absent `sliding_window`.
    EveryLayer { default: Option<usize> },
    /// The layers from `max_window_layers`, and only with `use_sliding_window` (Qwen).
    FromLayer,
    /// The first, the third and so on (Gemma 2).
    EveryOther,
}

/// The window of each layer.
pub fn windows(config: &mut ConfigReader, layers: usize, rule: Windows) -> Result<Vec<Option<usize>>, ModelError> {
    if rule == Windows::Never {
        return Ok(vec![None; layers]);
    }
    let default = if let Windows::EveryLayer { default } = rule { default } else { Some(4096) };
    let window = config.count_or_null("sliding_window", default)?;
    // An older name that some files contain in addition.
    if let (Some(window), Some(_)) = (window, config.get("sliding_window_size"))
        && config.count("sliding_window_size")? != window
    {
        return Err(config.error("sliding_window_size", format!("differs from sliding_window {window}")));
    }
    let switched_on = rule != Windows::FromLayer || config.flag_or("use_sliding_window", false)?;
    let window = window.filter(|_| switched_on);
    let first = first_sliding_layer(config, rule)?;
    let slides = listed_layers(config, layers)?.unwrap_or_else(|| {
        let by_rule = |layer: usize| match rule {
            Windows::FromLayer => layer as u64 >= first,
            Windows::EveryOther => layer.is_multiple_of(2),
            Windows::EveryLayer { .. } => true,
            Windows::Never => false,
        };
        (0..layers).map(by_rule).collect()
    });
    Ok(slides.into_iter().map(|slides| window.filter(|_| slides)).collect())
}

/// The value of `max_window_layers`, which only [`Windows::FromLayer`] uses.
fn first_sliding_layer(config: &mut ConfigReader, rule: Windows) -> Result<u64, ModelError> {
    match config.get("max_window_layers").filter(|_| rule == Windows::FromLayer) {
        None => Ok(28),
        Some(layers) => layers.as_u64().ok_or_else(|| {
            config.error("max_window_layers", format!("expected a non-negative integer, found {layers}"))
        }),
    }
}

/// For each layer whether `layer_types` gives it a window; `None` if the key is absent.
fn listed_layers(config: &mut ConfigReader, layers: usize) -> Result<Option<Vec<bool>>, ModelError> {
    let Some(list) = config.get("layer_types") else { return Ok(None) };
    let slides = |kind: &Value| match kind.as_str()? {
        "full_attention" => Some(false),
        "sliding_attention" => Some(true),
        _ => None,
    };
    let kinds = list.as_array().filter(|kinds| kinds.len() == layers);
    let slides = kinds.and_then(|kinds| kinds.iter().map(slides).collect::<Option<Vec<_>>>());
    slides.map(Some).ok_or_else(|| {
        let expected = format!("expected a list of {layers} entries, full_attention or sliding_attention");
        config.error("layer_types", format!("{expected}, found {list}"))
    })
}
