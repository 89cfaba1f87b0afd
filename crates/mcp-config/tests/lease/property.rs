//! Property tests: any content of a file is restored, for any order of leases.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use teamster_core::provider::ConfigFormat;
use teamster_mcp_config::lease::{Lease, Released};

use crate::lease::support::{World, key};

/// Returns any value that both JSON and TOML have.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i16>().prop_map(|number| json!(f64::from(number) / 8.0)),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z \"\u{e9}.]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns a file's text with any keys, with or without servers.
fn text() -> impl Strategy<Value = (ConfigFormat, String)> {
    let servers = prop::option::of(btree_map("[a-z]{1,5}", value(), 0..3));
    let keys = btree_map("[a-z]{1,6}", value(), 0..4);
    let form = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    (servers, keys, form).prop_map(|(servers, keys, (toml, crlf, bom, end, comment))| {
        let format = if toml {
            ConfigFormat::Toml
        } else {
            ConfigFormat::Json
        };
        let mut all: Map<String, Value> = keys.into_iter().collect();
        if let Some(servers) = servers {
            // A server is always an object.
            let servers = servers
                .into_iter()
                .map(|(name, value)| (name, json!({"x": value})))
                .collect();
            all.insert(key(format).to_owned(), Value::Object(servers));
        }
        let mut text = if toml {
            toml::to_string(&all).unwrap()
        } else {
            serde_json::to_string_pretty(&all).unwrap()
        };
        if comment {
            text.insert_str(0, if toml { "# mine\n" } else { "// mine\n" });
        }
        if end {
            text.push('\n');
        }
        if crlf {
            text = text.replace('\n', "\r\n");
        }
        if bom {
            text.insert(0, '\u{feff}');
        }
        (format, text)
    })
}

/// Returns the servers of a holder, from a few names, so that some are shared.
fn names() -> impl Strategy<Value = Vec<usize>> {
    vec(0_usize..4, 0..3)
}

const NAMES: [&str; 4] = ["Ours-1", "Ours-2", "Ours_3", "Ours.4 \"\u{e9}"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_bytes_come_back((format, text) in text(), holders in vec(names(), 1..4), order in vec(any::<prop::sample::Index>(), 3)) {
        let world = World::with_text(&text, format);
        let mut held = Vec::new();
        for names in &holders {
            let mut names: Vec<_> = names.iter().map(|at| NAMES[*at]).collect();
            names.sort_unstable();
            names.dedup();
            held.push(Lease::acquire(&world.edit(&names)).unwrap());
            for name in names {
                prop_assert!(world.servers().iter().any(|server| server == name));
            }
        }
        for at in order {
            if held.is_empty() {
                break;
            }
            let released = held.remove(at.index(held.len())).release().unwrap();
            let last = held.is_empty();
            prop_assert_eq!(released, if last { Released::Restored } else { Released::Shared });
        }
        prop_assert_eq!(world.text().unwrap(), text);
        world.assert_as_before("after all");
    }
}
