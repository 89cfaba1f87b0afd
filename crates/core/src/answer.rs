//! Answers of runs as values of Rust types.

use std::error::Error;
use std::fmt;

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::text::excerpt;
use crate::{AgentError, AgentRuntime, ExecuteParams, RunResult};

/// Length of the agent's text in the message of an error, in bytes. The error itself has all of it.
const SHOWN_TEXT: usize = 500;

/// Runs an agent whose answer is a value of the type `T`.
///
/// The JSON Schema of `T` is the run's [`output_schema`](ExecuteParams::output_schema). An agent without structured
/// answers ([`Capabilities::output_schema`](crate::Capabilities::output_schema)) refuses the run before it starts.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use teamster_core::{AnswerError, ExecuteParams, SharedRuntime};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Flaky {
///     /// Names of the tests, with their modules.
///     tests: Vec<String>,
/// }
///
/// async fn flaky(runtime: SharedRuntime) -> Result<Vec<String>, AnswerError> {
///     let params = ExecuteParams::new("Which tests are flaky?");
///     let answer = teamster_core::run::<Flaky>(&runtime, params).await?;
///     println!("{:?} USD", answer.result.total_cost_usd);
///     Ok(answer.value.tests)
/// }
/// ```
///
/// # Errors
///
/// Fails with the error of the run, or with what the agent answered instead of a `T`.
pub async fn run<T: DeserializeOwned + JsonSchema>(
    runtime: &(impl AgentRuntime + ?Sized),
    params: ExecuteParams,
) -> Result<Answer<T>, AnswerError> {
    let events = runtime.execute(params.answer_as::<T>());
    events.result().await.into_answer()
}

/// The answer of a run as a value, with the result of the run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answer<T> {
    /// The answer.
    pub value: T,
    /// The result of the run: session, usage and cost.
    pub result: RunResult,
}

/// Reason why a run has no answer of the requested type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AnswerError {
    /// The run failed.
    #[non_exhaustive]
    Failed {
        /// The error of the run.
        error: AgentError,
        /// The result of the run.
        result: Box<RunResult>,
    },
    /// The agent answered something else.
    #[non_exhaustive]
    Mismatch {
        /// The difference, such as a missing field.
        problem: String,
        /// The whole answer: JSON, or text of an agent that did not answer in JSON.
        text: String,
        /// The result of the run. Its session can be resumed, to let the agent correct the answer.
        result: Box<RunResult>,
    },
}

impl AnswerError {
    /// Returns the result of the run.
    pub fn result(&self) -> &RunResult {
        match self {
            Self::Failed { result, .. } | Self::Mismatch { result, .. } => result,
        }
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { error, .. } => error.fmt(f),
            Self::Mismatch { problem, text, .. } => {
                write!(f, "the agent's answer does not match: {problem}; ")?;
                match text.as_str() {
                    "" => f.write_str("it answered nothing"),
                    text => write!(f, "it answered: {}", excerpt(text, SHOWN_TEXT)),
                }
            }
        }
    }
}

impl Error for AnswerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed { error, .. } => error.source(),
            Self::Mismatch { .. } => None,
        }
    }
}

impl ExecuteParams {
    /// Sets `output_schema` to the JSON Schema of `T`, for [`RunResult::into_answer`].
    ///
    /// The schema has the form that all model services accept: an object without further properties, all of which are
    /// required. A type that is no object is a property of one, and an optional field may be `null`.
    #[must_use]
    pub fn answer_as<T: JsonSchema>(self) -> Self {
        let own = schema::<T>();
        self.output_schema(if is_object(&own) {
            own
        } else {
            schema::<Wrapped<T>>()
        })
    }
}

impl RunResult {
    /// Returns the answer as a value. The run had the parameters of [`ExecuteParams::answer_as`] with the same type.
    ///
    /// # Errors
    ///
    /// Fails if the run failed, or if the answer is not a `T`.
    pub fn into_answer<T: DeserializeOwned + JsonSchema>(self) -> Result<Answer<T>, AnswerError> {
        if let Some(error) = self.failure() {
            let result = Box::new(self);
            return Err(AnswerError::Failed { error, result });
        }
        let read = match &self.structured_output {
            None => Err("no structured answer".to_owned()),
            Some(answer) if is_object(&schema::<T>()) => {
                T::deserialize(answer).map_err(|error| error.to_string())
            }
            Some(answer) => Wrapped::deserialize(answer)
                .map(|it| it.answer)
                .map_err(|error| error.to_string()),
        };
        match read {
            Ok(value) => Ok(Answer {
                value,
                result: self,
            }),
            Err(problem) => {
                let json = self.structured_output.as_ref().map(Value::to_string);
                let text = json.unwrap_or_else(|| self.answer().unwrap_or_default().to_owned());
                Err(AnswerError::Mismatch {
                    problem,
                    text,
                    result: Box::new(self),
                })
            }
        }
    }
}

// The object around an answer that is none: model services accept objects only. No doc comment, which the model would
// read.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Answer")]
struct Wrapped<T> {
    answer: T,
}

fn is_object(schema: &Value) -> bool {
    schema["type"] == "object"
}

fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        // Services refuse a `$ref` with a description beside it. A recursive type still has references.
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    make_strict(&mut schema);
    schema.to_value()
}

