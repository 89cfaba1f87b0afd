//! Folders with configuration files of all kinds, and snapshots of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use teamster_core::provider::{ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable};
use teamster_mcp_config::edit;
use tempfile::TempDir;

/// Creates a folder in memory if possible, because these tests write to the disk a lot.
pub(crate) fn temp() -> TempDir {
    let memory = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("teamster-lease-test-");
    builder
        .tempdir_in(memory)
        .or_else(|_| builder.tempdir())
        .unwrap()
}

/// A folder with a configuration file, which may be missing.
pub(crate) struct World {
    pub(crate) name: &'static str,
    pub(crate) root: TempDir,
    pub(crate) file: PathBuf,
    pub(crate) format: ConfigFormat,
    before: BTreeMap<PathBuf, Thing>,
}

/// A file, folder or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thing {
    mode: u32,
    owner: (u32, u32),
    /// Content, modification time and inode of a file.
    file: Option<(String, SystemTime, u64)>,
    link: Option<PathBuf>,
}

const JSON: &str = "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {\n    \"mine\": { \"command\": \"mine\" }\n  },\n  \"n\": 1.50\n}\n";
const JSONC: &str = "// my settings\n{\n\t\"a\": [1, 2,], // first\n\t/* servers */ \"mcpServers\": {\"mine\": {\"command\": \"mine\"},},\n}";
const TOML: &str = "# my settings\nmodel = \"m\"   # the best\n\n[mcp_servers.mine]\ncommand = 'mine'\n\n[tui]\ntheme = 1\n";
const BARE: &str = "{\"theme\":\"dark\"}";

/// Names of all worlds.
pub(crate) const WORLDS: &[&str] = &[
    "no file",
    "no folder",
    "no folders",
    "plain",
    "crlf",
    "bom",
    "no servers",
    "empty",
    "link",
    "link to nothing",
    "read-only",
    "two names",
    "jsonc",
    "toml",
    "toml crlf",
    "toml, no folder",
];

impl World {
    pub(crate) fn new(name: &'static str) -> Self {
        let root = temp();
        let dir = root.path().join("project");
        fs::create_dir(&dir).unwrap();
        let json = dir.join("settings.json");
        let toml = dir.join("config.toml");
        let write = |path: &Path, text: &str, mode: u32| {
            fs::write(path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            // A time that no file has by accident.
            let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_000_000);
            let times = fs::FileTimes::new().set_modified(time);
            fs::File::open(path).unwrap().set_times(times).unwrap();
        };
        write(&root.path().join("other"), "other", 0o644);
        let file = match name {
            "no file" => json,
            "no folder" => dir.join(".gemini/settings.json"),
            "no folders" => dir.join("a+b/c d/settings.json"),
            "toml, no folder" => dir.join(".codex/config.toml"),
            "link" => {
                fs::create_dir(root.path().join("dotfiles")).unwrap();
                write(&root.path().join("dotfiles/gemini.json"), JSON, 0o640);
                symlink("../dotfiles/gemini.json", &json).unwrap();
                json
            }
            "link to nothing" => {
                symlink("gone", dir.join("way")).unwrap();
                symlink("way/there.json", &json).unwrap();
                json
            }
            "toml" | "toml crlf" => {
                let text = match name {
                    "toml" => TOML.to_owned(),
                    _ => TOML.replace('\n', "\r\n"),
                };
                write(&toml, &text, 0o600);
                toml
            }
            _ => {
                let (text, mode) = match name {
                    "plain" | "two names" => (JSON.to_owned(), 0o644),
                    "crlf" => (JSON.trim_end().replace('\n', "\r\n"), 0o664),
                    "bom" => (format!("\u{feff}{JSON}"), 0o644),
                    "no servers" => (BARE.to_owned(), 0o600),
                    "empty" => (String::new(), 0o644),
                    "read-only" => (JSON.to_owned(), 0o444),
                    "jsonc" => (JSONC.to_owned(), 0o644),
                    _ => panic!("no world {name}"),
                };
                write(&json, &text, mode);
                if name == "two names" {
                    fs::hard_link(&json, dir.join("second")).unwrap();
                }
                json
            }
        };
        let format = match file.extension() {
            Some(end) if end == "toml" => ConfigFormat::Toml,
            _ => ConfigFormat::Json,
        };
        let mut world = Self {
            name,
            root,
            file,
            format,
            before: BTreeMap::new(),
        };
        world.remember();
        world
    }

