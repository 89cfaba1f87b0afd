//! Checks of titles, of lists by them, and of kept specs.

use teamster_api::{
    Change, ProblemCode, RunHandle, RunQuery, SessionSpec, Spec, ViewState, title_of,
};
use teamster_core::Stopping;

use super::{Behavior, Check, code, within};

/// Id of the run.
const RUN: &str = "contract-title";

impl Check<'_> {
    async fn title(&self, id: &str) -> Option<String> {
        let view = self.service().show(id).await.expect("a run is shown");
        view.summary.info.title.clone()
    }

    async fn listed(&self, set: impl FnOnce(&mut RunQuery)) -> Vec<String> {
        let mut query = RunQuery::default();
        query.limit = Some(1000);
        set(&mut query);
        let list = self.service().list(query).await.expect("runs are listed");
        let ids = list.runs.iter().map(|run| run.info.run_id.clone());
        ids.collect()
    }

    pub(super) async fn a_run_has_a_title_and_its_spec(&self) {
        let service = self.service();
        let Spec::Run(spec) = self.subject.run(Behavior::Answers) else {
            panic!("a run is no session");
        };
        let first = title_of(&spec.prompt);
        let run = self.start(RUN, Behavior::Answers).await;
        self.until(&run, ViewState::Ended).await;
        assert_eq!(self.title(RUN).await, first);
        let kept = service.spec(RUN).await.expect("it is kept");
        assert_eq!(kept.what, Spec::Run(spec.clone()));
        assert_eq!(kept.withheld, [""; 0]);

        let mut changes = service.changes();
        let mut next = async || {
            let next = std::future::poll_fn(|cx| changes.as_mut().poll_next(cx));
            let next = within("a change", next).await;
            next.expect("the stream goes on").expect("no error")
        };
        assert!(matches!(next().await, Change::Snapshot { .. }));
        let given = Some(" The contract\nof titles ".to_owned());
        service.rename(RUN, given).await.expect("it is renamed");
        let given = Some("The contract of titles".to_owned());
        assert_eq!(self.title(RUN).await, given);
        loop {
            if let Change::Run { run } = next().await
                && run.info.title == given
            {
                break;
            }
        }
        let with_text = async |text: &str, prompts: bool| {
            let text = Some(text.to_owned());
            let listed = self.listed(|query| (query.text, query.prompts) = (text, prompts));
            listed.await
        };
        assert_eq!(with_text("TITLES contract", false).await, [RUN]);
        assert_eq!(with_text("contract of nothing", false).await, [""; 0]);
        let is_listed = |ids: &[String]| ids.iter().any(|id| id == RUN);
        // The prompt is not in the title any more.
        assert!(!is_listed(&with_text(&spec.prompt, false).await));
        assert!(is_listed(&with_text(&spec.prompt, true).await));
        for (agent, found) in [(&*spec.provider, true), ("contract-agent", false)] {
            let agent = Some(agent.to_owned());
            let ids = self.listed(|query| query.agent = agent).await;
            assert_eq!(is_listed(&ids), found, "{ids:?}");
        }
        let elsewhere = self.listed(|query| query.directory = Some("/contract/elsewhere".into()));
        assert_eq!(elsewhere.await, [""; 0]);

        service.rename(RUN, None).await.expect("it is renamed");
        assert_eq!(self.title(RUN).await, first);
        let wrong = service.rename(RUN, Some(" ".to_owned())).await;
        let wrong = wrong.expect_err("there is no text");
        assert_eq!(code(&wrong), Some(ProblemCode::InvalidParams));
        for missing in [
            service.rename("contract-no-run", None).await,
            service.spec("contract-no-run").await.map(drop),
            // It is a prefix.
            service.rename("contract-titl", None).await,
        ] {
            let missing = missing.expect_err("no run has this id");
            assert_eq!(code(&missing), Some(ProblemCode::RunNotFound));
        }
    }

    pub(super) async fn a_session_is_titled(&self, spec: SessionSpec) {
        let started = RunHandle::start(self.service(), "contract-titled", spec);
        let session = within("start", started).await.expect("a session starts");
        assert_eq!(self.title(session.id()).await, None);
        let prompt = self.subject.prompt(Behavior::Answers);
        let title = title_of(&prompt);
        let (_, seq) = session.say(&*prompt).await.expect("a turn begins");
        self.until_turn_ends(&session, seq).await;
        assert_eq!(self.title(session.id()).await, title);
        let more = format!("Second line\n{}", self.subject.prompt(Behavior::Hangs));
        let (_, seq) = session.say(&*more).await.expect("a turn begins");
        let mut log = session.follow(seq);
        within("an entry", log.next())
            .await
            .expect("an entry")
            .expect("the log is read");
        // It is stopped during its turn, and its agent's session can be resumed all the same.
        session
            .cancel(Stopping::Graceful)
            .await
            .expect("it is ended");
        self.until(&session, ViewState::Ended).await;
        let view = session.view().await.expect("it is shown");
        assert_eq!(view.summary.info.title, title);
        assert!(view.summary.session_id.is_some());
    }
}
