//! A run whose answer is a value of a type, and what a wrong answer looks like.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use teamster::{AnswerError, ExecuteParams, PermissionMode};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

/// What a reviewer finds.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Review {
    /// Whether the change can be merged as it is.
    accepted: bool,
    /// What must change first.
    problems: Vec<Problem>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Problem {
    /// Path of the file, from the root of the repository.
    file: String,
    /// Line, if there is one.
    line: Option<u32>,
    text: String,
}

/// Stands in for `teamster::create_cli_runtime("claude", RuntimeConfig::default())?`.
fn runtime() -> MockRuntime {
    let problem = json!({"file": "src/lib.rs", "line": 7, "text": "this can panic"});
    let right = json!({"accepted": false, "problems": [problem]});
    let wrong = json!({"accepted": "not yet", "problems": []});
    let answer = |json| Script::new().structured_output(json).completed();
    MockRuntime::new("claude")
        .run(answer(right))
        .run(answer(wrong))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = runtime();
    let params = ExecuteParams::new("Review the last commit").permission(PermissionMode::ReadOnly);

    let review = teamster::run::<Review>(&runtime, params.clone()).await?;
    println!("{:?}", review.value);
    assert!(!review.value.accepted);
    assert_eq!(review.value.problems[0].line, Some(7));

    let Err(error) = teamster::run::<Review>(&runtime, params).await else {
        return Err("an answer that does not fit is an error".into());
    };
    println!("{error}");
    let AnswerError::Mismatch { text, .. } = error else {
        return Err(error.into());
    };
    assert_eq!(text, r#"{"accepted":"not yet","problems":[]}"#);
    Ok(())
}

#[cfg(test)]
#[test]
fn the_example_runs() {
    main().unwrap();
}
