//! Property tests with any JSON file and any entry.

use jsonc_parser::ast::Value as Ast;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use jsonc_parser::{CollectOptions, JsonValue, ParseOptions, parse_to_ast};
use proptest::prelude::*;
use serde_json::{Value, json};
use teamster_core::provider::ConfigFormat::Json;
use teamster_mcp_config::edit::{Clash, merge, names};

use crate::edit::dice::{Dice, damage, dice, ours};
use crate::edit::json_files::file;
use crate::edit::support::{JSON_KEY, changed, read_json, remove, without_comments};

/// Returns a file and its value.
fn made(dice: &mut Dice) -> (String, Value) {
    let text = file(dice);
    let means =
        read_json(&text).unwrap_or_else(|error| panic!("{error} in a made-up file: {text:?}"));
    (text, means)
}

/// Returns the file's value with the entries in it.
fn with(means: &Value, entries: &[(String, Value)]) -> Value {
    let mut means = means.clone();
    for (name, value) in entries {
        means[JSON_KEY][name] = value.clone();
    }
    means
}

proptest! {
    #[test]
    fn a_json_file_has_both_and_then_only_its_own_again(mut dice in dice(), ours in ours(true)) {
        let (text, means) = made(&mut dice);
        let had = means.get(JSON_KEY).is_some();
        let merged = merge(&text, Json, JSON_KEY, &ours, Clash::Refuse).unwrap();

        prop_assert_eq!(read_json(&merged).unwrap(), with(&means, &ours), "{:?}", merged);
        // A comma may be inserted before existing content, but only before white space and comments.
        let middle = without_comments(changed(&text, &merged));
        prop_assert!(middle.trim().is_empty(), "{middle:?} changed in {merged:?}");

        let mut expected: Vec<String> = match &means[JSON_KEY] {
            Value::Object(table) => table.keys().cloned().collect(),
            _ => Vec::new(),
        };
        prop_assert_eq!(names(&text, Json, JSON_KEY).unwrap(), expected.clone());
        expected.extend(ours.iter().map(|(name, _)| name.clone()));
        prop_assert_eq!(names(&merged, Json, JSON_KEY).unwrap(), expected);

        let removed = remove(&merged, Json, JSON_KEY, &ours, !had).unwrap();
        prop_assert_eq!(removed, text);
        // Without removing the table itself, only an empty table remains.
        let removed = remove(&merged, Json, JSON_KEY, &ours, false).unwrap();
        let mut means = means;
        if !had {
            means[JSON_KEY] = json!({});
        }
        prop_assert_eq!(read_json(&removed).unwrap(), means);
    }

    #[test]
    fn a_json_file_that_is_edited_meanwhile_keeps_that(mut dice in dice(), ours in ours(true), how in 0..6_u8, which: prop::sample::Index) {
        let (text, means) = made(&mut dice);
        let had = means.get(JSON_KEY).is_some();
        let merged = merge(&text, Json, JSON_KEY, &ours, Clash::Refuse).unwrap();
        let value = (!dice.markers.is_empty()).then(|| which.get(&dice.markers).clone());
        // Otherwise content that follows would be in the same line as ours.
        let ended = text.ends_with('\n');
        let edit = |text: &str| -> String {
            let (bom, rest) = text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 });
            match (how, &value) {
                (0, Some(value)) => text.replace(value, "{\"changed\": [true]}"),
                (1, Some(value)) => text.replace(value, &format!("{value} // theirs\n")),
                (2, Some(value)) => text.replace(value, &format!("/* theirs\r\n */\n{value}")),
                (3, _) => format!("{bom}// theirs\n{rest}"),
                (4, _) if ended => format!("{text}\n// theirs\n"),
                _ => format!("{bom}\r\n{rest}"),
            }
        };
        let removed = remove(&edit(&merged), Json, JSON_KEY, &ours, !had).unwrap();
        prop_assert_eq!(removed, edit(&text), "{:?}", merged);
    }

    #[test]
    fn servers_that_others_add_to_a_json_file_stay(mut dice in dice(), ours in ours(false), before: bool, rewritten: bool) {
        let (text, means) = made(&mut dice);
        let had = means.get(JSON_KEY).is_some();
        let merged = merge(&text, Json, JSON_KEY, &ours, Clash::Refuse).unwrap();
        let theirs = vec![("theirs".to_owned(), json!({"url": "https://mcp.example.com"}))];
        let edited = if rewritten {
            // As a CLI writes it that knows only the value of the file.
            serde_json::to_string_pretty(&with(&read_json(&merged).unwrap(), &theirs)).unwrap()
        } else {
            let (bom, rest) = merged.split_at(if merged.starts_with('\u{feff}') { 3 } else { 0 });
            let root = CstRootNode::parse(rest, &ParseOptions::default()).unwrap();
            let table = root.object_value().unwrap().object_value(JSON_KEY).unwrap();
            let value = CstInputValue::Object(vec![("url".to_owned(), "https://mcp.example.com".into())]);
            if before {
                table.insert(0, "theirs", value);
            } else {
                table.append("theirs", value);
            }
            format!("{bom}{root}")
        };
        let removed = remove(&edited, Json, JSON_KEY, &ours, !had).unwrap();
        prop_assert_eq!(read_json(&removed).unwrap(), with(&means, &theirs), "{:?}", edited);
    }

    #[test]
    fn file_rewritten_by_a_json_writer_is_restored_as_rewritten(mut dice in dice(), ours in ours(false)) {
        let (text, means) = made(&mut dice);
        let had = means.get(JSON_KEY).is_some();
        let merged = merge(&text, Json, JSON_KEY, &ours, Clash::Refuse).unwrap();
        let rewritten = serde_json::to_string_pretty(&read_json(&merged).unwrap()).unwrap();
        let removed = remove(&rewritten, Json, JSON_KEY, &ours, !had).unwrap();
        prop_assert_eq!(removed, serde_json::to_string_pretty(&means).unwrap());
    }

    #[test]
    fn replaced_json_server_is_ours_and_no_other_byte_changes(mut dice in dice(), mut ours in ours(true)) {
        let (text, means) = made(&mut dice);
        let Some(theirs) = means[JSON_KEY].as_object().and_then(|table| table.keys().next().cloned()) else {
            return Ok(());
        };
        ours[0].0.clone_from(&theirs);
        let refused = merge(&text, Json, JSON_KEY, &ours, Clash::Refuse).unwrap_err().to_string();
        prop_assert!(refused.contains(&format!("`{theirs}`")), "{}", refused);
        let merged = merge(&text, Json, JSON_KEY, &ours, Clash::Replace).unwrap();
        prop_assert_eq!(read_json(&merged).unwrap(), with(&means, &ours));
        let only = merge(&text, Json, JSON_KEY, &ours[..1], Clash::Replace).unwrap();
        prop_assert_eq!(read_json(&only).unwrap(), with(&means, &ours[..1]));
        let (bom, body) = text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 });
        let parsed = parse_to_ast(body, &CollectOptions::default(), &ParseOptions::default()).unwrap();
        let Some(Ast::Object(root)) = &parsed.value else {
            unreachable!("it has the table");
        };
        let place = root.get_object(JSON_KEY).unwrap().get(&theirs).unwrap().value.range();
        prop_assert!(only.starts_with(&format!("{bom}{}", &body[..place.start])), "{:?}", only);
        prop_assert!(only.ends_with(&body[place.end..]), "{:?}", only);
        prop_assert!(only.len() > text.len() - place.end + place.start);
    }

    #[test]
    fn a_damaged_json_file_is_refused_or_comes_back(mut dice in dice(), ours in ours(true), places in prop::collection::vec(any::<(u16, u8)>(), 1..4)) {
        let text = damage(&file(&mut dice), &places);
        let Ok(there) = names(&text, Json, JSON_KEY) else {
            prop_assert!(merge(&text, Json, JSON_KEY, &ours, Clash::Replace).is_err());
            let _ = remove(&text, Json, JSON_KEY, &ours, true);
            return Ok(());
        };
        let merged = merge(&text, Json, JSON_KEY, &ours, Clash::Refuse).unwrap();
        let means = jsonc_parser::parse_to_value(text.trim_start_matches('\u{feff}'), &ParseOptions::default());
        let had = matches!(means.unwrap(), Some(JsonValue::Object(means)) if means.get(JSON_KEY).is_some());
        prop_assert_eq!(names(&merged, Json, JSON_KEY).unwrap().len(), there.len() + ours.len());
        prop_assert_eq!(remove(&merged, Json, JSON_KEY, &ours, !had).unwrap(), text);
    }
}
