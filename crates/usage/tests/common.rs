//! Helpers of the tests with recorded files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde_json::Value;
use teamster_core::Usage;
use teamster_usage::{Accounts, Locations, Provider, Scan};

/// Requests, tokens, and tokens that were written to the cache for an hour.
pub(crate) type Sum = (u64, Usage, Option<u64>);

pub(crate) fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Returns the recorded scenarios of a CLI with their real usage.
pub(crate) fn scenarios(provider: Provider) -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for version in fs::read_dir(data().join(provider.id())).unwrap() {
        for scenario in fs::read_dir(version.unwrap().path()).unwrap() {
            let folder = scenario.unwrap().path();
            // Beside the scenarios is the databases' schema.
            if !folder.is_dir() {
                continue;
            }
            let truth = fs::read(folder.join("truth.json")).unwrap();
            found.push((folder, serde_json::from_slice(&truth).unwrap()));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

pub(crate) fn scan(home: &Path) -> Accounts {
    Scan::new(Locations::of_home(home))
        .time_zone(TimeZone::UTC)
        .run()
}

/// Returns the usage in the accounts, by session and model.
pub(crate) fn counted(accounts: &Accounts) -> BTreeMap<(String, String), Sum> {
    let mut sums = BTreeMap::<_, Sum>::new();
    accounts.each(&mut |record, _| {
        let model = record.model.as_deref().unwrap_or_default().to_owned();
        let sum = sums.entry((record.session.to_string(), model)).or_default();
        sum.0 += record.requests;
        sum.1 = sum.1.plus(record.usage);
        if let Some(hour) = record.cache_write_1h_tokens.filter(|hour| *hour > 0) {
            sum.2 = Some(sum.2.unwrap_or(0) + hour);
        }
    });
    sums
}

/// Returns the real usage, by session and model.
pub(crate) fn truth(truth: &Value) -> BTreeMap<(String, String), Sum> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let total = truth["total"].as_array().unwrap().iter().map(|total| {
        let usage = serde_json::from_value(total["usage"].clone()).unwrap();
        let names = (text(&total["session"]), text(&total["model"]));
        let hour = total["cacheWrite1hTokens"]
            .as_u64()
            .filter(|hour| *hour > 0);
        (names, (total["requests"].as_u64().unwrap(), usage, hour))
    });
    total.collect()
}
