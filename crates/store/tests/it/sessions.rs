//! Tests of sessions by conversation.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use teamster_store::{
    Conversation, DEFAULT_SESSION_TTL, NewSession, SessionFilter, SessionKey, StoreError,
};

const DAY: u64 = 24 * 60 * 60 * 1000;

fn key(conversation: &str, provider: &str) -> SessionKey {
    conversation.parse::<Conversation>().unwrap().with(provider)
}

on_each_database! {
    async fn a_stored_session_is_found_with_all_fields(database) {
        let (store, clock) = database.open_at(1000).await;
        let key = key("slack:U1:t2", "claude");
        assert_eq!(store.session(&key).await.unwrap(), None);

        let session = NewSession::new("s-1").model("opus").working_directory("/work/ü 'x'");
        store.put_session(&key, &session).await.unwrap();
        let found = store.session(&key).await.unwrap().unwrap();
        assert_eq!(found.key, key);
        assert_eq!(found.session_id, "s-1");
        assert_eq!(found.model.as_deref(), Some("opus"));
        assert_eq!(found.working_directory, Some(PathBuf::from("/work/ü 'x'")));
        assert_eq!((found.created_at, found.updated_at), (1000, 1000));
        assert_eq!(DEFAULT_SESSION_TTL, Duration::from_hours(7 * 24));
        assert_eq!(found.expires_at, 1000 + 7 * DAY);

        // The same session again keeps its start time. Fields that are no longer known are absent.
        clock.store(5000, Relaxed);
        store.put_session(&key, &NewSession::new("s-1")).await.unwrap();
        let found = store.session(&key).await.unwrap().unwrap();
        assert_eq!((found.created_at, found.updated_at), (1000, 5000));
        assert_eq!(found.expires_at, 5000 + 7 * DAY);
        assert_eq!((found.model, found.working_directory), (None, None));

        // Another session replaces it.
        store.put_session(&key, &NewSession::new("s-2")).await.unwrap();
        let found = store.session(&key).await.unwrap().unwrap();
        assert_eq!((&*found.session_id, found.created_at), ("s-2", 5000));

        // Another handle sees it.
        let other = database.open().await.clock(|| 5000);
        assert_eq!(other.session(&key).await.unwrap(), Some(found));
    }

    async fn keys_that_differ_in_anything_are_different(database) {
        let store = database.open().await;
        let none = Conversation::new();
        let keys = [
            none.with("claude"),
            none.with("Claude"),
            none.clone().channel("a").with("claude"),
            none.clone().user("a").with("claude"),
            none.clone().thread("a").with("claude"),
            none.clone().channel("a").user("a").with("claude"),
            none.clone().channel("a ").with("claude"),
            none.clone().channel("a:_:_").with("claude"),
            none.clone().channel("_").with("claude"),
            none.clone().channel("%").with("claude"),
            none.clone().channel("a").with("codex"),
        ];
        for (i, key) in keys.iter().enumerate() {
            store.put_session(key, &NewSession::new(format!("s-{i}"))).await.unwrap();
        }
        for (i, key) in keys.iter().enumerate() {
            let found = store.session(key).await.unwrap().unwrap();
            assert_eq!(found.session_id, format!("s-{i}"));
            assert_eq!(&found.key, key);
        }
        // An absent part and an empty one are equal.
        let mut empty = Conversation::new();
        empty.channel = Some(String::new());
        let found = store.session(&empty.with("claude")).await.unwrap().unwrap();
        assert_eq!(found.session_id, "s-0");

        assert!(store.remove_session(&keys[3]).await.unwrap());
        assert!(!store.remove_session(&keys[3]).await.unwrap());
        assert_eq!(store.session(&keys[3]).await.unwrap(), None);
        let left = store.sessions(&SessionFilter::default()).await.unwrap();
        assert_eq!(left.len(), keys.len() - 1);
    }

    async fn an_expired_session_is_not_given_and_is_removed_by_expire(database) {
        let (store, clock) = database.open_at(0).await;
        let store = store.session_ttl(Duration::from_millis(100));
        let [short, long] = [key("a", "claude"), key("b", "claude")];
        store.put_session(&short, &NewSession::new("s")).await.unwrap();
        let hour = NewSession::new("l").ttl(Duration::from_hours(1));
        store.put_session(&long, &hour).await.unwrap();

        clock.store(99, Relaxed);
        assert!(store.session(&short).await.unwrap().is_some());
        assert_eq!(store.expire().await.unwrap(), 0);

        clock.store(100, Relaxed);
        assert_eq!(store.session(&short).await.unwrap(), None);
        let ids = |found: Vec<teamster_store::SessionRecord>| {
            found.into_iter().map(|found| found.session_id).collect::<Vec<_>>()
        };
        let mut filter = SessionFilter::default();
        assert_eq!(ids(store.sessions(&filter).await.unwrap()), ["l"]);
        filter.expired = true;
        assert_eq!(ids(store.sessions(&filter).await.unwrap()), ["s", "l"]);

        assert_eq!(store.expire().await.unwrap(), 1);
        assert_eq!(ids(store.sessions(&filter).await.unwrap()), ["l"]);
        assert!(store.session(&long).await.unwrap().is_some());

        // An expired session that is stored again counts as new.
        clock.store(DAY, Relaxed);
        assert_eq!(store.session(&long).await.unwrap(), None);
        store.put_session(&long, &NewSession::new("l")).await.unwrap();
        assert_eq!(store.session(&long).await.unwrap().unwrap().expires_at, DAY + 100);
        // The longest possible time is accepted.
        let ever = NewSession::new("l").ttl(Duration::MAX);
        store.put_session(&long, &ever).await.unwrap();
        assert!(store.session(&long).await.unwrap().unwrap().expires_at > u64::MAX / 4);
    }

    async fn sessions_are_listed_by_filter_last_used_first(database) {
        let (store, clock) = database.open_at(1).await;
        for (i, text) in ["slack:U1", "slack:U2", "mail:U1"].into_iter().enumerate() {
            for provider in ["claude", "codex"] {
                clock.fetch_add(1, Relaxed);
                let session = NewSession::new(format!("{provider}{i}"));
                store.put_session(&key(text, provider), &session).await.unwrap();
            }
        }
        let list = async |change: &dyn Fn(&mut SessionFilter)| {
            let mut filter = SessionFilter::default();
            change(&mut filter);
            let found = store.sessions(&filter).await.unwrap();
            found.into_iter().map(|found| found.session_id).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(list(&|_| ()).await, "codex2 claude2 codex1 claude1 codex0 claude0");
        assert_eq!(list(&|f| f.provider = Some("codex".into())).await, "codex2 codex1 codex0");
        assert_eq!(list(&|f| f.user = Some("U1".into())).await, "codex2 claude2 codex0 claude0");
        assert_eq!(list(&|f| f.limit = Some(2)).await, "codex2 claude2");
        let of_one = |f: &mut SessionFilter| {
            f.channel = Some("slack".into());
            f.user = Some("U2".into());
            f.provider = Some("claude".into());
        };
        assert_eq!(list(&of_one).await, "claude1");
        assert_eq!(list(&|f| f.thread = Some("x\0".into())).await, "");
    }

    async fn invalid_keys_are_refused_before_the_database_is_used(database) {
        let store = database.open().await;
        let good = key("a", "claude");
        let session = NewSession::new("s");
        for (key, what) in [
            (Conversation::new().channel("a\0").with("claude"), "channel"),
            (Conversation::new().thread("x".repeat(501)).with("claude"), "thread"),
            (Conversation::new().with(""), "provider"),
        ] {
            for result in [
                store.put_session(&key, &session).await,
                store.session(&key).await.map(drop),
                store.remove_session(&key).await.map(drop),
            ] {
                match result {
                    Err(StoreError::Invalid { what: found, .. }) => assert_eq!(found, what),
                    other => panic!("{key}: {other:?}"),
                }
            }
        }
        for id in ["", "a\0b"] {
            let error = store.put_session(&good, &NewSession::new(id)).await.unwrap_err();
            assert!(matches!(error, StoreError::Invalid { what: "session id", .. }), "{error}");
        }
        assert_eq!(store.session(&good).await.unwrap(), None);
        // The longest allowed key fits into the index of either database.
        let longest = Conversation::new()
            .channel("ä".repeat(250))
            .user("\u{10ffff}".repeat(125))
            .thread("c".repeat(500))
            .with("p".repeat(500));
        store.put_session(&longest, &session).await.unwrap();
        assert!(store.session(&longest).await.unwrap().is_some());
    }
}
