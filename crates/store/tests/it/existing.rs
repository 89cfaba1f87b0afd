//! Tests of opening an existing store without creating anything.

use std::fs;
use std::path::Path;

use teamster_api::history::RunFilter;
use teamster_store::{NewRun, Store, StoreError};

use crate::support::{Database, execute};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

async fn ids(store: &Store) -> Vec<String> {
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    runs.into_iter().map(|run| run.run_id).collect()
}

on_each_database! {
    async fn existing_tables_are_read_and_none_is_made(database) {
        let missing = |result: Result<Store, StoreError>| match result {
            Err(StoreError::Missing { location }) => location,
            other => panic!("{other:?}"),
        };
        let location = missing(Store::open_existing(database.url()).await);
        assert!(!location.contains('@'), "{location}");
        // Opening has created nothing.
        missing(Store::open_existing(database.url()).await);

        let store = database.open().await;
        store.begin_run(&NewRun::new("one", "claude", "")).await.unwrap();
        let reader = Store::open_existing(database.url()).await.unwrap();
        assert_eq!(ids(&reader).await, ["one"]);
        // The reader sees later writes.
        store.begin_run(&NewRun::new("two", "claude", "")).await.unwrap();
        assert_eq!(ids(&reader).await.len(), 2);
        reader.close().await;
        store.close().await;

        let newer = "INSERT INTO teamster_migrations \
            (version, description, success, checksum, execution_time) \
            SELECT 99, description, success, checksum, execution_time FROM teamster_migrations \
            WHERE version = 1";
        database.execute(newer).await;
        let error = Store::open_existing(database.url()).await.unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error:?}");
        database.execute("DELETE FROM teamster_migrations").await;
        let error = Store::open_existing(database.url()).await.unwrap_err();
        assert!(error.to_string().contains("not those of this version"), "{error}");
    }
}

#[tokio::test]
async fn no_file_and_no_folder_is_made() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["store.db", "a/b/store.db"] {
        let path = folder.path().join(name);
        let error = Store::open_existing(path.to_str().unwrap()).await;
        let location = path.display().to_string();
        assert_eq!(error.unwrap_err(), StoreError::Missing { location });
    }
    assert_eq!(names(folder.path()), [""; 0]);

    let file = folder.path().join("empty");
    fs::write(&file, "").unwrap();
    let error = Store::open_existing(file.to_str().unwrap()).await;
    assert!(
        matches!(error, Err(StoreError::Missing { .. })),
        "{error:?}"
    );
    assert_eq!(fs::read(&file).unwrap(), b"");

    let places = folder.path().join("places.db");
    fs::write(&places, "").unwrap();
    let url = format!("sqlite:{}", places.display());
    execute(&url, "CREATE TABLE bookmarks (url TEXT)").await;
    let error = Store::open_existing(&url).await;
    assert!(
        matches!(error, Err(StoreError::Foreign { .. })),
        "{error:?}"
    );

    fs::write(&file, "no database, but longer than nothing").unwrap();
    let error = Store::open_existing(file.to_str().unwrap()).await;
    assert!(matches!(error, Err(StoreError::Open { .. })), "{error:?}");
    let error = Store::open_existing(folder.path().to_str().unwrap()).await;
    assert!(error.unwrap_err().to_string().contains("name a file in it"));
    assert_eq!(names(folder.path()), ["empty", "places.db"]);
}

#[tokio::test]
async fn memory_is_there_and_empty() {
    let store = Store::open_existing("sqlite::memory:").await.unwrap();
    assert_eq!(ids(&store).await, [""; 0]);
}

#[tokio::test]
async fn a_reader_leaves_nothing_behind() {
    let database = Database::sqlite();
    let store = database.open().await;
    store
        .begin_run(&NewRun::new("one", "claude", ""))
        .await
        .unwrap();
    let file = store.location();
    store.close().await;
    let before = fs::read(&file).unwrap();
    let reader = Store::open_existing(database.url()).await.unwrap();
    assert_eq!(ids(&reader).await, ["one"]);
    reader.close().await;
    assert_eq!(names(Path::new(&file).parent().unwrap()), ["store.db"]);
    assert_eq!(fs::read(&file).unwrap(), before);
}

/// Permissions do not keep a superuser from writing, so the test runs again without that right.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_write_protected_store_can_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    const AGAIN: &str = "TEAMSTER_STORE_TEST_WITHOUT_RIGHTS";
    let folder = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let probe = folder.path().join("probe");
    fs::create_dir(&probe).unwrap();
    set(&probe, 0o500);
    let may_do_all = fs::write(probe.join("x"), "").is_ok();
    if may_do_all {
        assert!(std::env::var_os(AGAIN).is_none(), "it still has the right");
        let again = Command::new("setpriv")
            .arg("--bounding-set=-dac_override,-dac_read_search")
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "existing::a_write_protected_store_can_be_read"])
            .env(AGAIN, "yes")
            .output();
        match again {
            Err(_) => {
                crate::support::not_run("a medium that is write-protected: there is no setpriv");
            }
            Ok(again) => {
                let message = String::from_utf8_lossy(&again.stdout);
                assert!(
                    again.status.success() && message.contains("1 passed"),
                    "{message}"
                );
            }
        }
        return;
    }

    let home = folder.path().join("home");
    let file = home.join("store.db");
    let url = file.to_str().unwrap();
    let store = Store::open(url).await.unwrap();
    let run = NewRun::new("one", "claude", "");
    store.begin_run(&run).await.unwrap();
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for name in ["store.db", "store.db-wal"] {
        fs::copy(home.join(name), copy.join(name)).unwrap();
    }
    store.close().await;
    set(&copy, 0o500);
    let copied = copy.join("store.db");
    let error = Store::open_existing(copied.to_str().unwrap()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("copy both files"), "{error}");
    set(&copy, 0o700);

    set(&file, 0o400);
    set(&home, 0o500);
    let reader = Store::open_existing(url).await.unwrap();
    assert_eq!(ids(&reader).await, ["one"]);
    let error = reader.begin_run(&NewRun::new("two", "claude", "")).await;
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("make the file and its folder writable")
    );
    assert_eq!(names(&home), ["store.db"]);
    reader.close().await;

    // Only the file is write-protected.
    set(&home, 0o700);
    let reader = Store::open_existing(url).await.unwrap();
    assert_eq!(ids(&reader).await, ["one"]);
    reader.close().await;
}
