//! A session that ends at the moment in which a prompt arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_core::stream::BoxStream;
use teamster_acp_server::{Catalog, EditorServer};
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, LogLine, Reply, RunInfo, RunList, RunQuery, RunService, RunView,
    ServiceError, ServiceFuture, SessionSpec, Spec,
};
use teamster_testkit::run_service::MemoryService;

use crate::{Editor, entry, memory, session};

/// A service whose sessions end before their second prompt.
struct Ending {
    runs: MemoryService,
    prompts: AtomicUsize,
}

impl RunService for Ending {
    fn start<'a>(&'a self, id: &'a str, spec: Spec) -> ServiceFuture<'a, Accepted> {
        self.runs.start(id, spec)
    }

    fn resolve<'a>(&'a self, prefix: &'a str) -> ServiceFuture<'a, RunInfo> {
        self.runs.resolve(prefix)
    }

    fn show<'a>(&'a self, id: &'a str) -> ServiceFuture<'a, RunView> {
        self.runs.show(id)
    }

    fn list(&self, query: RunQuery) -> ServiceFuture<'_, RunList> {
        self.runs.list(query)
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        self.runs.follow(id, after)
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        self.runs.changes()
    }

    fn send<'a>(&'a self, id: &'a str, command: Command) -> ServiceFuture<'a, Reply> {
        Box::pin(async move {
            if matches!(command, Command::Send { .. })
                && self.prompts.fetch_add(1, Ordering::Relaxed) == 1
            {
                self.runs.send(id, Command::Cancel { kill: false }).await?;
            }
            self.runs.send(id, command).await
        })
    }

    fn forget(&self, request: ForgetRuns) -> ServiceFuture<'_, Forgotten> {
        self.runs.forget(request)
    }
}

#[tokio::test]
async fn the_prompt_goes_to_a_session_that_continues_it() {
    let service = memory();
    let runs = Arc::new(Ending {
        runs: service.clone(),
        prompts: AtomicUsize::new(0),
    });
    let catalog = Catalog::one(entry("mock"));
    let server = EditorServer::new(runs, catalog, SessionSpec::new("mock"));
    let mut editor = Editor::start(server).await;
    let thread = editor.begin().await;
    assert_eq!(editor.turn(&thread, "hello").await, "end_turn");
    assert_eq!(editor.turn(&thread, "more").await, "end_turn");
    assert_eq!(editor.texts("agent_message_chunk"), ["hello", "more"]);
    let mut query = RunQuery::default();
    query.thread = Some(thread);
    let newest = service.list(query).await.unwrap().runs[0].clone();
    let spec = session(&service, &newest.info.run_id);
    assert_eq!(spec.session_id.as_deref(), Some("session-in-memory"));
}