/// Changes a schema to the subset that services with strict schemas accept: every property is required, no others are
/// allowed, and keywords that say nothing of the JSON's form are left out. Deserialization checks what gets lost.
fn make_strict(schema: &mut Schema) {
    if let Some(object) = schema.as_object_mut() {
        if object.contains_key("$ref") {
            object.remove("description");
        }
        object.remove("default");
        // The formats of numbers, such as `uint32`, are this generator's own.
        if object.get("type").is_some_and(|it| it != "string") {
            object.remove("format");
        }
        if let Some(variants) = object.remove("oneOf") {
            object.insert("anyOf".to_owned(), variants);
        }
        if let Some(Value::Object(properties)) = object.get("properties") {
            let names = properties.keys().cloned().map(Value::String).collect();
            object.insert("required".to_owned(), Value::Array(names));
            object
                .entry("additionalProperties")
                .or_insert(Value::Bool(false));
        }
    }
    transform_subschemas(&mut make_strict, schema);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ErrorCode, ErrorKind, RunStatus};

    /// A review.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Review {
        verdict: Verdict,
        /// Lines, if any.
        #[serde(default)]
        lines: Vec<u32>,
        note: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    enum Verdict {
        Accepted,
        Refused { reason: String },
    }

    fn completed(answer: Value) -> RunResult {
        let result = RunResult::default().status(RunStatus::Completed);
        result.text("words").structured_output(answer)
    }

    fn mismatch<T: fmt::Debug + DeserializeOwned + JsonSchema>(
        result: RunResult,
    ) -> (String, String) {
        match result.into_answer::<T>().unwrap_err() {
            AnswerError::Mismatch { problem, text, .. } => (problem, text),
            error => panic!("{error}"),
        }
    }

    #[test]
    fn schema_of_a_type_is_strict() {
        let params = ExecuteParams::new("").answer_as::<Review>();
        let expected = json!({
            "title": "Review",
            "description": "A review.",
            "type": "object",
            "properties": {
                "verdict": {
                    "anyOf": [
                        {"type": "string", "enum": ["accepted"]},
                        {
                            "type": "object",
                            "properties": {
                                "refused": {
                                    "type": "object",
                                    "properties": {"reason": {"type": "string"}},
                                    "required": ["reason"],
                                    "additionalProperties": false,
                                },
                            },
                            "required": ["refused"],
                            "additionalProperties": false,
                        },
                    ],
                },
                "lines": {
                    "description": "Lines, if any.",
                    "type": "array",
                    "items": {"type": "integer", "minimum": 0},
                },
                "note": {"type": ["string", "null"]},
            },
            "required": ["verdict", "lines", "note"],
            "additionalProperties": false,
        });
        assert_eq!(params.output_schema, Some(expected));
    }

    #[test]
    fn answer_is_read_as_a_value() {
        let json = json!({"verdict": {"refused": {"reason": "late"}}, "lines": [3], "note": null});
        let answer = completed(json).into_answer::<Review>().unwrap();
        let expected = Review {
            verdict: Verdict::Refused {
                reason: "late".to_owned(),
            },
            lines: vec![3],
            note: None,
        };
        assert_eq!(answer.value, expected);
        assert_eq!(answer.result.text, "words");
    }

    #[test]
    fn answer_that_is_no_object_is_wrapped() {
        let params = ExecuteParams::new("").answer_as::<Vec<bool>>();
        let schema = params.output_schema.unwrap();
        let list = json!({"type": "array", "items": {"type": "boolean"}});
        assert_eq!(schema["properties"], json!({"answer": list}));
        assert_eq!(schema["required"], json!(["answer"]));

        let answer = completed(json!({"answer": [true, false]}));
        assert_eq!(
            answer.into_answer::<Vec<bool>>().unwrap().value,
            [true, false]
        );
        let (problem, text) = mismatch::<Vec<bool>>(completed(json!([true])));
        assert!(problem.contains("invalid type"), "{problem}");
        assert_eq!(text, "[true]");
    }

    #[test]
    fn wrong_answer_is_an_error_with_its_text() {
        let wrong = completed(json!({"verdict": "accepted", "lines": ["x"]}));
        let error = wrong.clone().into_answer::<Review>().unwrap_err();
        let message = error.to_string();
        assert!(message.contains("expected u32"), "{message}");
        assert!(message.contains(r#""lines":["x"]"#), "{message}");
        assert_eq!(error.result(), &wrong);

        let mut none = wrong;
        none.structured_output = None;
        let expected = ("no structured answer".to_owned(), "words".to_owned());
        assert_eq!(mismatch::<Review>(none), expected);
    }

    #[test]
    fn failed_run_is_its_error() {
        let login = AgentError::new(ErrorCode::CliError, ErrorKind::Auth, "not logged in");
        let failed = RunResult::default().errors(vec![login.clone()]);
        let error = failed.into_answer::<Review>().unwrap_err();
        assert_eq!(error.to_string(), "not logged in");
        assert!(matches!(error, AnswerError::Failed { error, .. } if error == login));
    }

    #[test]
    fn error_of_an_answer_says_what_there_was() {
        let mismatch = |text: &str| AnswerError::Mismatch {
            problem: "no structured answer".to_owned(),
            text: text.to_owned(),
            result: Box::default(),
        };
        let begin = "the agent's answer does not match: no structured answer; it answered";
        assert_eq!(mismatch("").to_string(), format!("{begin} nothing"));
        assert_eq!(mismatch("Hm").to_string(), format!("{begin}: Hm"));
        assert!(mismatch("").source().is_none());
    }
}
