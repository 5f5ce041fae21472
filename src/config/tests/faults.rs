//! Every way for settings to be wrong, each named by its key.

use super::*;

fn faults(file: &str, environment: &[(&str, &str)]) -> Vec<SettingFault> {
    match load(file, environment) {
        Err(ConfigError::Invalid(faults)) => faults,
        other => panic!("expected faults, got {other:?}"),
    }
}

/// Asserts that there is exactly this fault: its key, and words of the problem.
#[track_caller]
fn assert_fault(file: &str, environment: &[(&str, &str)], key: &str, words: &str) {
    let faults = faults(file, environment);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].key, key);
    assert!(faults[0].problem.contains(words), "{}", faults[0].problem);
}

#[test]
fn unknown_keys_are_named_with_their_origin() {
    let keys = [
        ("prot = 1", "prot"),
        ("[auth]\nkey = \"a\"", "auth.key"),
        ("[stores]\nurl = \"sqlite://a.db\"", "stores"),
        ("[server]\nprot = 1", "server.prot"),
        ("[engine]\nmem = \"auto\"", "engine.mem"),
        ("[limits.more]\na = 1", "limits.more"),
        ("[log]\nLevel = \"info\"", "log.Level"),
        ("[[models]]\nid = \"a\"\nsource = \"a\"\nadaptors = []", "models[0].adaptors"),
        ("[[token_counts]]\nid = \"a\"\nfile = \"a\"\npath = \"a\"", "token_counts[0].path"),
    ];
    for (file, key) in keys {
        assert_fault(file, &[], key, "unknown key; known here: ");
        assert_eq!(faults(file, &[])[0].origin.as_deref(), Some("the file /etc/pdr-audit/config.toml"));
    }
    let keys = [
        ("PDR_AUDIT__PORT", "1", "port"),
        ("PDR_AUDIT__SERVER__PROT", "1", "server.prot"),
        ("PDR_AUDIT__SERVER__PORT__X", "1", "server.port"),
        ("PDR_AUDIT__ENGINE", "{ devise = 'cpu' }", "engine.devise"),
        ("PDR_AUDIT__MODELS", "[{ id = 'a', source = 'a', x = 1 }]", "models[0].x"),
        ("PDR_AUDIT__TOKEN_COUNTS", "[{ id = 'a', file = 'a', x = 1 }]", "token_counts[0].x"),
    ];
    for (variable, value, key) in keys {
        let faults = faults("", &[(variable, value)]);
        assert_eq!((faults.len(), faults[0].key.as_str()), (1, key));
        assert_eq!(faults[0].origin, Some(format!("the environment variable {variable}")));
    }
}