    /// Creates a world with this text in a plain file.
    pub(crate) fn with_text(text: &str, format: ConfigFormat) -> Self {
        let mut world = Self::new("no file");
        world.format = format;
        fs::write(&world.file, text).unwrap();
        world.remember();
        world
    }

    pub(crate) fn edit(&self, names: &[&str]) -> ConfigEdit {
        edit_of(&self.file, self.format, names)
    }

    /// Returns the text of the file, if it exists.
    pub(crate) fn text(&self) -> Option<String> {
        fs::read_to_string(&self.file).ok()
    }

    /// Returns the names of the servers in the file.
    pub(crate) fn servers(&self) -> Vec<String> {
        let text = self.text().unwrap_or_default();
        let mut names = edit::names(&text, self.format, key(self.format)).unwrap();
        names.sort();
        names
    }

    /// Becomes a copy of another world in its current state, including the journal.
    pub(crate) fn take_over(&self, other: &Self) {
        fs::remove_dir_all(self.root.path().join("project")).unwrap();
        copy(other.root.path(), self.root.path());
    }

    /// Records the current state as the expected one.
    pub(crate) fn remember(&mut self) {
        self.before = self.look();
    }

    pub(crate) fn look(&self) -> BTreeMap<PathBuf, Thing> {
        let mut all = BTreeMap::new();
        look(self.root.path(), self.root.path(), &mut all);
        all
    }

    /// Asserts that everything is unchanged, including inodes.
    pub(crate) fn assert_as_before(&self, when: &str) {
        self.assert_same(when, |thing| thing);
    }

    /// Asserts that everything is unchanged, except that files may be copies.
    pub(crate) fn assert_copied_as_before(&self, when: &str) {
        self.assert_same(when, |mut thing| {
            if let Some((_, _, inode)) = &mut thing.file {
                *inode = 0;
            }
            thing
        });
    }

    fn assert_same(&self, when: &str, form: impl Fn(Thing) -> Thing) {
        let formed = |all: &BTreeMap<PathBuf, Thing>| -> BTreeMap<_, _> {
            let all = all.iter();
            all.map(|(path, thing)| (path.clone(), form(thing.clone())))
                .collect()
        };
        let now = self.look();
        assert_eq!(formed(&now), formed(&self.before), "{}: {when}", self.name);
    }

    /// Asserts that no files of leases remain.
    pub(crate) fn assert_no_litter(&self, when: &str) {
        let left: Vec<_> = self
            .look()
            .into_keys()
            .filter(|path| path.to_string_lossy().contains(".teamster"))
            .collect();
        assert!(left.is_empty(), "{}: {when}: {left:?}", self.name);
    }
}

fn look(root: &Path, dir: &Path, all: &mut BTreeMap<PathBuf, Thing>) {
    for found in fs::read_dir(dir).unwrap() {
        let path = found.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        let file = meta.is_file().then(|| {
            let text = fs::read_to_string(&path).unwrap();
            (text, meta.modified().unwrap(), meta.ino())
        });
        let thing = Thing {
            mode: meta.mode(),
            owner: (meta.uid(), meta.gid()),
            file,
            link: fs::read_link(&path).ok(),
        };
        all.insert(path.strip_prefix(root).unwrap().to_owned(), thing);
        if meta.is_dir() {
            look(root, &path, all);
        }
    }
}

pub(crate) fn key(format: ConfigFormat) -> &'static str {
    match format {
        ConfigFormat::Toml => "mcp_servers",
        _ => "mcpServers",
    }
}

/// Returns the definition of a server, which depends only on its name.
pub(crate) fn definition(name: &str) -> Value {
    json!({"command": format!("/bin/{name}"), "args": ["--x", ""], "timeout": 1.5})
}

pub(crate) fn edit_of(file: &Path, format: ConfigFormat, names: &[&str]) -> ConfigEdit {
    ConfigEdit {
        table: ConfigTable {
            file: file.to_owned(),
            format,
            key: key(format),
        },
        entries: names
            .iter()
            .map(|name| ((*name).to_owned(), definition(name)))
            .collect(),
        new_file: "",
        location: ConfigLocation::Lease,
    }
}

fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp")
        .args(["-a", "--"])
        .arg(from.join("."))
        .arg(to)
        .status();
    assert!(status.unwrap().success());
}
