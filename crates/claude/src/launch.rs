use teamster_core::{AgentError, ExecuteParams, Launch};

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    Ok(Launch {
        args: [
            "-p",
            "--output-format=stream-json",
            "--verbose",
            "--include-partial-messages",
            "--",
            &params.prompt,
        ]
        .map(Into::into)
        .to_vec(),
        ..Launch::default()
    })
}
