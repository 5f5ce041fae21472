//! Reading and refusal of configurations.

use super::arch as config;
use super::arch::{Generation, MambaArch};
use crate::models::config_reader::ConfigReader;
use crate::models::error::ModelError;
use serde_json::{Value, json};

/// The configuration with some keys changed, or treated as absent if they become null.
fn read(mut config: Value, changes: &Value) -> Result<MambaArch, ModelError> {
    let object = config.as_object_mut().unwrap();
    object.extend(changes.as_object().unwrap().clone());
    let mut reader = ConfigReader::new(object);
    let arch = if object["model_type"] == "mamba" { config::mamba(&mut reader) } else { config::mamba2(&mut reader) };
    arch.and_then(|arch| reader.finish().map(|()| arch))
}

/// Every key of a file on the Hub, including those of the authors' own format.
fn first() -> Value {
    json!({
        "model_type": "mamba", "vocab_size": 50280, "hidden_size": 768, "d_model": 768, "n_layer": 24,
        "num_hidden_layers": 24, "state_size": 16, "conv_kernel": 4, "expand": 2, "d_inner": 1536,
        "intermediate_size": 1536, "time_step_rank": 48, "use_bias": false, "use_conv_bias": true,
        "hidden_act": "silu", "layer_norm_epsilon": 1e-5, "rms_norm": true, "ssm_cfg": {}, "fused_add_norm": true,
        "residual_in_fp32": true, "rescale_prenorm_residual": false, "pad_vocab_size_multiple": 8,
        "time_step_floor": 1e-4, "time_step_init_scheme": "random", "time_step_max": 0.1, "time_step_min": 0.001,
        "time_step_scale": 1.0, "bos_token_id": 0, "torch_dtype": "float32"
    })
}

fn second() -> Value {
    json!({
        "model_type": "mamba2", "vocab_size": 420, "hidden_size": 48, "num_hidden_layers": 2, "num_heads": 6,
        "head_dim": 16, "n_groups": 2, "state_size": 16, "chunk_size": 16, "norm_before_gate": true,
        "time_step_limit": [0.0, {"__float__": "Infinity"}], "time_step_rank": 3
    })
}

fn refused(config: Value, changes: Value) -> String {
    match read(config, &changes) {
        Err(ModelError::Config { key, .. }) => key,
        other => panic!("{changes} gave {other:?}"),
    }
}

#[test]
fn a_file_of_the_hub_is_read_whole() {
    let arch = read(first(), &json!({})).unwrap();
    let want = MambaArch {
        vocab_size: 50280,
        hidden_size: 768,
        layers: 24,
        intermediate_size: 1536,
        state_size: 16,
        conv_kernel: 4,
        norm_eps: 1e-5,
        projection_bias: false,
        conv_bias: true,
        tied_head: true,
        generation: Generation::Mamba { time_step_rank: 48 },
    };
    assert_eq!(arch, want);
    // The rank follows from the hidden size if the file does not set it, and duplicate keys may be absent.
    for rank in [json!(null), json!("auto")] {
        let changes = json!({"time_step_rank": rank, "d_model": null, "d_inner": null, "ssm_cfg": null});
        assert_eq!(read(first(), &changes).unwrap(), want);
    }
    let ssm = json!({"ssm_cfg": {"d_state": 16, "d_conv": 4, "expand": 2}});
    assert_eq!(read(first(), &ssm).unwrap(), want);
}

#[test]
fn mamba_2_has_heads_and_limits() {
    let arch = read(second(), &json!({})).unwrap();
    let limits = |limit| Generation::Mamba2 { heads: 6, head_dim: 16, groups: 2, time_step_limit: limit };
    assert_eq!((arch.intermediate_size, arch.tied_head), (96, false));
    assert_eq!(arch.generation, limits((0.0, f64::INFINITY)));
    assert_eq!((arch.conv_channels(), arch.in_width()), (160, 262));
    assert_eq!(read(second(), &json!({"time_step_limit": null})).unwrap(), arch);
    let bounded = read(second(), &json!({"time_step_limit": [0.001, 0.5]})).unwrap();
    assert_eq!(bounded.generation, limits((0.001, 0.5)));
}

#[test]
fn what_would_change_the_mathematics_is_refused_by_name() {
    for (key, value) in [
        ("hidden_act", json!("gelu")),
        ("rms_norm", json!(false)),
        ("d_model", json!(512)),
        ("d_inner", json!(768)),
        ("n_layer", json!(25)),
        ("intermediate_size", json!(3072)),
        ("expand", json!(3)),
        ("expand", json!(1.5)),
        ("expand", json!(1u64 << 31)),
        ("time_step_rank", json!("half")),
        ("time_step_rank", json!(0)),
        ("vocab_size", json!(null)),
        ("hidden_size", json!(null)),
        ("attn_layer_idx", json!([1])),
    ] {
        let named = refused(first(), json!({ key: value }));
        // A wrong `expand` is detected in its product.
        assert!(named == key || (key == "expand" && named == "intermediate_size"), "{key}: {named}");
    }
    assert_eq!(refused(first(), json!({"ssm_cfg": {"d_state": 8}})), "ssm_cfg.d_state");
    assert_eq!(refused(first(), json!({"ssm_cfg": {"layer": "Mamba3"}})), "ssm_cfg.layer");
    assert_eq!(refused(second(), json!({"n_groups": 4})), "n_groups");
    assert_eq!(refused(second(), json!({"num_heads": 4})), "num_heads");
    assert_eq!(refused(second(), json!({"expand": 1u64 << 31, "hidden_size": 1u64 << 31})), "expand");
    for limit in [json!([0.1]), json!([0.5, 0.1]), json!([-1.0, 1.0]), json!([0, {"__float__": "NaN"}]), json!(1)] {
        assert_eq!(refused(second(), json!({"time_step_limit": limit})), "time_step_limit");
    }
}
