//! Compares the accounts of databases of the real OpenCode and its fork Kilo with the usage that the model's service
//! reported. A scan works in any state of the database and leaves no trace in its folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use teamster_api::usage::Dimension;
use teamster_usage::{
    Locations, Provider, StoredMessage, StoredSession, TickMeter, stored_session, stored_sessions,
};
use tempfile::TempDir;

use crate::common::{counted, scan, scenarios, truth};

/// Creates a home folder with an empty folder for OpenCode's data.
fn home() -> (TempDir, PathBuf) {
    home_of(Provider::OpenCode)
}

fn home_of(provider: Provider) -> (TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join(".local/share").join(provider.id());
    fs::create_dir_all(&data).unwrap();
    (home, data)
}

/// Returns the recorded scenarios of versions with a database, with their real usage.
fn with_database() -> Vec<(PathBuf, Value)> {
    with_database_of(Provider::OpenCode)
}

fn with_database_of(provider: Provider) -> Vec<(PathBuf, Value)> {
    let mut all = scenarios(provider);
    all.retain(|(folder, _)| folder.join(format!("{provider}.sql")).exists());
    all
}

/// Creates the database of a scenario. Its log exists while the connection is open.
async fn database(folder: &Path, scenario: &Path) -> SqliteConnection {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let version = scenario.parent().unwrap();
    let schema = fs::read_to_string(version.join("schema.sql")).unwrap();
    let rows = fs::read_to_string(scenario.join(format!("{name}.sql"))).unwrap();
    let mut open = SqliteConnectOptions::new()
        .filename(folder.join(format!("{name}.db")))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(schema + &rows))
        .execute(&mut open)
        .await
        .unwrap();
    open
}

/// Returns all files of a folder with their content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect()
}

fn names(folder: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    files(folder).keys().map(name).collect()
}

