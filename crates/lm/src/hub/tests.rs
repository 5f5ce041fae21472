//! The parts without a network: names, digests, lists, choices, variables.

use super::environment::Environment;
use super::listing::ContentDigest;
use super::listing::Listing;
use super::names::{is_file_name, is_file_path, is_revision};
use super::wanted::{SelectionError, model_files};
use super::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn repositories_have_the_names_that_the_hub_allows() {
    let longest = "a".repeat(96);
    for legal in ["gpt2", "EleutherAI/pythia-160m", "a/b.c_d-e", "_a/b_", &longest, &format!("{longest}/{longest}")] {
        assert_eq!(RepoId::parse(legal).as_ref().map(RepoId::as_str), Some(legal));
    }
    let illegal = [
        "", "/", "a/", "/a", "a/b/c", "-a", "a-", "a/.b", "a./b", "a..b", "a--b", "..", "a/..", "a b", "a\\b", "a\0",
        "é", "a/b.git", "a:b", "a?b",
    ];
    for illegal in illegal.into_iter().chain([&*format!("{longest}a"), &format!("a/{longest}a")]) {
        assert_eq!(RepoId::parse(illegal), None, "{illegal:?}");
    }
}

#[test]
fn a_file_of_a_repository_is_named_behind_a_colon() {
    let parsed = RepoFile::parse("hub:a/b-GGUF:b.Q4_K_M.gguf").unwrap();
    assert_eq!((parsed.repo.as_str(), parsed.name.as_str()), ("a/b-GGUF", "b.Q4_K_M.gguf"));
    for other in
        ["a/b:c.gguf", "hub:a/b", "hub:a/b:", "hub:a/b:../c.gguf", "hub:a/b:d/c.gguf", "hub::c.gguf", "hub:a/b/c:d"]
    {
        assert_eq!(RepoFile::parse(other), None, "{other}");
    }
}

#[test]
fn file_names_and_revisions_stay_where_they_are() {
    assert!(is_file_name("model-00001-of-00002.safetensors"));
    for bad in ["", ".", "..", ".a", "a/b", "a\\b", "/a", "a\0", "a b", "a%2f", &"a".repeat(256)] {
        assert!(!is_file_name(bad), "{bad:?}");
    }
    assert!(["a", "a/b.parquet", "wikipedia_(en)/a b/0000.parquet", "é/a-..b"].into_iter().all(is_file_path));
    for bad in
        ["", "/a", "a/", "a//b", "../a", "a/../b", "a/.b", "./a", "a\\b", "a\0", "a/b\n", "C:x", &"a/".repeat(600)]
    {
        assert!(!is_file_path(bad), "{bad:?}");
    }
    assert!(["main", "v1.0", "refs/pr/1", "step+1%", "é"].into_iter().all(is_revision));
    for bad in ["", "/", "/a", "a/", "a//b", "..", "a/../b", "a..b", "./a", ".a", "a\\b", "a\0", "a b", "a\n", "C:x"] {
        assert!(!is_revision(bad), "{bad:?}");
    }
}

/// `git hash-object` and `sha256sum` of the six bytes `hello` and a line feed.
#[test]
fn digests_are_those_of_git_and_of_sha256sum() {
    let git = "ce013625030ba8dba906f756967f9e9ca394464a";
    let sha = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    for expected in [ContentDigest::new(None, Some(git)), ContentDigest::new(Some(sha), Some(git))].map(Option::unwrap)
    {
        assert_eq!(expected.compute(6, &b"hello\n"[..]).unwrap(), expected);
        assert_ne!(expected.compute(6, &b"hello\r"[..]).unwrap(), expected);
    }
    // A bad digest of the content is not replaced by that of git's pointer to it.
    assert_eq!(ContentDigest::new(Some("../x"), Some(git)), None);
    assert_eq!(ContentDigest::new(None, Some(&git.to_uppercase())), None);
    assert_eq!(ContentDigest::new(None, None), None);
}