#[test]
fn wrong_types_and_ranges_are_named() {
    let cases = [
        ("server = 1", "server", "expected a table, got 1"),
        ("[server]\nhost = 1", "server.host", "expected a string, got 1"),
        ("[server]\nhost = \"127.0.0.1:80\"", "server.host", "without port"),
        ("[server]\nhost = \"\"", "server.host", "got \"\""),
        ("[server]\nport = \"80\"", "server.port", "a whole number from 0 to 65535, got \"80\""),
        ("[server]\nport = 65536", "server.port", "got 65536"),
        ("[server]\nport = -1", "server.port", "got -1"),
        ("[server]\nport = 80.5", "server.port", "got 80.5"),
        ("[server]\nbody_limit = 0", "server.body_limit", "at least 1 B, got 0 B"),
        ("[server]\nbody_limit = -5", "server.body_limit", "got -5"),
        ("[server]\nbody_limit = \"1,5MiB\"", "server.body_limit", "got \"1,5MiB\""),
        ("[server]\nrequest_timeout = 0", "server.request_timeout", "more than 0"),
        ("[server]\nrequest_timeout = \"25h\"", "server.request_timeout", "at most 24 hours, got 90000s"),
        ("[server]\ndrain_delay = \"25h\"", "server.drain_delay", "at most 24 hours, got 90000s"),
        ("[server]\nrequest_timeout = true", "server.request_timeout", "got true"),
        ("[server]\nrequest_timeout = \"1 day\"", "server.request_timeout", "ms, s, m, h or d"),
        ("[engine]\ndevice = \"gpu\"", "engine.device", "\"cuda:N\", got \"gpu\""),
        ("[engine]\ndevice = \"cuda:-1\"", "engine.device", "got \"cuda:-1\""),
        ("[engine]\ndevice = \"cuda:\"", "engine.device", "got \"cuda:\""),
        ("[engine]\ndtype = \"f64\"", "engine.dtype", "\"f16\" or \"bf16\", got \"f64\""),
        ("[engine]\nmemory = 0", "engine.memory", "at least 1 B"),
        ("[engine]\nmemory = \"most\"", "engine.memory", "GiB), got \"most\""),
        ("[[models]]\nid = \"a\"\nsource = \"a\"\ndevice = []", "models[0].device", "at least one"),
        ("[[models]]\nid = \"a\"\nsource = \"a\"\ndevice = [\"cpu\", \"cpu\"]", "models[0].device", "twice"),
        ("[[models]]\nid = \"a\"\nsource = \"a\"\ndevice = [\"cpu\", 1]", "models[0].device[1]", "got 1"),
        ("[[models]]\nid = \"a\"\nsource = \"a\"\npinned = \"yes\"", "models[0].pinned", "true or false, got \"yes\""),
        ("[[models]]\nid = \"a\"\nsource = \"a\"\nrevision = \"\"", "models[0].revision", "expected a branch"),
        ("[engine]\nthreads = 1025", "engine.threads", "from 0 to 1024"),
        ("[engine]\nmax_batch_tokens = 0", "engine.max_batch_tokens", "at least 1, got 0"),
        ("[engine]\nmax_queue_tokens = \"many\"", "engine.max_queue_tokens", "\"auto\" or a whole number"),
        ("[engine]\ncache = \"lots\"", "engine.cache", "GiB), got \"lots\""),
        ("[store]\nurl = \"mysql://user:secret@host/db\"", "store.url", "expected `sqlite://FILE` or `postgres://"),
        ("[store]\nurl = \"sqlite://\"", "store.url", "expected `sqlite://FILE` or `postgres://"),
        ("[store]\nretention = 1", "store.retention", "at least 60 seconds"),
        ("[store]\nlease = \"10ms\"", "store.lease", "from 1 second to 24 hours"),
        ("[engine]\ndisk_cache = 1.5", "engine.disk_cache", "expected a string"),
        ("[engine]\ndisk_cache = \"\"", "engine.disk_cache", "expected a path"),
        ("[engine]\ndisk_cache_limit = \"1MiB\"", "engine.disk_cache_limit", "at least"),
        ("[engine]\ncache = [1]", "engine.cache", "got an array"),
        ("[limits]\ninputs = 0", "limits.inputs", "at least 1, got 0"),
        ("[limits]\ntext = \"0B\"", "limits.text", "at least 1 B"),
        ("[log]\nformat = \"xml\"", "log.format", "expected \"text\" or \"json\", got \"xml\""),
        ("[log]\nlevel = \"a=b=c\"", "log.level", "got \"a=b=c\""),
        ("[log]\nlevel = \" \"", "log.level", "got \" \""),
        ("[models]\nid = \"a\"", "models", "expected an array of tables, got a table"),
        ("models = [1]", "models[0]", "expected a table, got 1"),
        ("[[models]]\nid = \"a\"\nsource = \"\"", "models[0].source", "expected a path"),
        ("[[models]]\nid = 1\nsource = \"a\"", "models[0].id", "expected a string, got 1"),
        ("[[models]]\nid = \"a\"\nsource = \"a\"\nload = \"never\"", "models[0].load", "\"eager\" or \"lazy\""),
        ("[[models]]\nid = \"a\"", "models[0].source", "is required"),
        ("[[models]]\nsource = \"a\"", "models[0].id", "is required"),
        ("token_counts = \"a\"", "token_counts", "expected an array of tables, got \"a\""),
        ("[[token_counts]]\nfile = \"a\"", "token_counts[0].id", "is required"),
        ("[[token_counts]]\nid = \"a\"", "token_counts[0].file", "is required"),
        ("[[token_counts]]\nid = \"a\"\nfile = \"\"", "token_counts[0].file", "expected a path"),
        ("[[token_counts]]\nid = \"a\"\nfile = 1", "token_counts[0].file", "expected a string, got 1"),
    ];
    for (file, key, words) in cases {
        assert_fault(file, &[], key, words);
    }
    assert_fault("", &[("PDR_AUDIT__SERVER__PORT", "http")], "server.port", "got \"http\"");
    assert_fault("", &[("PDR_AUDIT__SERVER__PORT", "")], "server.port", "got \"\"");
    assert_fault("", &[("PDR_AUDIT__MODELS", "[{ id = 'a' source = 'a' }]")], "models", "an array of tables");
    assert_fault("", &[("PDR_AUDIT__MODELS__0__ID", "a")], "models", "an array of tables");
    assert_fault("", &[("PDR_AUDIT__LIMITS__INPUTS", "1\n[server]\nport=1")], "limits.inputs", "a whole number");
}

