//! Selection of the versions to follow, and of the nearest known version.

use anyhow::{Context, bail};

use crate::install::numbers;

/// Returns the releases among the versions that npm knows, the oldest first.
fn releases(published: &[String]) -> Vec<String> {
    let mut releases: Vec<_> = published
        .iter()
        .filter_map(|version| Some((numbers(version)?, version)))
        .collect();
    releases.sort_unstable();
    releases
        .into_iter()
        .map(|(_, version)| version.clone())
        .collect()
}

/// Returns the releases from this one on.
pub(super) fn since(published: &[String], first: &str) -> anyhow::Result<Vec<String>> {
    let wanted = numbers(first)
        .with_context(|| format!("`{first}` is not a release: expected the form 1.2.3"))?;
    let found: Vec<_> = releases(published)
        .into_iter()
        .filter(|version| numbers(version).is_some_and(|it| it >= wanted))
        .collect();
    if found.is_empty() {
        bail!("npm has no release from {first} on");
    }
    Ok(found)
}

pub(super) fn after(published: &[String], version: &str) -> Vec<String> {
    let known = numbers(version);
    let all = releases(published).into_iter();
    all.filter(|version| numbers(version) > known).collect()
}

/// Returns the newest `count` releases, the oldest of them first.
pub(super) fn last(published: &[String], count: usize) -> Vec<String> {
    let mut releases = releases(published);
    releases.split_off(releases.len().saturating_sub(count))
}

/// Returns the position of a version on a line, in the order of versions.
fn place([major, minor, patch]: [u64; 3]) -> u128 {
    (u128::from(major) << 64) + (u128::from(minor) << 32) + u128::from(patch)
}

/// Returns the known version that is nearest to this one; of two equally near ones, the older.
pub(super) fn nearest<'v>(
    version: &str,
    known: impl IntoIterator<Item = &'v str>,
) -> Option<&'v str> {
    let wanted = numbers(version)?;
    known
        .into_iter()
        .filter_map(|name| {
            let numbers = numbers(name)?;
            Some(((place(numbers).abs_diff(place(wanted)), numbers), name))
        })
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Vec<String> {
        ["1.9.0", "1.10.0", "1.2.0", "1.10.1-beta.1", "1.10.2"]
            .map(str::to_owned)
            .into()
    }

    #[test]
    fn releases_are_in_the_order_of_their_numbers() {
        assert_eq!(last(&published(), 2), ["1.10.0", "1.10.2"]);
        assert_eq!(last(&published(), 9).len(), 4);
        assert_eq!(
            since(&published(), "1.9.0").unwrap(),
            ["1.9.0", "1.10.0", "1.10.2"]
        );
        assert_eq!(after(&published(), "1.9.0"), ["1.10.0", "1.10.2"]);
        assert!(after(&published(), "1.10.2").is_empty());
        assert!(since(&published(), "2.0.0").is_err());
        assert!(since(&published(), "new").is_err());
    }

    #[test]
    fn the_nearest_known_version_is_the_reference() {
        let known = ["2.1.197", "2.1.330"];
        for (version, reference) in [
            ("2.1.100", "2.1.197"),
            ("2.1.240", "2.1.197"),
            ("2.1.290", "2.1.330"),
            ("2.1.330", "2.1.330"),
            ("3.0.0", "2.1.330"),
            ("1.9.9", "2.1.197"),
        ] {
            assert_eq!(nearest(version, known), Some(reference), "{version}");
        }
        assert_eq!(nearest("1.0.0", []), None);
    }
}
