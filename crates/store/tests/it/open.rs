//! Tests of opening and creating a store, and of refused stores.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use teamster_api::history::RunFilter;
use teamster_store::{Conversation, NewRun, NewSession, Store, StoreError};

use crate::support::{Database, execute, not_run, with_parameter};

/// Returns the error of opening. Asserts that it contains no password.
async fn refused(url: &str) -> StoreError {
    let error = match Store::open(url).await {
        Ok(store) => panic!("{store:?} was opened"),
        Err(error) => error,
    };
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    error
}

async fn use_it(store: &Store, name: &str) {
    store
        .begin_run(&NewRun::new(name, "claude", ""))
        .await
        .unwrap();
    let key = Conversation::new().channel(name).with("claude");
    store
        .put_session(&key, &NewSession::new(name))
        .await
        .unwrap();
    assert_eq!(store.session(&key).await.unwrap().unwrap().session_id, name);
    assert!(store.run(name).await.unwrap().is_some());
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

on_each_database! {
    async fn data_is_there_after_reopening(database) {
        let store = database.open().await;
        use_it(&store, "one").await;
        store.close().await;
        let store = database.open().await;
        use_it(&store, "two").await;
        // The first handle is not closed, and another one is open at the same time.
        let other = database.open().await;
        assert_eq!(other.runs(&RunFilter::default()).await.unwrap().len(), 2);
        drop(store);
        assert_eq!(other.runs(&RunFilter::default()).await.unwrap().len(), 2);
    }

    async fn tables_of_a_newer_version_are_refused_and_stay_as_they_are(database) {
        use_it(&database.open().await, "one").await;
        let newer = "INSERT INTO teamster_migrations \
            (version, description, success, checksum, execution_time) \
            SELECT 99, description, success, checksum, execution_time FROM teamster_migrations \
            WHERE version = 1";
        database.execute(newer).await;
        let error = refused(database.url()).await;
        assert!(matches!(error, StoreError::Newer { found: 99, known, .. } if known < 99), "{error:?}");
        assert!(error.to_string().contains("use the newer program"), "{error}");
        database.execute("DELETE FROM teamster_migrations WHERE version = 99").await;
        assert!(database.open().await.run("one").await.unwrap().is_some());
    }

    async fn tables_of_another_build_are_refused(database) {
        database.open().await;
        let odd = if database.is_sqlite() { "x'00'" } else { "'\\x00'" };
        let change = format!("UPDATE teamster_migrations SET checksum = {odd}");
        database.execute(&change).await;
        let error = refused(database.url()).await;
        assert!(error.to_string().contains("another build"), "{error}");
    }
}

/// Opens a store in this number of threads at the same moment.
async fn open_at_once(database: &Database, threads: usize) {
    let barrier = Arc::new(Barrier::new(threads));
    let openers: Vec<_> = (0..threads)
        .map(|i| {
            let barrier = Arc::clone(&barrier);
            let url = database.url().to_owned();
            tokio::task::spawn_blocking(move || {
                barrier.wait();
                tokio::runtime::Handle::current().block_on(async {
                    let store = Store::open(&url).await.unwrap();
                    use_it(&store, &format!("r{i}")).await;
                });
            })
        })
        .collect();
    for opener in openers {
        opener.await.unwrap();
    }
    let runs = database.open().await.runs(&RunFilter::default()).await;
    assert_eq!(runs.unwrap().len(), threads);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_is_opened_by_many_at_the_same_moment() {
    for _ in 0..40 {
        open_at_once(&Database::sqlite(), 6).await;
    }
}

/// Returns how many times this process has the file open.
#[cfg(target_os = "linux")]
fn times_open(file: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter(|it| fs::read_link(it.path()).is_ok_and(|target| target == file))
        .count()
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn a_new_file_that_another_has_locked_is_waited_for() {
    use sqlx::Connection as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let url = format!("sqlite:{}", file.display());
    fs::write(&file, "").unwrap();
    sqlx::any::install_default_drivers();
    let mut other = sqlx::AnyConnection::connect(&url).await.unwrap();
    let lock = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let ours = times_open(&file);
    assert!(ours > 0);
    let opening = tokio::spawn({
        let url = url.clone();
        async move { Store::open(&url).await }
    });
    // Once it has opened the file, it waits for the lock.
    let reached = || times_open(&file) > ours || opening.is_finished();
    let wait = async {
        while !reached() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(50), wait)
        .await
        .expect("it opens the file");
    assert!(!opening.is_finished(), "it has not waited");
    lock.rollback().await.unwrap();
    use_it(&opening.await.unwrap().unwrap(), "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_schema_is_opened_by_many_at_the_same_moment() {
    for _ in 0..3 {
        let Some(database) = Database::postgres().await else {
            return;
        };
        open_at_once(&database, 6).await;
    }
}

#[tokio::test]
async fn a_new_file_and_its_folders_are_for_the_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a/b/store.db");
    let store = Store::open(file.to_str().unwrap()).await.unwrap();
    use_it(&store, "one").await;
    assert_eq!(store.location(), file.display().to_string());
    let mut names: Vec<_> = fs::read_dir(file.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["store.db", "store.db-shm", "store.db-wal"]);
    for name in names {
        assert_eq!(mode(&file.with_file_name(&name)), 0o600, "{name}");
    }
    assert_eq!(mode(&folder.path().join("a")), 0o700);
    assert_eq!(mode(&folder.path().join("a/b")), 0o700);
    store.close().await;
    let left = fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "the journal is moved to the file");
}

#[tokio::test]
async fn a_file_that_was_left_keeps_its_journal_and_is_read_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let store = Store::open(file.to_str().unwrap()).await.unwrap();
    use_it(&store, "one").await;
    store.leave().await;
    drop(store);
    assert!(folder.path().join("store.db-wal").metadata().unwrap().len() > 0);
    // As after the end of the process: without its locks, in a folder of its own.
    let copy = tempfile::tempdir().unwrap();
    for name in ["store.db", "store.db-wal"] {
        fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let copied = copy.path().join("store.db");
    let store = Store::open_existing(copied.to_str().unwrap())
        .await
        .unwrap();
    assert!(store.run("one").await.unwrap().is_some());
    store.close().await;
    let left = fs::read_dir(copy.path()).unwrap().count();
    assert_eq!(left, 1, "the journal is moved to the file");
}

#[tokio::test]
async fn any_name_of_a_file_is_meant_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().display().to_string();
    for (name, url) in [
        ("a b.db", format!("{base}/a b.db")),
        ("50%.db", format!("{base}/50%.db")),
        ("%41.db", format!("{base}/%41.db")),
        ("q?mode=memory#x.db", format!("{base}/q?mode=memory#x.db")),
        ("ü'\"\\.db", format!("{base}/ü'\"\\.db")),
        (":memory:", format!("{base}/:memory:")),
        ("a:b@c", format!("{base}/a:b@c")),
        ("u0.db", format!("SQLITE:{base}/u0.db")),
        ("u1.db", format!("sqlite:{base}/u1.db")),
        ("u2.db", format!("sqlite://{base}/u2.db")),
        ("u?3.db", format!("sqlite://{base}/u%3F3.db")),
    ] {
        use_it(&Store::open(&url).await.unwrap(), "one").await;
        assert!(folder.path().join(name).is_file(), "{url}");
    }
    assert!(Path::new(&base).join("A.db").metadata().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_memory_is_one_for_all_clones_and_no_other() {
    let store = Store::open("sqlite::memory:").await.unwrap();
    assert_eq!(store.location(), "memory");
    let tasks: Vec<_> = (0..20)
        .map(|i| {
            let store = store.clone();
            tokio::spawn(async move { use_it(&store, &format!("r{i}")).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().len(), 20);
    let other = Store::open(":memory:").await.unwrap();
    assert_eq!(other.runs(&RunFilter::default()).await.unwrap(), []);
}

#[tokio::test]
async fn other_files_than_databases_are_refused_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    let text = "my diary, which is longer than the header of a database. ".repeat(20);
    fs::write(&file, &text).unwrap();
    let error = refused(file.to_str().unwrap()).await;
    assert!(matches!(error, StoreError::Open { .. }), "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains("notes.txt") && message.contains("not a database"),
        "{message}"
    );
    assert!(message.contains("name another file"), "{message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("places.db");
    fs::write(&file, "").unwrap();
    let url = format!("sqlite:{}", file.display());
    execute(&url, "CREATE TABLE bookmarks (url TEXT)").await;
    let before = fs::read(&file).unwrap();
    let error = refused(&url).await;
    let StoreError::Foreign { table, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(table, "bookmarks");
    assert!(error.to_string().contains("name another file"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[tokio::test]
async fn a_place_where_no_file_can_be_is_reported_with_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let below = file.join("store.db").display().to_string();
    let message = refused(&below).await.to_string();
    assert!(message.contains(&below), "{message}");
    assert!(
        message.contains("a part of the path is a file"),
        "{message}"
    );

    let message = refused(folder.path().to_str().unwrap()).await.to_string();
    assert!(message.contains("name a file in it"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_store_is_opened_and_read_while_another_writes() {
    use sqlx::Connection as _;
    let database = Database::sqlite();
    use_it(&database.open().await, "one").await;
    let mut writer = sqlx::AnyConnection::connect(database.url()).await.unwrap();
    let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await.unwrap();
    sqlx::raw_sql("DELETE FROM teamster_runs")
        .execute(&mut *transaction)
        .await
        .unwrap();
    let store = database.open().await;
    assert!(store.run("one").await.unwrap().is_some());
    transaction.rollback().await.unwrap();
}

#[tokio::test]
async fn implausible_urls_are_reported_without_their_password() {
    for (url, reason) in [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("sqlite:", "no name"),
        ("sqlite:/tmp/x.db?mode=ro", "no parameters"),
        ("sqlite:/tmp/%FF", "UTF-8"),
        ("mysql://me:hunter2@host/db", "`mysql`"),
        ("postgres+ssl://me:hunter2@host/db", "`postgres+ssl`"),
        ("postgres_ssl://me:hunter2@host/db", "unknown kind of URL"),
        ("://me:hunter2@host/db", "unknown kind of URL"),
        (" postgres://me:hunter2@host/db", "unknown kind of URL"),
        ("me:hunter2@host://db", "unknown kind of URL"),
        ("//me:hunter2@host/db", "looks like a server"),
        ("me:hunter2@host/db", "looks like a server"),
        ("me:hunter2/x@host", "looks like a server"),
        ("mysql:me:hunter2@host/db", "looks like a server"),
        ("postgres//me:hunter2@host/db", "looks like a server"),
        ("host=h user=me password=hunter2", "looks like a server"),
        ("sqlite:me:hunter2@host/db", "looks like a server"),
        ("sqlite://me:hunter2@host/db", "looks like a server"),
        ("SQLITE:postgres://me:hunter2@host/db", "`postgres`"),
        ("POSTGRES:me:hunter2@host", "`//`"),
        ("POSTGRES:/me:hunter2@host", "`//`"),
        ("Postgres://me:12/hunter2@host/db", "%2F"),
        ("postgres:me:hunter2@host/db", "`//`"),
        ("postgres://me:hunter2#x@host/db", "percent-encoded"),
        ("postgres://me:12/hunter2@host/db", "%2F"),
        ("postgres://me:12?hunter2@host/db", "%3F"),
        ("postgres://me:12#hunter2@host/db", "%23"),
        ("postgres://me:hunter2@host:port/db", "postgres://USER"),
        ("postgresql://me:hunter2@[::1/db", "postgres://USER"),
    ] {
        let error = refused(url).await;
        assert!(matches!(error, StoreError::Url { .. }), "{url}: {error:?}");
        assert!(error.to_string().contains(reason), "{url}: {error}");
    }
}

#[tokio::test]
async fn missing_server_is_reported_at_once_without_the_password() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = format!("postgres://me:hunter2@127.0.0.1:{port}/db?password=hunter2");
    let message = refused(&url).await.to_string();
    assert!(
        message.contains(&format!("postgres://127.0.0.1:{port}/db")),
        "{message}"
    );
    assert!(message.contains("is the server running there"), "{message}");

    let message = refused(&format!("{url}&sslmode=perhaps")).await.to_string();
    assert!(message.contains("perhaps"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scheme_of_a_server_may_be_in_capitals() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let url = database.url().replacen("postgres://", "POSTGRES://", 1);
    let store = Store::open(&url).await.unwrap();
    use_it(&store, "one").await;
    assert!(store.location().starts_with("postgres://"), "{store:?}");
}

/// Returns the URL of the server with another password, user or database.
fn changed(url: &str, user: Option<(&str, &str)>, database: Option<&str>) -> String {
    let (server, query) = url.split_once('?').unwrap();
    let (credentials, location) = server.split_once('@').unwrap();
    let credentials = match user {
        Some((name, password)) => format!("postgres://{name}:{password}"),
        None => credentials.to_owned(),
    };
    let (host, path) = location.split_once('/').unwrap();
    format!("{credentials}@{host}/{}?{query}", database.unwrap_or(path))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_servers_refusal_is_reported_with_the_next_step() {
    let Some(database) = Database::postgres().await else {
        return;
    };
    let url = database.url();
    let message = refused(&changed(url, Some(("teamster", "hunter2")), None))
        .await
        .to_string();
    assert!(
        message.contains("correct the user name or the password"),
        "{message}"
    );
    let message = refused(&changed(url, None, Some("nowhere")))
        .await
        .to_string();
    assert!(message.contains("create the database"), "{message}");
    let schema = with_parameter(
        url.split_once('?').unwrap().0,
        "options=-csearch_path%3Dno_such",
    );
    let message = refused(&schema).await.to_string();
    assert!(message.contains("create the schema"), "{message}");

    // A user who may use tables but not create them.
    let role = format!("reader_{}", std::process::id());
    let schema = url.rsplit("%3D").next().unwrap();
    database
        .execute(&format!(
            "CREATE ROLE {role} LOGIN PASSWORD 'hunter2'; GRANT USAGE ON SCHEMA {schema} TO {role}"
        ))
        .await;
    let theirs = changed(url, Some((&role, "hunter2")), None);
    let message = refused(&theirs).await.to_string();
    assert!(message.contains("grant the user the right"), "{message}");
    database.open().await;
    database
        .execute(&format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
        ))
        .await;
    use_it(&Store::open(&theirs).await.unwrap(), "one").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_by_tls_if_the_url_asks_for_it() {
    use sqlx::{Connection as _, Row as _};
    let Some(database) = Database::postgres().await else {
        return;
    };
    let Ok(root) = std::env::var("TEAMSTER_TEST_POSTGRES_ROOT") else {
        not_run(
            "TLS: TEAMSTER_TEST_POSTGRES_ROOT is not set (.ci/postgres sets it if openssl is there)",
        );
        return;
    };
    let with = |parameter: &str| with_parameter(database.url(), parameter);
    let verified = with(&format!("sslmode=verify-full&sslrootcert={root}"));
    use_it(&Store::open(&verified).await.unwrap(), "one").await;
    let mut connection = sqlx::AnyConnection::connect(&verified).await.unwrap();
    let row = sqlx::query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(row.get::<bool, _>(0));

    // The system does not trust this certificate.
    let message = refused(&with("sslmode=verify-full")).await.to_string();
    assert!(message.contains("sslrootcert"), "{message}");
    Store::open(&with("sslmode=require")).await.unwrap();
    Store::open(&with("sslmode=disable")).await.unwrap();
}
