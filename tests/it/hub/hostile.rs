//! Servers that send what they should not.

use super::*;

#[test]
fn what_is_not_listed_is_deleted() {
    for (name, kind, length) in [("model.safetensors", "sha256", WEIGHTS), ("config.json", "git-sha1", 2)] {
        let (home, server) = (TempDir::new().unwrap(), tiny());
        server.state().spoiled.insert(name.to_owned(), bytes(9, length));
        let spoiled = fetch(&hub(&home, &server)).unwrap_err();
        let HubError::Digest { file, expected, found } = &spoiled else { panic!("{spoiled}") };
        assert_eq!(file, name);
        assert!(expected != found && expected.starts_with(kind) && found.starts_with(kind), "{spoiled}");
        assert_eq!(part(home.path()), None);
        server.state().spoiled.clear();
        assert_holds(&fetch(&hub(&home, &server)).unwrap(), &server, &TINY);
    }
}

#[test]
fn a_file_of_another_size_than_listed_is_not_taken() {
    for length in [WEIGHTS - 1, WEIGHTS + 1, 4 * WEIGHTS] {
        let (home, server) = (TempDir::new().unwrap(), tiny());
        server.state().spoiled.insert("model.safetensors".to_owned(), bytes(1, length));
        let refused = fetch(&hub(&home, &server)).unwrap_err();
        assert!(matches!(refused, HubError::Network { .. } | HubError::Protocol { .. }), "{refused}");
        assert!(part_length(home.path()) <= Some(WEIGHTS as u64), "never more than the file's size");
    }
}

#[test]
fn names_never_lead_out_of_the_cache() {
    for name in ["../../../escaped.bin", "/tmp/escaped.bin", "a\\b.bin", "nul\0.bin", "sub/escaped.bin", ".bin", "x.py"]
    {
        let (home, server) = (TempDir::new().unwrap(), tiny());
        let listed = json!({"rfilename": name, "size": 1, "blobId": "0".repeat(40), "lfs": {"sha256": "0".repeat(64)}});
        server.state().more_siblings.push(listed);
        // Listed, it is not among the files that are wanted.
        assert_holds(&fetch(&hub(&home, &server)).unwrap(), &server, &TINY);

        let (home, server) = (TempDir::new().unwrap(), tiny());
        server.state().files.retain(|name, _| !name.starts_with("model") && !name.starts_with("pytorch"));
        let index = json!({"weight_map": {"tensor": name}}).to_string().into_bytes();
        server.state().files.insert("pytorch_model.bin.index.json".to_owned(), index);
        let refused = fetch(&hub(&home, &server)).unwrap_err();
        assert!(
            matches!(&refused, HubError::Protocol { url, .. } if url.ends_with("index.json")),
            "{name:?}: {refused}"
        );
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "{name:?}");
    }
}

#[test]
fn digests_never_lead_out_of_the_cache() {
    for digest in ["../../../escaped", "", "ABCDEF"] {
        let (home, server) = (TempDir::new().unwrap(), tiny());
        server.state().files.remove("model.safetensors");
        let listed = json!({"rfilename": "model.safetensors", "size": 1, "blobId": digest, "lfs": {"sha256": digest}});
        server.state().more_siblings.push(listed);
        let refused = fetch(&hub(&home, &server)).unwrap_err();
        assert!(matches!(refused, HubError::Protocol { .. }), "{refused}");
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}

#[test]
fn revisions_never_lead_out_of_the_cache() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    for revision in ["", "..", "../main", "/main", "a//b", "a\\b", "a\0b", ".hidden"] {
        let refused = hub(&home, &server).fetch(&repo(), revision, &Progress::default());
        assert!(matches!(refused, Err(HubError::NotFound { .. })), "{revision:?}");
    }
    assert_eq!(server.state().requests.len(), 0);
}
