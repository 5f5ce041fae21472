//! Settings from all their sources; [`faults`] has every way for them to be wrong.

mod faults;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

const FILE: &str = "/etc/pdr-audit/config.toml";

fn load(file: &str, environment: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    let environment = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Settings::from_sources(Some((Path::new(FILE), file)), environment, &Overrides::default())
}

#[test]
fn nothing_given_means_the_documented_defaults() {
    let settings = Settings::from_sources(None, [], &Overrides::default()).unwrap();
    assert_eq!(settings, Settings::default());
    assert_eq!((settings.server.host.as_str(), settings.server.port), ("127.0.0.1", 8080));
    assert_eq!(settings.server.body_limit, ByteSize::b(32 << 20));
    assert_eq!(settings.server.request_timeout, Duration::from_secs(60));
    assert_eq!(settings.server.drain_delay, Duration::from_secs(5));
    assert_eq!((settings.engine.device, settings.engine.dtype), (DeviceChoice::Auto, Dtype::Auto));
    assert_eq!((settings.engine.threads, settings.engine.cache), (0, ByteSize::b(256 << 20)));
    assert_eq!(settings.engine.disk_cache, None);
    assert_eq!(settings.engine.disk_cache_limit, ByteSize::b(4 << 30));
    assert_eq!((settings.engine.max_batch_tokens, settings.engine.max_queue_tokens), (None, None));
    assert_eq!((settings.limits.inputs, settings.limits.text), (10_000, ByteSize::b(1 << 20)));
    assert_eq!((settings.log.format, settings.log.level.as_str()), (LogFormat::Text, "info"));
    assert!(settings.models.is_empty());
    assert_eq!(settings.default_model(), Some(DEMO));
}

#[test]
fn every_key_can_come_from_the_file() {
    let settings = load(
        r#"
        [server]
        host = "::1"
        port = 0
        body_limit = 1000
        request_timeout = "500ms"
        drain_delay = 0
        header_timeout = 7
        write_timeout = "8s"
        connections = 9
        connections_per_address = 4
        body_memory = "10KB"
        proxies = ["10.0.0.0/8"]
        insecure_no_auth = true
        metrics = "127.0.0.1:9090"
        hosts = ["audit.example"]
        cors = ["https://dashboard.example"]
        tls = { certificate = "cert.pem", key = "/keys/key.pem" }
        [auth]
        keys = "keys.toml"
        record = "/var/log/access.ndjson"
        share_cache = true

        [signing]
        key_file = "report-key.pem"
        [engine]
        device = "cuda:1"
        dtype = "f32"
        threads = 4
        max_batch_tokens = 2048
        max_queue_tokens = 100000
        cache = 0
        disk_cache = "statistics"
        disk_cache_limit = "64MiB"
        memory = "2GB"
        forward_timeout = "3m"
        default_model = "a"
        [limits]
        inputs = 1
        text = "2KB"
        dataset = "3KB"
        [[models]]
        id = "a"
        source = "models/a"
        device = ["cuda:0", "cpu"]
        reference = "b_2.x-Y"
        [[models]]
        id = "b_2.x-Y"
        source = "/models/b"
        load = "lazy"
        pinned = true
        revision = "v1.0"
        dtype = "bf16"
        [[token_counts]]
        id = "c4"
        file = "counts/c4.json"
        [[token_counts]]
        id = "a"
        file = "/counts/a.json"
        [store]
        url = "sqlite://data/audits.db"
        memory = "17MiB"
        retention = "90d"
        lease = 5

        [log]
        format = "json"
        level = "warn,pdr_audit=debug"
        "#,
        &[],
    );
    let model = |id: &str, text: &str, path: &str| ModelSettings {
        id: id.to_owned(),
        source: ModelSource { text: text.to_owned(), path: PathBuf::from(path) },
        revision: None,
        served: None,
        tokenizer: None,
        device: vec![DeviceChoice::Auto],
        dtype: Dtype::Auto,
        layers: LayersChoice::Auto,
        reference: None,
        base: None,
        load: LoadPolicy::Eager,
        pinned: false,
        adapters: Vec::new(),
    };
    let counts = |id: &str, file: &str| TokenCountsSettings { id: id.to_owned(), file: PathBuf::from(file) };
    let expected = Settings {
        server: ServerSettings {
            host: "::1".to_owned(),
            port: 0,
            body_limit: ByteSize::b(1_000),
            request_timeout: Duration::from_millis(500),
            drain_delay: Duration::ZERO,
            header_timeout: Duration::from_secs(7),
            write_timeout: Duration::from_secs(8),
            connections: Some(9),
            connections_per_address: Some(4),
            proxies: vec!["10.0.0.0/8".to_owned()],
            request_memory: Some(ByteSize::b(10_000)),
            insecure_no_auth: true,
            metrics: Some("127.0.0.1:9090".parse().unwrap()),
            hosts: vec!["audit.example".to_owned()],
            cors: vec!["https://dashboard.example".to_owned()],
            tls: Some(TlsSettings {
                certificate: PathBuf::from("/etc/pdr-audit/cert.pem"),
                key: PathBuf::from("/keys/key.pem"),
            }),
        },
        auth: AuthSettings {
            keys: Some(PathBuf::from("/etc/pdr-audit/keys.toml")),
            record: Some(PathBuf::from("/var/log/access.ndjson")),
            share_cache: true,
        },
        signing: SigningSettings { key_file: Some(PathBuf::from("/etc/pdr-audit/report-key.pem")) },
        engine: EngineSettings {
            device: DeviceChoice::Cuda(1),
            dtype: Dtype::F32,
            threads: 4,
            max_batch_tokens: Some(2_048),
            max_queue_tokens: Some(100_000),
            cache: ByteSize::b(0),
            disk_cache: Some(PathBuf::from("/etc/pdr-audit/statistics")),
            disk_cache_limit: ByteSize::b(64 << 20),
            memory: Some(ByteSize::b(2_000_000_000)),
            forward_timeout: Duration::from_secs(180),
            default_model: Some("a".to_owned()),
        },
        store: StoreSettings {
            url: Some(StoreUrl::Sqlite(PathBuf::from("/etc/pdr-audit/data/audits.db"))),
            memory: ByteSize::mib(17),
            retention: Some(Duration::from_secs(90 * 86_400)),
            lease: Duration::from_secs(5),
        },
        limits: LimitSettings { inputs: 1, text: ByteSize::b(2_000), dataset: ByteSize::b(3_000) },
        models: vec![
            ModelSettings {
                device: vec![DeviceChoice::Cuda(0), DeviceChoice::Cpu],
                reference: Some("b_2.x-Y".to_owned()),
                ..model("a", "models/a", "/etc/pdr-audit/models/a")
            },
            ModelSettings {
                load: LoadPolicy::Lazy,
                pinned: true,
                revision: Some("v1.0".to_owned()),
                dtype: Dtype::Bf16,
                ..model("b_2.x-Y", "/models/b", "/models/b")
            },
        ],
        token_counts: vec![counts("c4", "/etc/pdr-audit/counts/c4.json"), counts("a", "/counts/a.json")],
        log: LogSettings { format: LogFormat::Json, level: "warn,pdr_audit=debug".to_owned() },
        named_adapters: Vec::new(),
    };
    assert_eq!(settings.unwrap(), expected);
}

