//! Property tests with any TOML file and any entry.

use proptest::prelude::*;
use serde_json::{Value, json};
use teamster_core::provider::ConfigFormat::Toml;
use teamster_mcp_config::edit::{Clash, merge, names};
use toml::Table;

use crate::edit::dice::{Dice, damage, dice, ours};
use crate::edit::support::{TOML_KEY, changed, remove};
use crate::edit::toml_files::file;

fn read(text: &str) -> Result<Table, toml::de::Error> {
    toml::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Returns a file and its value.
fn made(dice: &mut Dice) -> (String, Table) {
    let text = file(dice);
    let means = read(&text).unwrap_or_else(|error| panic!("{error} in a made-up file: {text:?}"));
    (text, means)
}

/// Returns the file's value with the entries in it.
fn with(means: &Table, entries: &[(String, Value)]) -> Table {
    let mut means = means.clone();
    let table = means
        .entry(TOML_KEY)
        .or_insert_with(|| toml::Value::Table(Table::new()));
    for (name, value) in entries {
        let value = toml::Value::try_from(value).unwrap();
        table.as_table_mut().unwrap().insert(name.clone(), value);
    }
    means
}

/// Returns whether two tables are equal, with NaN equal to NaN.
fn same(one: &Table, other: &Table) -> bool {
    format!("{one:?}") == format!("{other:?}")
}

fn entries(means: &Table) -> Vec<String> {
    let table = means.get(TOML_KEY).and_then(toml::Value::as_table);
    let mut names: Vec<String> = table.into_iter().flat_map(Table::keys).cloned().collect();
    names.sort();
    names
}

proptest! {
    #[test]
    fn a_toml_file_has_both_and_then_only_its_own_again(mut dice in dice(), ours in ours(false)) {
        let (text, means) = made(&mut dice);
        let had = means.contains_key(TOML_KEY);
        let merged = merge(&text, Toml, TOML_KEY, &ours, Clash::Refuse).unwrap();

        prop_assert!(same(&read(&merged).unwrap(), &with(&means, &ours)), "{:?}", merged);
        prop_assert_eq!(changed(&text, &merged), "", "{:?}", merged);

        let mut there = names(&merged, Toml, TOML_KEY).unwrap();
        there.sort();
        prop_assert_eq!(there, entries(&with(&means, &ours)));

        prop_assert_eq!(remove(&merged, Toml, TOML_KEY, &ours, false).unwrap(), text.as_str());
        if !had {
            prop_assert_eq!(remove(&merged, Toml, TOML_KEY, &ours, true).unwrap(), text);
        }
    }

    #[test]
    fn a_toml_file_that_is_edited_meanwhile_keeps_that(mut dice in dice(), ours in ours(false), how in 0..6_u8, which: prop::sample::Index) {
        let (text, means) = made(&mut dice);
        let had = means.contains_key(TOML_KEY);
        let merged = merge(&text, Toml, TOML_KEY, &ours, Clash::Refuse).unwrap();
        let value = (!dice.markers.is_empty()).then(|| which.get(&dice.markers).clone());
        // Otherwise content that follows would be in the same line as ours.
        let ended = text.ends_with('\n');
        let edit = |text: &str| -> String {
            let (bom, rest) = text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 });
            match (how, &value) {
                (0, Some(value)) => text.replace(value, "{ changed = [true] }"),
                (1, Some(value)) => text.replace(value, "\"\"\"\n[mcp_servers.docs0]\n\"\"\""),
                (2, _) => format!("{bom}# theirs\n{rest}"),
                (3, _) if ended => format!("{text}\n# theirs\n"),
                (4, _) if ended => format!("{text}\n[theirs]\na = 1\n"),
                _ => format!("{bom}theirs = 1\r\n{rest}"),
            }
        };
        let removed = remove(&edit(&merged), Toml, TOML_KEY, &ours, !had).unwrap();
        prop_assert_eq!(removed, edit(&text), "{:?}", merged);
    }

    #[test]
    fn servers_that_others_add_to_a_toml_file_stay(mut dice in dice(), ours in ours(false), rewritten: bool) {
        let (text, means) = made(&mut dice);
        let had = means.contains_key(TOML_KEY);
        let merged = merge(&text, Toml, TOML_KEY, &ours, Clash::Refuse).unwrap();
        let theirs = vec![("theirs".to_owned(), json!({"url": "https://mcp.example.com"}))];
        let edited = if rewritten {
            toml::to_string(&with(&read(&merged).unwrap(), &theirs)).unwrap()
        } else {
            let mut document: toml_edit::DocumentMut = merged.parse().unwrap();
            document[TOML_KEY]["theirs"]["url"] = toml_edit::value("https://mcp.example.com");
            document.to_string()
        };
        let removed = remove(&edited, Toml, TOML_KEY, &ours, !had).unwrap();
        prop_assert!(same(&read(&removed).unwrap(), &with(&means, &theirs)), "{:?}", edited);
    }

    #[test]
    fn a_replaced_server_of_a_toml_file_is_ours(mut dice in dice(), mut ours in ours(false)) {
        let (text, means) = made(&mut dice);
        let Some(theirs) = entries(&means).first().cloned() else {
            return Ok(());
        };
        ours[0].0.clone_from(&theirs);
        let refused = merge(&text, Toml, TOML_KEY, &ours, Clash::Refuse).unwrap_err().to_string();
        prop_assert!(refused.contains(&format!("`{theirs}`")), "{}", refused);
        let merged = merge(&text, Toml, TOML_KEY, &ours, Clash::Replace).unwrap();
        prop_assert!(same(&read(&merged).unwrap(), &with(&means, &ours)), "{:?}", merged);
    }

    #[test]
    fn a_damaged_toml_file_is_refused_or_comes_back(mut dice in dice(), ours in ours(false), places in prop::collection::vec(any::<(u16, u8)>(), 1..4)) {
        let text = damage(&file(&mut dice), &places);
        let Ok(there) = names(&text, Toml, TOML_KEY) else {
            prop_assert!(merge(&text, Toml, TOML_KEY, &ours, Clash::Replace).is_err());
            let _ = remove(&text, Toml, TOML_KEY, &ours, true);
            return Ok(());
        };
        let means = read(&text).unwrap();
        let merged = merge(&text, Toml, TOML_KEY, &ours, Clash::Refuse);
        let merged = merged.unwrap_or_else(|error| panic!("{error}: {text:?}"));
        prop_assert!(same(&read(&merged).unwrap(), &with(&means, &ours)), "{:?}", merged);
        prop_assert_eq!(names(&merged, Toml, TOML_KEY).unwrap().len(), there.len() + ours.len());
        prop_assert_eq!(remove(&merged, Toml, TOML_KEY, &ours, false).unwrap(), text);
    }
}
