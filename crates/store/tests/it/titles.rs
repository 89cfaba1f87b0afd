//! Tests of titles in the history, of lists by title and directory, and of texts that are forgotten.

use std::fs;

use teamster_api::Outcome;
use teamster_api::history::RunFilter;
use teamster_core::RunResult;
use teamster_store::{NewRun, Store};

on_each_database! {
    async fn a_title_is_kept_and_changed_whether_the_run_has_ended_or_not(database) {
        let store = database.open().await;
        let mut new = NewRun::new("r", "claude", "p");
        new.title = Some("Fix it".into());
        store.begin_run(&new).await.unwrap();
        store.begin_run(&NewRun::new("s", "claude", "p")).await.unwrap();
        let title = async |id: &str| store.run(id).await.unwrap().unwrap().title;
        assert_eq!((title("r").await.as_deref(), title("s").await), (Some("Fix it"), None));
        assert!(store.set_run_title("r", Some("Fix\0all")).await.unwrap());
        let outcome = Outcome::new("r", "codex", RunResult::default());
        store.end_run(&outcome).await.unwrap();
        assert_ne!(title("r").await.as_deref(), Some("Fix it"));
        assert!(store.set_run_title("r", None).await.unwrap());
        assert_eq!(title("r").await, None);
        assert!(!store.set_run_title("no-such-run", None).await.unwrap());
    }

    async fn runs_are_found_by_words_of_their_titles(database) {
        let store = database.open().await;
        store.begin_run(&NewRun::new("r", "claude", "p")).await.unwrap();
        store.set_run_title("r", Some("Fix it")).await.unwrap();
        let text = |text: &str| RunFilter::default().text(text);
        assert_eq!(store.runs(&text("FIX")).await.unwrap().len(), 1);
        assert_eq!(store.runs(&text("fix this")).await.unwrap(), []);
    }

    async fn a_directory_has_the_runs_below_it(database) {
        let store = database.open().await;
        for (id, directory) in [("a", "/w/site"), ("b", "/w/site/api"), ("c", "/w/site2"), ("d", "/w/Site/api")] {
            let mut new = NewRun::new(id, "claude", "p");
            new.working_directory = Some(directory.into());
            new.started_at = Some(1);
            store.begin_run(&new).await.unwrap();
        }
        for (directory, expected) in [("/w/site", vec!["b", "a"]), ("/w/site/", vec!["b", "a"]), ("/w/site/api", vec!["b"]), ("/", vec!["d", "c", "b", "a"]), ("/w/s", vec![])] {
            let runs = store.runs(&RunFilter::default().working_directory(directory.into())).await.unwrap();
            let ids: Vec<_> = runs.iter().map(|run| &*run.run_id).collect();
            assert_eq!(ids, expected, "{directory}");
        }
    }
}

#[tokio::test]
async fn texts_of_forgotten_runs_are_in_the_file_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let store = Store::open(file.to_str().unwrap()).await.unwrap();
    for number in 0..20 {
        let id = format!("r{number}");
        let mut new = NewRun::new(id.as_str(), "claude", "p");
        new.title = Some("the secret title".into());
        new.prompt = Some("the secret prompt ".repeat(1 + 50 * number));
        store.begin_run(&new).await.unwrap();
        let outcome = Outcome::new(id.as_str(), "claude", RunResult::default());
        store.end_run(&outcome).await.unwrap();
    }
    assert_eq!(store.forget_runs(u64::MAX).await.unwrap(), 20);
    store.close().await;
    let content = fs::read(&file).unwrap();
    assert!(!String::from_utf8_lossy(&content).contains("the secret"));
}