#[test]
fn every_key_can_come_from_the_environment() {
    let settings = load(
        "",
        &[
            ("PDR_AUDIT__SERVER__HOST", "0.0.0.0"),
            ("PDR_AUDIT__SERVER__PORT", "9000"),
            ("PDR_AUDIT__SERVER__BODY_LIMIT", "1MiB"),
            ("PDR_AUDIT__SERVER__REQUEST_TIMEOUT", "5"),
            ("PDR_AUDIT__SERVER__DRAIN_DELAY", "2s"),
            ("PDR_AUDIT__ENGINE__DEVICE", "cuda"),
            ("PDR_AUDIT__ENGINE__DTYPE", "f32"),
            ("PDR_AUDIT__ENGINE__THREADS", "2"),
            ("PDR_AUDIT__ENGINE__MAX_BATCH_TOKENS", "512"),
            ("PDR_AUDIT__ENGINE__MAX_QUEUE_TOKENS", "auto"),
            ("PDR_AUDIT__ENGINE__CACHE", "0"),
            ("PDR_AUDIT__ENGINE__MEMORY", "auto"),
            ("PDR_AUDIT__ENGINE__DEFAULT_MODEL", "70"),
            ("PDR_AUDIT__LIMITS", "{ inputs = 5, text = '1KiB' }"),
            ("PDR_AUDIT__LIMITS__INPUTS", "6"),
            ("PDR_AUDIT__MODELS", r#"[{id="70", source="m/a"}, {id="b", source="/m/b", reference="70", load="lazy"}]"#),
            ("PDR_AUDIT__TOKEN_COUNTS", r#"[{ id = "c4", file = "c4.json" }]"#),
            ("PDR_AUDIT__LOG__FORMAT", "\"json\""),
            ("PDR_AUDIT__LOG__LEVEL", "[request]=debug"),
            ("PDR_AUDIT_TEST_ALONE", "1"),
            ("HOME", "/"),
        ],
    )
    .unwrap();
    assert_eq!((settings.server.host.as_str(), settings.server.port), ("0.0.0.0", 9000));
    assert_eq!(settings.server.body_limit, ByteSize::mib(1));
    assert_eq!(settings.server.request_timeout, Duration::from_secs(5));
    assert_eq!(settings.server.drain_delay, Duration::from_secs(2));
    assert_eq!((settings.engine.device, settings.engine.dtype), (DeviceChoice::Cuda(0), Dtype::F32));
    assert_eq!((settings.engine.threads, settings.engine.max_batch_tokens), (2, Some(512)));
    assert_eq!((settings.engine.max_queue_tokens, settings.engine.cache), (None, ByteSize::b(0)));
    assert_eq!(settings.engine.default_model.as_deref(), Some("70"));
    assert_eq!((settings.limits.inputs, settings.limits.text), (6, ByteSize::b(1_024)));
    assert_eq!(settings.models[0].source.path, Path::new("m/a"));
    assert_eq!((settings.models[1].reference.as_deref(), settings.models[1].load), (Some("70"), LoadPolicy::Lazy));
    assert_eq!((settings.token_counts.len(), settings.token_counts[0].id.as_str()), (1, "c4"));
    assert_eq!(settings.token_counts[0].file, Path::new("c4.json"));
    assert_eq!((settings.log.format, settings.log.level.as_str()), (LogFormat::Json, "[request]=debug"));
}

#[test]
fn the_later_source_wins() {
    let file = "[server]\nhost = \"a\"\nport = 1\nbody_limit = 7\n[[models]]\nid = \"f\"\nsource = \"f\"";
    let environment = [
        ("PDR_AUDIT__SERVER__HOST", "b"),
        ("PDR_AUDIT__SERVER__PORT", "2"),
        ("PDR_AUDIT__MODELS", r#"[{ id = "e", source = "e" }]"#),
    ]
    .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let overrides = Overrides { port: Some(3), ..Overrides::default() };
    let settings = Settings::from_sources(Some((Path::new(FILE), file)), environment.clone(), &overrides).unwrap();
    assert_eq!((settings.server.host.as_str(), settings.server.port), ("b", 3));
    assert_eq!(settings.server.body_limit, ByteSize::b(7));
    assert_eq!(settings.models.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), ["e"]);
    assert!(load(file, &[("PDR_AUDIT__MODELS", "[]")]).unwrap().models.is_empty());

    let overrides = Overrides { host: Some("c d".to_owned()), ..Overrides::default() };
    let error = Settings::from_sources(None, environment, &overrides).unwrap_err().to_string();
    assert!(error.contains("`server.host`") && error.contains("the flag --host"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_a_fault() {
    use std::os::unix::ffi::OsStringExt;

    let variables = [
        (OsString::from("PDR_AUDIT__SERVER__HOST"), OsString::from_vec(vec![b'a', 0xff])),
        (OsString::from_vec(vec![0xff]), OsString::from("passed over")),
    ];
    let error = Settings::from_sources(None, variables, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("`server.host`: expected text in UTF-8"), "{error}");
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("absent.toml");
    let error = Settings::load(Some(&path), &Overrides::default()).unwrap_err();
    assert!(matches!(error, ConfigError::Unreadable { .. }));
    assert!(error.to_string().contains("absent.toml"), "{error}");

    let error = load("[server]\nport = ", &[]).unwrap_err();
    assert!(matches!(error, ConfigError::Syntax { .. }));
    let error = error.to_string();
    assert!(error.contains(FILE) && error.contains("line 2"), "{error}");
}

#[test]
fn relative_sources_count_from_the_directory_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    std::fs::write(&path, "[[models]]\nid = \"a\"\nsource = \"models/a\"").unwrap();
    let settings = Settings::load(Some(&path), &Overrides::default()).unwrap();
    assert_eq!(settings.models[0].source.path, directory.path().join("models/a"));
}

#[test]
fn the_example_file_holds_the_defaults() {
    let example = include_str!("../../../deploy/config.example.toml");
    let settings = load(example, &[]).unwrap();
    assert_eq!(settings, Settings::default());

    // With the models and token counts that it shows in comments as well.
    let shown = example.replace("\n# [[", "\n[[").replace("\n# id =", "\nid =");
    let shown = shown.replace("\n# source =", "\nsource =").replace("\n# reference =", "\nreference =");
    let shown = ["load", "revision", "pinned", "adapters", "served", "tokenizer", "file"]
        .iter()
        .fold(shown, |shown, key| shown.replace(&format!("\n# {key} ="), &format!("\n{key} =")));
    let shown = shown.replace("\n# default_model =", "\ndefault_model =");
    let settings = load(&shown, &[]).unwrap();
    assert_eq!((settings.models.len(), settings.token_counts.len()), (4, 1));
    assert!(settings.engine.default_model.is_some());
}
