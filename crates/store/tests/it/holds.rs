//! Tests of the limits that accounts have reached.

use std::sync::atomic::Ordering;

use teamster_core::{AgentError, ErrorCode, ErrorKind};
use teamster_orchestrator::Held;

const T0: u64 = 1_700_000_000_000;

fn quota(until_ms: u64) -> Held {
    let error = AgentError::new(ErrorCode::CliError, ErrorKind::Quota, "used up");
    Held::new("claude", until_ms, error.resets_at_ms(until_ms))
}

on_each_database! {
    async fn a_hold_is_read_by_another_handle_until_its_end(database) {
        let (store, _) = database.open_at(T0).await;
        store.hold("a", &quota(T0 + 50)).await.unwrap();
        let mut of_model = quota(T0 + 90);
        of_model.model = Some("opus".into());
        store.hold("a", &of_model).await.unwrap();
        store.hold("b", &quota(T0 + 20)).await.unwrap();

        let (other, clock) = database.open_at(T0).await;
        assert_eq!(other.holds(Some("a")).await.unwrap(), [quota(T0 + 50), of_model.clone()]);
        assert_eq!(other.holds(Some("c")).await.unwrap(), []);
        assert_eq!(other.holds(None).await.unwrap().len(), 3);
        clock.store(T0 + 50, Ordering::SeqCst);
        assert_eq!(other.holds(None).await.unwrap(), [of_model]);
    }

    async fn a_hold_is_only_made_longer_unless_it_is_released(database) {
        let (store, _) = database.open_at(T0).await;
        for (until, expected) in [(50, 50), (20, 50), (80, 80)] {
            store.hold("a", &quota(T0 + until)).await.unwrap();
            assert_eq!(store.holds(Some("a")).await.unwrap(), [quota(T0 + expected)]);
        }
        assert_eq!(store.release_holds(Some("codex")).await.unwrap(), 0);
        assert_eq!(store.release_holds(Some("claude")).await.unwrap(), 1);
        assert_eq!(store.holds(None).await.unwrap(), []);
    }
}
