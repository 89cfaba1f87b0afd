//! Names of servers that the CLI would confuse with those of the user's servers.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use teamster::mcp::lease::Lease;
use teamster_core::provider::{
    ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable, PathLocation, PrivateFile,
};
use teamster_core::{ErrorCode, ErrorKind, McpServer, RunStatus};

use crate::engine::{END, Run, Scratch, shell};
use teamster_testkit::events::assert_types;
use teamster_testkit::proc;

fn json(file: PathBuf) -> ConfigTable {
    ConfigTable {
        file,
        format: ConfigFormat::Json,
        key: "mcp",
    }
}

fn toml(file: PathBuf) -> ConfigTable {
    ConfigTable {
        file,
        format: ConfigFormat::Toml,
        key: "mcp_servers",
    }
}

/// Prepares a run with servers of these names, which leaves a mark.
fn run(mark: &Path, tables: Vec<ConfigTable>, names: &[&str]) -> Run {
    shell(&format!("touch {}; echo '{END}'", mark.display()))
        .launch(|launch| launch.names_taken = tables)
        .params(|params| {
            for name in names {
                let server = McpServer::http(*name, "https://mcp.example.com");
                params.mcp_servers.push(server);
            }
        })
}

#[tokio::test]
async fn name_in_the_users_file_is_refused_before_the_start() {
    let scratch = Scratch::new();
    let mark = scratch.path("ran");
    let (one, two) = (scratch.path("opencode.jsonc"), scratch.path("config.toml"));
    fs::write(
        &one,
        "{\n // mine\n \"mcp\": {\"docs\": {\"url\": \"x\"}}\n}",
    )
    .unwrap();
    fs::write(&two, "[mcp_servers.\"tracker\"]\ncommand = \"x\"\n").unwrap();
    for (names, name, file) in [
        (["other", "docs"], "docs", &one),
        (["tracker", "other"], "tracker", &two),
    ] {
        let tables = vec![json(one.clone()), toml(two.clone())];
        let story = run(&mark, tables, &names).finish().await;
        assert_types(&story.events, "error done");
        let error = story.error();
        assert_eq!(
            (error.code, error.kind),
            (ErrorCode::InvalidParams, ErrorKind::Invalid)
        );
        assert_eq!(
            error.message,
            format!(
                "mcp_servers: {name}: {} has a server of this name too, and Fake Agent would mix \
                 the two or leave one out; choose another name",
                file.display()
            )
        );
        assert!(!mark.exists());
    }
}

#[tokio::test]
async fn other_names_and_files_that_are_not_there_are_fine() {
    let scratch = Scratch::new();
    let file = scratch.path("config.toml");
    // Only equal names conflict.
    fs::write(&file, "[mcp_servers.docs]\ncommand = \"x\"\n[other.Docs]\n").unwrap();
    let tables = vec![toml(file), json(scratch.path("nowhere/opencode.json"))];
    let mark = scratch.path("ran");
    let story = run(&mark, tables, &["Docs", "docs2"]).finish().await;
    assert_types(&story.events, "turn_end done");
    assert!(mark.exists());
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_reported_and_left_to_the_cli() {
    let scratch = Scratch::new();
    let broken = scratch.path("opencode.json");
    fs::write(
        &broken,
        "{\"mcp\": {\"docs\": {\"key\": \"sk-secret\" \"x\"}}",
    )
    .unwrap();
    let other = scratch.path("config.toml");
    fs::write(&other, "[mcp_servers.docs.env]\nKEY = \"sk-secret\" x\n").unwrap();
    let folder = scratch.path("folder.json");
    fs::create_dir(&folder).unwrap();
    let tables = vec![
        json(broken.clone()),
        toml(other.clone()),
        json(folder.clone()),
    ];
    let mark = scratch.path("ran");
    let story = run(&mark, tables.clone(), &["docs"]).finish().await;
    assert_types(&story.events, "notice notice notice turn_end done");
    for (notice, file) in story.notices().iter().zip([broken, other, folder]) {
        let begin = format!(
            "{}: the names of its MCP servers are not known: ",
            file.display()
        );
        assert!(notice.starts_with(&begin), "{notice}");
        assert!(!notice.contains("sk-"), "{notice}");
    }
    assert!(mark.exists());

    // Without servers, names are not checked.
    let story = run(&mark, tables, &[]).finish().await;
    assert_types(&story.events, "turn_end done");
}

#[tokio::test]
async fn notices_before_a_failed_start_are_reported() {
    let scratch = Scratch::new();
    let broken = scratch.path("config.toml");
    fs::write(&broken, "[mcp_servers").unwrap();
    let program = scratch.path("cli");
    proc::write_program(&program, "#!/nowhere/node\n").unwrap();
    let story = run(&scratch.path("ran"), vec![toml(broken)], &["docs"])
        .config(|config| config.program = Some(program))
        .launch(|launch| {
            launch.private_files.push(PrivateFile {
                location: PathLocation::Variable("X".into()),
                content: Vec::new(),
            });
        })
        .finish()
        .await;
    assert_types(&story.events, "notice error done");
    assert_eq!(story.result.status, RunStatus::Failed);
}

#[tokio::test]
async fn a_name_of_another_run_is_reported_as_such() {
    let scratch = Scratch::new();
    let file = scratch.path("config.toml");
    let lease = Lease::acquire(&ConfigEdit {
        table: toml(file.clone()),
        entries: vec![("docs".to_owned(), json!({"url": "https://mcp.example.com"}))],
        new_file: "",
        location: ConfigLocation::Lease,
    })
    .unwrap();
    let story = run(&scratch.path("ran"), vec![toml(file.clone())], &["docs"])
        .finish()
        .await;
    assert_eq!(
        story.error().message,
        format!(
            "mcp_servers: docs: {} has a server of another run of this name too, and Fake Agent would \
             mix the two or leave one out; choose another name, or wait for that run's end",
            file.display()
        )
    );
    assert!(!scratch.path("ran").exists());
    lease.release().unwrap();
}

#[tokio::test]
async fn secrets_of_servers_are_in_no_notice_error_or_stderr() {
    const SECRET: &str = "s3cr3t-value";
    let script = format!("echo 'plain {SECRET}'; echo 'boom {SECRET}' >&2; exit 3");
    let story = shell(&script)
        .params(|params| {
            let server = McpServer::stdio("leaky", "x", ["y"]).env("K", SECRET);
            params.mcp_servers.push(server);
        })
        .finish()
        .await;
    let shown = format!("{:?}", story.events);
    assert!(shown.contains("boom …"), "{shown}");
    assert!(shown.contains("plain …"), "{shown}");
    assert!(!shown.contains(SECRET), "{shown}");
}