#[test]
fn models_must_have_ids_that_requests_can_name() {
    let model = |id: &str| format!("[[models]]\nid = {id:?}\nsource = \"a\"\n");
    for id in ["a", "demo", "demo-reference", "A.b_c-9", &"x".repeat(100)] {
        let settings = load(&model(id), &[]).unwrap();
        assert_eq!(settings.default_model(), Some(id));
    }
    for id in ["", "a b", "org/name", "é", ".", "..", &"x".repeat(101)] {
        assert_fault(&model(id), &[], "models[0].id", "expected 1 to 100 of the characters");
    }
    assert_fault(&(model("a") + &model("b") + &model("a")), &[], "models[2].id", "the id of models[0] already");
}

#[test]
fn token_counts_must_have_ids_that_requests_can_name() {
    let counts = |id: &str| format!("[[token_counts]]\nid = {id:?}\nfile = \"a\"\n");
    for id in ["", "a b", "é"] {
        assert_fault(&counts(id), &[], "token_counts[0].id", "expected 1 to 100 of the characters");
    }
    assert_fault(&(counts("a") + &counts("b") + &counts("a")), &[], "token_counts[2].id", "the id of token_counts[0]");
    // A model is another kind of thing.
    let model = "[[models]]\nid = \"a\"\nsource = \"a\"\n";
    assert_eq!(load(&(counts("a") + model), &[]).unwrap().token_counts.len(), 1);
}

#[test]
fn names_of_models_must_be_configured() {
    let two = "[[models]]\nid = \"a\"\nsource = \"a\"\n[[models]]\nid = \"b\"\nsource = \"b\"\n";
    assert_eq!(load(two, &[]).unwrap().default_model(), None);
    let default = |id| [("PDR_AUDIT__ENGINE__DEFAULT_MODEL", id)];
    assert_eq!(load(two, &default("b")).unwrap().default_model(), Some("b"));
    assert_fault(two, &default("demo"), "engine.default_model", "\"demo\" is no configured model; configured: a, b");

    assert_eq!(load("", &default("demo-reference")).unwrap().default_model(), Some(DEMO_REFERENCE));
    assert_fault("", &default("a"), "engine.default_model", "configured: demo, demo-reference");

    assert_fault(&format!("{two}reference = \"c\""), &[], "models[1].reference", "\"c\" is no configured model");
    assert_fault(&format!("{two}reference = \"b\""), &[], "models[1].reference", "its own reference");
    assert_fault(&format!("{two}base = \"c\""), &[], "models[1].base", "\"c\" is no configured model");
    assert_fault(&format!("{two}base = \"b\""), &[], "models[1].base", "its own base");
}

#[test]
fn all_faults_are_reported_at_once() {
    let file = "color = 1\n[server]\nport = -1\nrequest_timeout = \"soon\"\n[engine]\ndefault_model = \"x\"\n\
        [[models]]\nid = \"a\"\nsource = \"a\"\n[[models]]\nid = \"a\"\nsource = 3";
    let error = load(file, &[("PDR_AUDIT__LIMITS__INPUTS", "0")]).unwrap_err().to_string();
    for key in
        ["color", "server.port", "server.request_timeout", "engine.default_model", "models[1].id", "models[1].source"]
    {
        assert!(error.contains(&format!("\n  `{key}`: ")), "{key} in {error}");
    }
    assert!(error.contains("(from the file /etc/pdr-audit/config.toml)"), "{error}");
    assert!(error.contains("`limits.inputs`: expected at least 1, got 0"), "{error}");
    assert!(error.contains("(from the environment variable PDR_AUDIT__LIMITS__INPUTS)"), "{error}");
}

