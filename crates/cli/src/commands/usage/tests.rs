//! Tests of usage tables at several terminal widths.

use teamster::Usage;
use teamster::usage::{Accounts, Joined, Provider, Record};

use super::*;
use crate::words;

const LONG: &str =
    "/home/user/work/customers/large-customer/repositories/the-service-with-a-long-name";

/// Usage with very wide values, of several CLIs, models and directories.
fn collected() -> Accounts {
    let at: Timestamp = "2026-09-23T12:00:00Z".parse().unwrap();
    let mut accounts = Accounts::new(None, None, TimeZone::UTC);
    for (number, provider, model) in [
        (0, Provider::Claude, "claude-opus-4-8"),
        (1, Provider::Codex, "gpt-5.5"),
        (
            2,
            Provider::OpenCode,
            "a-model-of-a-long-name-that-has-no-price-20260923",
        ),
    ] {
        let session = format!("11111111-2222-4333-8444-55555555555{number}");
        let mut record = Record::new(provider, session.into(), at);
        record.model = Some(model.into());
        record.directory = Some(format!("{LONG}/{number}").into());
        record.requests = 123_456;
        record.usage = Usage::default()
            .input_tokens(1_234_567_890)
            .output_tokens(123_456_789)
            .cache_read_tokens(9_876_543_210)
            .cache_write_tokens(999_999_999);
        record.cost_usd = (number == 0).then_some(12_345.67);
        accounts.add(record);
    }
    accounts
}

fn shown(accounts: &Accounts, by: Dimension, models: bool, width: Option<usize>) -> String {
    let report = if models {
        accounts.summary_with_models(by, Joined::default(), 3)
    } else {
        accounts.summary(by, Joined::default(), 3)
    };
    let mut out = anstream::StripStream::new(Vec::new());
    table::print(&report, by, &TimeZone::UTC, width, &mut out).unwrap();
    String::from_utf8(out.into_inner()).unwrap()
}

const ALL: [Dimension; 10] = [
    Dimension::Day,
    Dimension::Week,
    Dimension::Month,
    Dimension::Model,
    Dimension::Agent,
    Dimension::Project,
    Dimension::Session,
    Dimension::Provider,
    Dimension::Key,
    Dimension::Account,
];

#[test]
fn no_line_is_wider_than_the_terminal() {
    let collected = collected();
    for width in [40, 60, 80, 120] {
        for (by, models) in ALL.into_iter().flat_map(|by| [(by, false), (by, true)]) {
            let text = shown(&collected, by, models, Some(width));
            for line in text.lines() {
                let wide = console::measure_text_width(line);
                assert!(wide <= width, "{by:?} {width}: {wide}\n{text}");
            }
            // Tokens and cost are never hidden.
            let head = text.lines().next().unwrap();
            for column in ["INPUT", "OUTPUT", "SPENT"] {
                assert!(head.contains(column), "{by:?} {width}\n{text}");
            }
        }
    }
}

#[test]
fn truncated_cells_are_marked_and_hidden_columns_are_named() {
    let collected = collected();
    for by in ALL {
        let whole = shown(&collected, by, false, None);
        let head = whole.lines().next().unwrap().split("  ");
        let columns: Vec<_> = head
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        let values: Vec<_> = (whole.lines().skip(1).take_while(|line| !line.is_empty()))
            .flat_map(|line| line.split("  ").map(str::trim))
            .collect();
        for width in [40, 60, 80, 120] {
            let text = shown(&collected, by, false, Some(width));
            let (table, notes) = text.split_once("\n\n").unwrap();
            let notes = notes.replace('\n', " ");
            let (head, rows) = table.split_once('\n').unwrap();
            for column in &columns {
                let named = notes.contains("Hidden columns") && notes.contains(column);
                assert!(
                    head.contains(column) || named,
                    "{by:?} {width} {column}\n{text}"
                );
            }
            for value in rows
                .lines()
                .flat_map(|line| line.split("  ").map(str::trim))
            {
                let signed = value.contains('…');
                assert!(
                    signed || values.contains(&value),
                    "{by:?} {width} {value}\n{text}"
                );
            }
        }
    }
}

#[test]
fn a_path_is_truncated_at_its_beginning() {
    let text = shown(&collected(), Dimension::Project, false, Some(60));
    assert!(text.contains("with-a-long-name/0"), "{text}");
    assert_eq!(words::cut_beginning("/a/b/c", 4), "…b/c");
    assert_eq!(words::cut_beginning("/a/b", 4), "/a/b");
    assert_eq!(words::cut_beginning("日本語", 3), "…語");
}
