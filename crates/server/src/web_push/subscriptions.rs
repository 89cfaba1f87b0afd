//! The browsers that subscribed, in a file that outlives the server.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use teamster_core::sync::lock;
use teamster_process::{FileMode, make_private_folder, replace_file};

use crate::keys::Key;
use crate::token::{FileVersion, hash};

/// The file in the server's folder.
const FILE: &str = "web-push.json";
/// The lock file for changes, because several servers may have one folder.
const LOCK: &str = "web-push.lock";
/// The maximum number of browsers of a token. A further one takes the place of the oldest.
const MOST: usize = 16;

/// A browser that subscribed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subscription {
    /// The address at the browser's push service.
    pub(crate) endpoint: String,
    /// The browser's public key, as URL-safe Base64.
    pub(crate) p256dh: String,
    /// The browser's authentication secret, as URL-safe Base64.
    pub(crate) auth: String,
    /// The token with which it subscribed; `None` for the user of a Unix socket.
    pub(crate) token: Option<Key>,
}

impl Subscription {
    /// Returns the id, which tells nothing of the address.
    pub(crate) fn id(&self) -> String {
        let mut id = hash(&self.endpoint);
        id.truncate(32);
        id
    }
}

/// The subscriptions of a server.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    folder: PathBuf,
    cache: Mutex<Cache>,
}

/// The file as of its last read.
#[derive(Debug, Default)]
struct Cache {
    version: Option<FileVersion>,
    list: Vec<Subscription>,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    subscriptions: Vec<Subscription>,
}

impl Subscriptions {
    pub(crate) fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            cache: Mutex::default(),
        }
    }

    /// Returns all subscriptions. Reads the file again if it changed.
    pub(crate) fn list(&self) -> io::Result<Vec<Subscription>> {
        let path = self.folder.join(FILE);
        let version = FileVersion::of(&path);
        let mut cache = lock(&self.cache);
        if cache.version != version {
            cache.list = read(&path)?;
            cache.version = version;
        }
        Ok(cache.list.clone())
    }

    /// Stores a subscription, in the place of an earlier one of the same browser.
    pub(crate) fn add(&self, subscription: Subscription) -> io::Result<()> {
        self.change(|list| {
            let known = list
                .iter()
                .position(|one| one.endpoint == subscription.endpoint);
            if let Some(known) = known {
                list.remove(known);
            }
            let is_own = |one: &Subscription| one.token == subscription.token;
            if list.iter().filter(|one| is_own(one)).count() >= MOST
                && let Some(oldest) = list.iter().position(is_own)
            {
                list.remove(oldest);
            }
            list.push(subscription);
        })
    }

    pub(crate) fn remove(&self, has_ended: impl Fn(&Subscription) -> bool) -> io::Result<()> {
        self.change(|list| list.retain(|one| !has_ended(one)))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Subscription>)) -> io::Result<()> {
        make_private_folder(&self.folder)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.folder.join(LOCK))?;
        file.lock()?;
        let path = self.folder.join(FILE);
        let before = read(&path)?;
        let mut subscriptions = before.clone();
        change(&mut subscriptions);
        if subscriptions == before {
            return Ok(());
        }
        let json = serde_json::to_vec_pretty(&Content { subscriptions })?;
        replace_file(&path, &json, FileMode::Private)
    }
}

fn read(path: &Path) -> io::Result<Vec<Subscription>> {
    let json = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        json => json?,
    };
    let content: Result<Content, _> = serde_json::from_slice(&json);
    let content = content.map_err(|error| {
        io::Error::other(format!(
            "{}: {error}; remove the file: browsers subscribe again when their page is opened",
            path.display()
        ))
    })?;
    Ok(content.subscriptions)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn subscription(number: usize) -> Subscription {
        Subscription {
            endpoint: format!("https://push.example/{number}"),
            p256dh: "key".to_owned(),
            auth: "secret".to_owned(),
            token: None,
        }
    }

    #[test]
    fn subscriptions_are_kept_privately_once_each_and_limited() {
        let folder = tempfile::tempdir().unwrap();
        let of = || Subscriptions::at(folder.path());
        let (own, other) = (of(), of());
        assert_eq!(own.list().unwrap(), []);
        for number in 0..=MOST {
            own.add(subscription(number)).unwrap();
        }
        let mut renewed = subscription(1);
        "new".clone_into(&mut renewed.auth);
        own.add(renewed.clone()).unwrap();
        // The oldest one is gone, and the renewed one is the newest.
        let mut expected: Vec<_> = (2..=MOST).map(subscription).collect();
        expected.push(renewed);
        assert_eq!(own.list().unwrap(), expected);
        // Another server of the same folder knows them, and what it removes is gone.
        assert_eq!(other.list().unwrap(), expected);
        let ended = expected.remove(0).id();
        other.remove(|one| one.id() == ended).unwrap();
        assert_eq!(own.list().unwrap(), expected);
        let about = fs::metadata(folder.path().join(FILE)).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_file_is_named_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        fs::write(&path, "{").unwrap();
        let own = Subscriptions::at(folder.path());
        for error in [
            own.list().unwrap_err(),
            own.add(subscription(1)).unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(
                error.contains("web-push.json") && error.contains("remove the file"),
                "{error}"
            );
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "{");
    }
}