#[test]
fn what_is_wrong_with_servers_elsewhere_is_named() {
    let model = |rest: &str| format!("[[models]]\nid = \"a\"\nsource = \"a\"\n{rest}");
    let served = |inside: &str| model(&format!("tokenizer = \"t\"\nserved = {{ {inside} }}"));
    let urls = |urls: &str| served(&format!("kind = \"vllm\", urls = [{urls}]"));
    let cases = [
        (served("urls = [\"http://a\"]"), "served.kind", "is required"),
        (served("kind = \"tgi\", urls = [\"http://a\"]"), "served.kind", "pdr-audit"),
        (served("kind = \"vllm\""), "served.urls", "is required"),
        (urls(""), "served.urls", "at least one URL"),
        (urls("\"gpu-1:8000\""), "served.urls", "expected a URL"),
        (urls("\"http://\""), "served.urls", "expected a URL"),
        (urls("\"http://user:secret@a\""), "served.urls", "without a user"),
        (urls("\"http://a?b=c\""), "served.urls", "a query"),
        (urls("\"http://a\", \"http://a/\""), "served.urls", "listed twice"),
        (served("kind = \"vllm\", urls = [\"http://a\"], timeout = 0"), "served.timeout", "more than 0"),
        (served("kind = \"vllm\", urls = [\"http://a\"], timeout = \"270s\""), "served.timeout", "allows 600 s"),
        (served("kind = \"pdr-audit\", urls = [\"http://a\"], moments = true"), "served.moments", "is of vLLM"),
        (served("kind = \"openai\", urls = [\"http://a\"], moments = true"), "served.moments", "kind `vllm` alone"),
        (
            served("kind = \"sglang\", urls = [\"http://a\"], top_logprobs = false"),
            "served.top_logprobs",
            "kind `openai` alone",
        ),
        (served("kind = \"vllm\", urls = [\"http://a\"], context = 512"), "served.context", "reported by the servers"),
        (served("kind = \"openai\", urls = [\"http://a\"], context = 1"), "served.context", "at least 2"),
        (
            served("kind = \"openai\", urls = [\"http://a\"], price_per_million_tokens = -1"),
            "served.price_per_million_tokens",
            "0 or more",
        ),
        (served("kind = \"sglang\", urls = [\"http://a\"], timeout = \"270s\""), "served.timeout", "allows 600 s"),
        (served("kind = \"vllm\", urls = [\"http://a\"], connections = 0"), "served.connections", "1 to 64"),
        (served("kind = \"vllm\", urls = [\"http://a\"], api_key_env = \"\""), "served.api_key_env", "variable"),
        (served("kind = \"vllm\", urls = [\"http://a\"], key = \"secret\""), "served.key", "unknown key"),
        (model("served = { kind = \"vllm\", urls = [\"http://a\"] }"), "tokenizer", "is required"),
        (model("tokenizer = \"t\""), "tokenizer", "goes with `served` and with a `source` in GGUF"),
        (urls("\"http://a\"") + "\ndevice = \"cpu\"", "device", "up to the server"),
        (urls("\"http://a\"") + "\ndtype = \"bf16\"", "dtype", "up to the server"),
        (urls("\"http://a\"") + "\nadapters = [{ name = \"x\", source = \"x\" }]", "adapters", "adapters run where"),
    ];
    for (file, key, words) in cases {
        assert_fault(&file, &[], &format!("models[0].{key}"), words);
    }
    let openai = "kind = \"openai\", urls = [\"http://a\"], context = 2047, price_per_million_tokens = 0.5, top_logprobs = false";
    let with_openai = served(openai);
    let settings = load(&urls("\"http://gpu-1:8000\", \"https://gpu-2/vllm\""), &[]).unwrap();
    let served = settings.models[0].served.as_ref().unwrap();
    assert_eq!((served.kind, served.urls.len(), served.connections), (Some(ServedKind::Vllm), 2, 1));
    let settings = load(&with_openai, &[]).unwrap();
    let served = settings.models[0].served.as_ref().unwrap();
    assert_eq!((served.kind, served.context, served.top_logprobs), (Some(ServedKind::Openai), Some(2047), false));
    assert_eq!(served.price_per_million_tokens, Some(0.5));
}