#[test]
fn a_listing_has_the_plain_files() {
    let listed = |name: &str| json!({"rfilename": name, "size": 3, "blobId": "0".repeat(40)});
    let answer = |siblings: serde_json::Value| json!({"sha": "a".repeat(40), "siblings": siblings}).to_string();
    let names =
        answer(json!([listed("config.json"), listed("onnx/model.onnx"), listed("../x"), listed(".gitattributes")]));
    let listing = Listing::parse(names.as_bytes(), RepoKind::Model).unwrap();
    assert_eq!(listing.files.keys().collect::<Vec<_>>(), ["config.json"]);
    assert_eq!(listing.files["config.json"].size, 3);
    let listing = Listing::parse(names.as_bytes(), RepoKind::Dataset).unwrap();
    assert_eq!(listing.files.keys().collect::<Vec<_>>(), ["config.json", "onnx/model.onnx"]);

    let without = answer(json!([{"rfilename": "config.json", "blobId": "0".repeat(40)}]));
    assert_eq!(
        Listing::parse(without.as_bytes(), RepoKind::Model),
        Err("`config.json` is listed without its size and digest".to_owned())
    );
    for bad in ["", "[]", "<html>", "{\"sha\": \"main\", \"siblings\": []}", "{\"sha\": 3, \"siblings\": []}"] {
        assert!(Listing::parse(bad.as_bytes(), RepoKind::Model).is_err(), "{bad:?}");
    }
    let negative = answer(json!([{"rfilename": "config.json", "size": -1, "blobId": "0".repeat(40)}]));
    assert!(Listing::parse(negative.as_bytes(), RepoKind::Model).is_err());
}

/// Selects model files by name; only indexes have content.
fn chosen(files: &[(&str, &str)]) -> Result<Vec<String>, SelectionError<()>> {
    let files: BTreeMap<_, _> = files.iter().copied().collect();
    model_files(|name| files.contains_key(name), |name| Ok(files[name].as_bytes().to_vec()))
}

#[test]
fn the_weights_are_the_first_whole_form() {
    let index =
        r#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-1.safetensors"}}"#;
    let mut files = vec![
        ("config.json", ""),
        ("merges.txt", ""),
        ("model.onnx", ""),
        ("model.safetensors.index.json", index),
        ("model-1.safetensors", ""),
        ("pytorch_model.bin", ""),
        ("vocab.json", ""),
    ];
    assert_eq!(chosen(&files).unwrap(), ["config.json", "vocab.json", "merges.txt", "pytorch_model.bin"]);
    files.retain(|(name, _)| *name != "pytorch_model.bin");
    let missing = "`model-2.safetensors`, which `model.safetensors.index.json` lists";
    assert_eq!(chosen(&files), Err(SelectionError::Missing(missing.to_owned())));
    files.push(("model-2.safetensors", ""));
    let shards = ["model.safetensors.index.json", "model-1.safetensors", "model-2.safetensors"];
    assert_eq!(chosen(&files).unwrap()[3..], shards);
    files.push(("model.safetensors", ""));
    assert_eq!(chosen(&files).unwrap()[3..], ["model.safetensors"]);
}