#[tokio::test]
async fn prompts_and_answers_of_a_session_are_without_sub_agents() {
    let scenarios = with_database();
    let fork = scenarios.iter().find(|(it, _)| it.ends_with("fork"));
    let (folder, data) = home();
    let open = database(&data, &fork.unwrap().0).await;
    let locations = Locations::of_home(folder.path());
    let directory = Some(Path::new("/tmp/box/ws"));
    let sessions = stored_sessions(Provider::OpenCode, &locations, directory);
    let ids: Vec<_> = sessions.iter().map(|it| &*it.id).collect();
    // The last used first.
    assert_eq!(
        ids,
        [
            "ses_dfb564d62ffeX7eW9P7AcNPaS9",
            "ses_dfb5678c6ffe6aX7HV975ZzAbk",
            "ses_dfb566834ffe88u5SwIzzCInXF",
        ]
    );
    let first = &sessions[1];
    assert_eq!(first.first_prompt, "\"#scn:task go\"");
    let texts: Vec<_> = (first.messages().unwrap().into_iter())
        .map(|message| match message {
            StoredMessage::Prompt(text) => format!("> {text}"),
            StoredMessage::Answer(text) => text,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        texts[..4],
        [
            "> \"#scn:task go\"",
            "I hand it on.",
            "The sub job is done.",
            "> \"#scn:text in the first\"",
        ]
    );
    assert_eq!(texts.len(), 5);
    let found = stored_session(Provider::OpenCode, &locations, &first.id);
    assert_eq!(found.as_ref(), Some(first));
    let sub_agent = "ses_dfb566ffeffecdhc64gwjt4PNl";
    assert_eq!(
        stored_session(Provider::OpenCode, &locations, sub_agent),
        None
    );
    let elsewhere = Some(Path::new("/else"));
    assert_eq!(
        stored_sessions(Provider::OpenCode, &locations, elsewhere),
        []
    );
    drop(open);
}

#[tokio::test]
async fn a_session_in_two_databases_is_listed_once() {
    let scenarios = with_database();
    let (folder, data) = home();
    let open = database(&data, &scenarios[0].0).await;
    open.close().await.unwrap();
    let locations = Locations::of_home(folder.path());
    let sessions = stored_sessions(Provider::OpenCode, &locations, None);
    assert!(!sessions.is_empty());
    fs::copy(data.join("opencode.db"), data.join("opencode-dev.db")).unwrap();
    let ids = |sessions: &[StoredSession]| -> Vec<String> {
        sessions.iter().map(|it| it.id.clone()).collect()
    };
    let again = stored_sessions(Provider::OpenCode, &locations, None);
    assert_eq!(ids(&again), ids(&sessions));
}

#[test]
fn a_database_that_cannot_be_read_has_no_sessions() {
    let (folder, data) = home();
    fs::write(data.join("opencode.db"), "no database").unwrap();
    let locations = Locations::of_home(folder.path());
    assert_eq!(stored_sessions(Provider::OpenCode, &locations, None), []);
    assert_eq!(stored_session(Provider::OpenCode, &locations, "s"), None);
}

#[tokio::test]
async fn opencode_and_kilo_usage_is_right_in_any_database_state() {
    for provider in [Provider::OpenCode, Provider::Kilo] {
        let scenarios = with_database_of(provider);
        assert!(scenarios.len() >= 5, "{}", scenarios.len());
        for (scenario, known) in scenarios {
            stands_there_in_all_ways(provider, &scenario, &known).await;
        }
    }
}

/// Checks a database that is open, left by a killed process, copied, and closed.
async fn stands_there_in_all_ways(provider: Provider, scenario: &Path, known: &Value) {
    let (open_home, open) = home_of(provider);
    let connection = database(&open, scenario).await;
    let all = ["", "-shm", "-wal"].map(|end| format!("{provider}.db{end}"));
    assert_eq!(names(&open), all);
    let (killed_home, killed) = home_of(provider);
    let (copy_home, copy) = home_of(provider);
    for name in &all {
        fs::copy(open.join(name), killed.join(name)).unwrap();
        if !name.ends_with("-shm") {
            fs::copy(open.join(name), copy.join(name)).unwrap();
        }
    }
    let check = |home: &TempDir, data: &Path, shared: bool| {
        let files = || {
            let mut files = files(data);
            // Connections of one process share the index and write to it.
            files.retain(|path, _| !shared || !path.to_string_lossy().ends_with("-shm"));
            files
        };
        let before = files();
        let accounts = scan(home.path());
        assert_eq!(counted(&accounts), truth(known), "{}", scenario.display());
        let found = accounts.diagnostics();
        assert_eq!((found.malformed_lines, found.unreadable), (0, 0));
        assert!(before == files(), "{:?}", names(data));
    };
    check(&open_home, &open, true);
    check(&killed_home, &killed, false);
    check(&copy_home, &copy, false);
    connection.close().await.unwrap();
    assert_eq!(names(&open), [format!("{provider}.db")]);
    check(&open_home, &open, false);
}

#[test]
fn an_older_version_matches_the_real_usage_by_its_files() {
    let mut scenarios = scenarios(Provider::OpenCode);
    scenarios.retain(|(folder, _)| folder.join("home").exists());
    assert!(scenarios.len() >= 5, "{}", scenarios.len());
    for (scenario, known) in scenarios {
        let accounts = scan(&scenario.join("home"));
        assert_eq!(counted(&accounts), truth(&known), "{}", scenario.display());
        let found = accounts.diagnostics();
        assert_eq!((found.malformed_lines, found.unreadable), (0, 0));
        let sub_agents = accounts.total().subagent_requests;
        assert_eq!(
            sub_agents > 0,
            scenario.ends_with("subagent") || scenario.ends_with("fork")
        );
    }
}

#[tokio::test]
async fn the_cost_by_opencodes_prices_is_the_reported_cost() {
    for (scenario, known) in with_database() {
        let (home, data) = home();
        let _open = database(&data, &scenario).await;
        for model in scan(home.path()).by(Dimension::Model) {
            let totals = known["total"].as_array().unwrap().iter();
            let of_model = totals.filter(|total| total["model"].as_str() == model.name.as_deref());
            let cost: f64 = of_model.filter_map(|total| total["costUsd"].as_f64()).sum();
            let reported = model.figures.reported_cost_usd;
            if model.name.as_deref() == Some("m2") {
                assert_eq!(reported, None, "the CLI knows no price of it");
            } else {
                assert!(
                    (reported.unwrap() - cost).abs() < 1e-9,
                    "{reported:?} {cost}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_writer_does_not_wait_for_a_scan() {
    let (home, data) = home();
    let all = with_database();
    let mut open = database(&data, &all[0].0).await;
    for round in 0..20 {
        let requests = scan(home.path()).total().requests;
        assert!(requests > 0, "{round}");
        sqlx::query("UPDATE message SET time_updated = time_updated + 1")
            .execute(&mut open)
            .await
            .unwrap();
        let (busy, ..): (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)")
            .fetch_one(&mut open)
            .await
            .unwrap();
        assert_eq!(busy, 0);
    }
}

/// Moves all times by this number of milliseconds.
async fn later(open: &mut SqliteConnection, by: i64) {
    for query in [
        "UPDATE message SET data = \
         json_set(data, '$.time.created', json_extract(data, '$.time.created') + ?1)",
        "UPDATE session SET time_created = time_created + ?1",
    ] {
        sqlx::query(query)
            .bind(by)
            .execute(&mut *open)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_meter_reports_the_usage_of_a_session_and_its_sub_agents() {
    let all = with_database();
    let (scenario, known) = all.iter().find(|(f, _)| f.ends_with("fork")).unwrap();
    let (home, data) = home();
    let locations = Locations::of_home(home.path());
    let session = known["total"][0]["session"].as_str().unwrap();
    let mut open = database(&data, scenario).await;
    let (first,): (i64,) = sqlx::query_as("SELECT min(time_created) FROM message")
        .fetch_one(&mut open)
        .await
        .unwrap();
    // As if all happened an hour ago, and then as if it happened now.
    let hour = 3_600_000;
    let meter = TickMeter::new(Provider::OpenCode, locations);
    let now = jiff::Timestamp::now().as_millisecond();
    later(&mut open, now - hour - first).await;
    assert_eq!(meter.read(Some(session)), []);
    later(&mut open, hour).await;
    let models = meter.read(Some(session));
    let (requests, usage, _) = truth(known)[&(session.to_owned(), "m1".to_owned())];
    let reported = models.iter().map(|model| (model.requests, model.usage));
    assert_eq!(reported.collect::<Vec<_>>(), [(requests, usage)]);
}

#[tokio::test]
async fn other_files_than_databases_are_reported() {
    let (home, data) = home();
    fs::write(
        data.join("opencode.db"),
        "This is no database, but it is long enough for one.".repeat(40),
    )
    .unwrap();
    let accounts = scan(home.path());
    assert_eq!(accounts.diagnostics().unreadable, 1);
    assert!(accounts.is_empty());
    let (home, data) = self::home();
    fs::write(data.join("opencode.db"), "").unwrap();
    assert!(scan(home.path()).is_empty());
}
