//! Every call that sends a request.

use std::pin::Pin;

use teamster_api::agents::{Command, Selection};
use teamster_api::history::ForgetRuns;
use teamster_api::usage::UsageQuery;
use teamster_api::{Answer, RunQuery, RunSpec, SessionSpec};
use teamster_client::{Client, ClientError, HistoryQuery, SessionChange};
use teamster_core::Stopping;

/// A call whose result is ignored.
pub(crate) type Call = fn(Client) -> Pin<Box<dyn Future<Output = Result<(), ClientError>> + Send>>;

macro_rules! calls {
    ($($name:literal $client:ident => $call:expr;)*) => {
        [$(($name, |$client: Client| Box::pin(async move { $call.await.map(drop) })),)*]
    };
}

/// Those that follow a stream.
pub(crate) const STREAMS: [&str; 2] = ["follow", "changes"];
/// Those whose response has no content.
pub(crate) const COMMANDS: [&str; 5] = ["cancel", "answer", "steer", "interrupt", "clear"];

pub(crate) fn all() -> [(&'static str, Call); 26] {
    calls![
        "start" client => client.start(&RunSpec::new("claude", "x"), "key");
        "open" client => client.open(&SessionSpec::new("claude"), "key");
        "show" client => client.show("a");
        "runs" client => client.runs(&RunQuery::default());
        "all_runs" client => client.all_runs(RunQuery::default(), 3);
        "requests" client => client.requests();
        "follow" client => async { client.follow("a", 0).next().await };
        "wait" client => client.wait("a");
        "cancel" client => client.cancel("a", Stopping::Kill);
        "answer" client => client.answer("a/1", &Answer::Allow);
        "say" client => client.say("a", "x", Some("me"), Some("key"));
        "queue" client => client.queue("a", "x", None, None);
        "steer" client => client.steer("a", "x", None);
        "interrupt" client => client.interrupt("a", Stopping::Graceful);
        "clear" client => client.clear("a");
        "change" client => client.change("a", &SessionChange::model("opus"));
        "changes" client => async { client.changes().next().await };
        "history" client => client.history(&HistoryQuery::default());
        "recorded" client => client.recorded("a");
        "forget" client => client.forget(&ForgetRuns::default());
        "usage" client => client.usage(&UsageQuery::default());
        "limits" client => client.limits();
        "machine_report" client => client.machine_report();
        "agents" client => client.agents();
        "command_agents" client => client.command_agents(&Command::Wake(Selection::of(["a"])));
        "agent_log" client => client.agent_log("a", 5);
    ]
}
