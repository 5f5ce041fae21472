//! Sliding windows of attention as configurations spell them.

use crate::models::ModelError;
use crate::models::config_reader::ConfigReader;

/// Which layers see only `sliding_window` keys where the configuration does not list `layer_types`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Windows {
    /// None; the keys mean nothing and are refused.
    Never,
    /// All (Mistral), with what holds where `sliding_window` is absent.
    EveryLayer { default: Option<usize> },
    /// Those from `max_window_layers` on, and only with `use_sliding_window` (Qwen).
    FromLayer,
    /// The first, the third and so on (Gemma 2).
    EveryOther,
}

/// The window of each layer.
///
/// # Errors
/// [`ModelError::Config`] naming a list of another length or with other words in it.
pub fn windows(config: &mut ConfigReader, layers: usize, rule: Windows) -> Result<Vec<Option<usize>>, ModelError> {
    if rule == Windows::Never {
        return Ok(vec![None; layers]);
    }
    let default = if let Windows::EveryLayer { default } = rule { default } else { Some(4096) };
    let window = config.count_or_null("sliding_window", default)?;
    // An older name that stands in some files beside the other.
    if let (Some(window), Some(_)) = (window, config.get("sliding_window_size"))
        && config.count("sliding_window_size")? != window
    {
        return Err(config.fault("sliding_window_size", format!("not the same as sliding_window {window}")));
    }
    let switched_on = rule != Windows::FromLayer || config.flag_or("use_sliding_window", false)?;
    let window = window.filter(|_| switched_on);
    let first = match config.get("max_window_layers").filter(|_| rule == Windows::FromLayer) {
        None => 28,
        Some(layers) => layers
            .as_u64()
            .ok_or_else(|| config.fault("max_window_layers", format!("expected a whole number, found {layers}")))?,
    };
    let slides: Vec<bool> = match config.get("layer_types") {
        Some(list) => {
            let kinds = list.as_array().filter(|kinds| kinds.len() == layers).and_then(|kinds| {
                let slides = |kind: &serde_json::Value| match kind.as_str()? {
                    "full_attention" => Some(false),
                    "sliding_attention" => Some(true),
                    _ => None,
                };
                kinds.iter().map(slides).collect::<Option<Vec<_>>>()
            });
            let wanted = format!("expected {layers} times full_attention or sliding_attention, found {list}");
            kinds.ok_or_else(|| config.fault("layer_types", wanted))?
        }
        None => (0..layers)
            .map(|layer| match rule {
                Windows::FromLayer => layer as u64 >= first,
                Windows::EveryOther => layer % 2 == 0,
                Windows::EveryLayer { .. } => true,
                Windows::Never => false,
            })
            .collect(),
    };
    Ok(slides.into_iter().map(|slides| window.filter(|_| slides)).collect())
}
