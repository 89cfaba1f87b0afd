//! The page on errors names all that there is to decide by.

use teamster::{BudgetKind, ErrorCode, ErrorKind, NotRetried};

const PAGE: &str = include_str!("../../../../docs/errors.md");

/// The first cells of the rows below this heading.
fn rows(heading: &str) -> Vec<&'static str> {
    let (_, section) = PAGE.split_once(heading).unwrap();
    let section = section.split("\n## ").next().unwrap();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect()
}

#[test]
fn every_code_has_a_row() {
    let codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(rows("\n## By code\n"), codes);
}

#[test]
fn every_kind_has_a_row() {
    let kinds: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(rows("\n## By kind\n"), kinds);
}

#[test]
fn every_detail_is_there() {
    let budgets = BudgetKind::ALL.iter().map(|budget| budget.as_str());
    let reasons = NotRetried::ALL.iter().map(|reason| reason.as_str());
    let (_, section) = PAGE.split_once("\n## By detail\n").unwrap();
    for word in budgets.chain(reasons).filter(|word| *word != "other") {
        assert!(section.contains(&format!("`{word}`")), "{word}");
    }
}
