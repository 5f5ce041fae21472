//! Downloads that do not get through at once.

use super::*;

#[test]
fn a_connection_that_breaks_is_continued_where_it_broke() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    server.state().cut_after = Some(400_000);
    let broken = fetch(&hub(&home, &server)).unwrap_err();
    assert!(matches!(&broken, HubError::Network { url, .. } if url.ends_with("model.safetensors")), "{broken}");
    assert_eq!(part_length(home.path()), Some(400_000));
    assert!(!home.path().join("hub/models--some-org--tiny/snapshots").exists());

    // Three attempts: to 800 000, then the rest.
    let snapshot = fetch(&hub_with(home.path(), &server.url(), 3, &[])).unwrap();
    assert_holds(&snapshot, &server, &TINY);
    let starts: Vec<_> = server.requests("model.safetensors").iter().map(|request| request.range_start).collect();
    assert_eq!(starts, [None, Some(400_000), Some(800_000)]);
    assert_eq!(part(home.path()), None);
}

#[test]
fn child_that_is_killed() {
    if let (Ok(home), Ok(endpoint)) = (std::env::var("HUB_TEST_HOME"), std::env::var("HUB_TEST_ENDPOINT")) {
        let ended = fetch(&hub_with(Path::new(&home), &endpoint, 1, &[]));
        panic!("should be waiting for more bytes: {ended:?}");
    }
}

#[test]
fn a_download_that_was_killed_is_continued_by_another_process() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    (server.state().cut_after, server.state().stall) = (Some(300_000), true);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hub::interrupted::child_that_is_killed"])
        .envs([("HUB_TEST_HOME", home.path().to_str().unwrap()), ("HUB_TEST_ENDPOINT", &server.url())])
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while part_length(home.path()) != Some(300_000) {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "{:?}", part_length(home.path()));
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    (server.state().cut_after, server.state().stall) = (None, false);
    let snapshot = fetch(&hub(&home, &server)).unwrap();
    assert_holds(&snapshot, &server, &TINY);
    let starts: Vec<_> = server.requests("model.safetensors").iter().map(|request| request.range_start).collect();
    assert_eq!(starts, [None, Some(300_000)]);
}

#[test]
fn a_server_without_ranges_sends_all_again() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    server.state().cut_after = Some(400_000);
    fetch(&hub(&home, &server)).unwrap_err();
    (server.state().cut_after, server.state().ignore_range) = (None, true);
    assert_holds(&fetch(&hub(&home, &server)).unwrap(), &server, &TINY);
}

#[test]
fn a_partial_file_that_is_whole_or_too_long_is_no_trap() {
    for surplus in [0, 7] {
        let (home, server) = (TempDir::new().unwrap(), tiny());
        server.state().cut_after = Some(1000);
        fetch(&hub(&home, &server)).unwrap_err();
        server.state().cut_after = None;
        let mut arrived = bytes(1, WEIGHTS);
        arrived.extend(vec![0; surplus]);
        std::fs::write(part(home.path()).unwrap(), arrived).unwrap();
        assert_holds(&fetch(&hub(&home, &server)).unwrap(), &server, &TINY);
        assert_eq!(server.requests("model.safetensors").len(), if surplus == 0 { 1 } else { 2 });
    }
}

#[test]
fn failures_that_pass_are_tried_again() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    server.state().unavailable = 2;
    let twice = fetch(&hub_with(home.path(), &server.url(), 2, &[])).unwrap_err();
    assert!(matches!(&twice, HubError::Network { reason, .. } if reason.starts_with("503")), "{twice}");
    server.state().unavailable = 2;
    fetch(&hub_with(home.path(), &server.url(), 3, &[])).unwrap();
}

#[test]
fn a_cancelled_download_stops_and_can_be_continued() {
    let (home, server, progress) = (TempDir::new().unwrap(), tiny(), Progress::default());
    // Without the wish to stop, the second try would come after ten seconds.
    server.state().cut_after = Some(400_000);
    let patience = Patience { backoff: Duration::from_secs(10), ..patience(2) };
    let patient = patient_hub(home.path(), &server.url(), patience, &[]);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let fetched = scope.spawn(|| patient.fetch(&repo(), "main", &progress));
        while progress.done() < 400_000 {
            assert!(begun.elapsed() < Duration::from_secs(8) && !fetched.is_finished());
            std::thread::sleep(Duration::from_millis(5));
        }
        progress.cancel();
        assert_eq!(fetched.join().unwrap(), Err(HubError::Cancelled));
    });
    assert!(begun.elapsed() < Duration::from_secs(8));
    assert_eq!(part_length(home.path()), Some(400_000));
}

#[test]
fn silence_ends_in_a_timeout() {
    let (home, server) = (TempDir::new().unwrap(), tiny());
    (server.state().cut_after, server.state().stall) = (Some(1000), true);
    let patience = Patience { idle: Duration::from_millis(200), ..patience(1) };
    let stalled = fetch(&patient_hub(home.path(), &server.url(), patience, &[])).unwrap_err();
    assert!(matches!(&stalled, HubError::Network { .. }), "{stalled}");
    assert_eq!(part_length(home.path()), Some(1000));
}
