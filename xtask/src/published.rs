//! The crates of this workspace that are published.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::root;

pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
}

#[derive(Deserialize)]
struct Manifest {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    publish: Option<bool>,
}

/// Returns all published crates, by name.
pub(crate) fn crates() -> anyhow::Result<Vec<Crate>> {
    let mut crates = Vec::new();
    let folder = root().join("crates");
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let folder = entry?.path();
        let package = read::<Manifest>(&folder.join("Cargo.toml"))?.package;
        if package.publish != Some(false) {
            let name = package.name;
            crates.push(Crate { name, folder });
        }
    }
    crates.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(crates)
}

/// Feature of a crate with hooks of its own tests.
pub(crate) const HOOKS: &str = "test-hooks";

/// Returns the features of all published libraries, as `crate/feature`. Hooks of a crate's own tests are no part of what
/// others see.
pub(crate) fn features() -> anyhow::Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(default)]
        features: BTreeMap<String, Vec<String>>,
    }
    let mut features = Vec::new();
    for it in crates()? {
        let manifest: Manifest = read(&it.folder.join("Cargo.toml"))?;
        let names = manifest.features.into_keys().filter(|name| name != HOOKS);
        features.extend(names.map(|name| format!("{}/{name}", it.name)));
    }
    Ok(features)
}

fn read<T: for<'de> Deserialize<'de>>(manifest: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
    toml::from_str(&text).with_context(|| manifest.display().to_string())
}
