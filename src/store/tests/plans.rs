//! Plans and whose they are.

use super::places::test_stores;
use crate::store::Principal;

#[tokio::test]
async fn a_plan_keeps_its_first_time_and_is_its_owners() {
    for place in test_stores().await {
        let (store, name) = (&place.store, place.name);
        let [alice, bob] = ["alice", "bob"].map(|name| Principal::new(name, false));
        let first = store.add_plan(&alice, "sha256:a", "{\"level\":0.01}").await.unwrap().unwrap();
        assert_eq!(first.content, "{\"level\":0.01}", "{name}");
        assert_eq!(
            store.add_plan(&alice, "sha256:a", "{\"level\":0.01}").await.unwrap(),
            Some(first.clone()),
            "{name}"
        );
        assert_eq!(store.plan(&alice, "sha256:a").await.unwrap(), Some(first), "{name}");
        for id in ["sha256:a", "sha256:b", "\0"] {
            assert_eq!(store.plan(&bob, id).await.unwrap(), None, "{name}");
        }
    }
}
