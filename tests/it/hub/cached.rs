//! The cache: without the network, for several at once, and on a bad disk.

use super::*;

#[test]
fn offline_only_the_cache_is_used() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    let lacking = HubError::Offline { kind: RepoKind::Model, repo: REPO.to_owned(), revision: "main".to_owned() };
    assert_eq!(fetch(&offline(&home, &server)), Err(lacking.clone()));
    assert_eq!(server.state().requests.len(), 0);

    let snapshot = fetch(&hub(&home, &server)).unwrap();
    let asked = server.state().requests.len();
    assert_eq!(fetch(&offline(&home, &server)), Ok(snapshot.clone()));
    assert_eq!(offline(&home, &server).fetch(&repo(), COMMIT, &DownloadProgress::default()), Ok(snapshot.clone()));
    std::fs::remove_file(snapshot.directory.join("tokenizer.json")).unwrap();
    assert_eq!(fetch(&offline(&home, &server)), Err(lacking));
    assert_eq!(server.state().requests.len(), asked);
}

#[test]
fn where_the_hub_cannot_be_reached_the_cache_is_used() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    let snapshot = fetch(&hub(&home, &server)).unwrap();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let dead = hub_with(home.path(), &format!("http://127.0.0.1:{port}"), 1, &[]);
    assert_eq!(fetch(&dead), Ok(snapshot));
    assert!(matches!(dead.fetch(&repo(), "other", &DownloadProgress::default()), Err(HubError::Network { .. })));
    // An answer is no lack of network: what the Hub no longer shows is not served from the cache.
    server.state().refuse = Some((403, "GatedRepo"));
    assert!(matches!(fetch(&hub(&home, &server)), Err(HubError::Gated { .. })));
}

#[test]
fn two_at_once_download_once() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    // Long enough for both to be there before the first file is.
    server.state().delay = Duration::from_millis(200);
    let both: Vec<_> = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| fetch(&hub(&home, &server)).unwrap()));
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert_eq!(both[0], both[1]);
    assert_holds(&both[0], &server, &TINY);
    assert_eq!(server.requests("model.safetensors").len(), 1);
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    // A file where the directory should be; permissions would not stop a test that runs as root.
    std::fs::write(home.path().join("hub"), b"").unwrap();
    let refused = fetch(&hub(&home, &server)).unwrap_err();
    assert!(matches!(&refused, HubError::Disk { path, .. } if path.starts_with(home.path())), "{refused}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    server.state().cut_after = Some(1000);
    fetch(&hub(&home, &server)).unwrap_err();
    let part = part(home.path()).unwrap();
    std::fs::remove_file(&part).unwrap();
    std::os::unix::fs::symlink("/dev/full", &part).unwrap();
    let full = fetch(&hub(&home, &server)).unwrap_err();
    let HubError::Disk { path, reason } = &full else { panic!("{full}") };
    assert_eq!(path, &part);
    assert!(reason.contains("No space left"), "{reason}");
}