#[test]
fn an_index_names_shards_of_its_own_kind() {
    for map in
        [r#"{"a": "x.bin"}"#, r#"{"a": "b/x.safetensors"}"#, r#"{"a": "../x.safetensors"}"#, "{}", r#"{"a": 1}"#, "3"]
    {
        let index = format!(r#"{{"weight_map": {map}}}"#);
        let refused = chosen(&[("config.json", ""), ("model.safetensors.index.json", &index)]);
        assert!(
            matches!(refused, Err(SelectionError::InvalidIndex("model.safetensors.index.json", _))),
            "{map}: {refused:?}"
        );
    }
}

fn environment(vars: &[(&str, &str)]) -> Result<Environment, HubError> {
    Environment::read(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
}

#[test]
fn the_variables_are_those_of_the_hubs_tools() {
    let cache = |vars: &[_]| environment(vars).unwrap().cache;
    let mut vars = vec![("HOME", "/h")];
    assert_eq!(cache(&vars), Path::new("/h/.cache/huggingface/hub"));
    vars.push(("XDG_CACHE_HOME", "/x"));
    assert_eq!(cache(&vars), Path::new("/x/huggingface/hub"));
    vars.push(("HF_HOME", "/hf"));
    assert_eq!(cache(&vars), Path::new("/hf/hub"));
    vars.push(("HF_HUB_CACHE", "/c"));
    assert_eq!(cache(&vars), Path::new("/c"));

    let read = environment(&[("HOME", "/h"), ("HF_TOKEN", ""), ("HF_ENDPOINT", " ")]).unwrap();
    assert_eq!((&*read.endpoint, read.token, read.offline), ("https://huggingface.co", None, false));
    let all =
        [("HOME", "/h"), ("HF_TOKEN", " hf_x\n"), ("HF_ENDPOINT", "http://mirror:8080/hf/"), ("HF_HUB_OFFLINE", "Yes")];
    let read = environment(&all).unwrap();
    assert_eq!((&*read.endpoint, read.token.as_deref(), read.offline), ("http://mirror:8080/hf", Some("hf_x"), true));
    assert!(!environment(&[("HOME", "/h"), ("HF_HUB_OFFLINE", "0")]).unwrap().offline);
}

#[test]
fn the_token_file_is_read_where_no_variable_says_a_token() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("token"), "hf_file\n").unwrap();
    let path = home.path().to_str().unwrap();
    let token = |more| environment(&[("HF_HOME", path), ("HF_HUB_CACHE", "/elsewhere"), more]).unwrap().token;
    assert_eq!(token(("HF_TOKEN", "")).as_deref(), Some("hf_file"));
    assert_eq!(token(("HF_TOKEN", "hf_variable")).as_deref(), Some("hf_variable"));
}

#[test]
fn values_that_cannot_be_used_are_refused_without_being_shown() {
    let endpoints = ["huggingface.co", "ftp://x", "https://", "https://user:pass@x", "https://x?y"];
    let mut bad: Vec<_> = endpoints.iter().map(|endpoint| vec![("HOME", "/h"), ("HF_ENDPOINT", *endpoint)]).collect();
    bad.push(vec![("HOME", "/h"), ("HF_TOKEN", "hf_pass\r\nX: y")]);
    bad.push(vec![]);
    for vars in bad {
        let refused = environment(&vars).err().unwrap();
        assert!(matches!(refused, HubError::Environment { .. }) && !refused.to_string().contains("pass"), "{refused}");
    }
}

#[test]
fn a_revision_is_one_part_of_the_address() {
    let client = HubClient::new("http://h".to_owned(), None, &RetryPolicy::default());
    let repo = RepoId::parse("a/b").unwrap();
    let url = client.listing_url(RepoRevision { kind: RepoKind::Model, repo: &repo, revision: "refs/pr/1%é" });
    assert_eq!(url, "http://h/api/models/a/b/revision/refs%2Fpr%2F1%25%C3%A9?blobs=true");
    let dataset = RepoRevision { kind: RepoKind::Dataset, repo: &repo, revision: "main" };
    assert_eq!(client.listing_url(dataset), "http://h/api/datasets/a/b/revision/main?blobs=true");
    let url = client.file_url(dataset, "c0", "a (b)/é?.parquet");
    assert_eq!(url, "http://h/datasets/a/b/resolve/c0/a%20%28b%29/%C3%A9%3F.parquet");
}

/// The HTTP client logs all bytes it sends at `trace`, the token too.
#[test]
fn no_library_can_log_the_bytes_of_a_request() {
    assert!(log::STATIC_MAX_LEVEL <= log::LevelFilter::Debug);
}
