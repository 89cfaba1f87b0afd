//! The check of what a run brings back.

use teamster_api::{
    DiffLineKind, DiffQuery, DiffStatus, FileManifest, ProblemCode, RunHandle, RunSpec, ViewState,
};
use teamster_core::Stopping;

use super::{Behavior, Check, code, within};

impl Check<'_> {
    /// Starts a run that hangs, and waits until it has begun: before that, it may wait in a queue.
    pub(super) async fn hanging(&self, id: &str) -> RunHandle {
        let run = self.start(id, Behavior::Hangs).await;
        let first = within("an entry", run.follow(0).next()).await;
        first.expect("an entry").expect("the log is read");
        run
    }

    pub(super) async fn changes_are_applied_and_discarded(&self, mut spec: RunSpec) {
        spec.artifacts = vec!["*.txt".to_owned()];
        let run = RunHandle::start(self.service(), "contract-settled", spec).await;
        let run = run.expect("a run starts");
        within("the end", run.result()).await.expect("it ends");
        self.until(&run, ViewState::Ended).await;
        let applied = run.apply().await.expect("changes are applied");
        assert_eq!(applied.files_changed, 1);
        let twice = run.apply().await.expect_err("the file is there already");
        assert_eq!(code(&twice), Some(ProblemCode::ChangesConflict), "{twice}");
        let discarded = run.discard().await.expect("changes are discarded");
        assert!(discarded.branch.is_some());
        for gone in [
            run.discard().await.map(drop),
            run.apply().await.map(drop),
            run.diff(DiffQuery::default()).await.map(drop),
            run.read("patch", Vec::new()).await.map(drop),
        ] {
            let gone = gone.expect_err("they were discarded");
            assert_eq!(code(&gone), Some(ProblemCode::NoWorkspace), "{gone}");
        }
        let files = run.files().await.expect("files").files;
        let names: Vec<_> = files.iter().map(|file| &*file.name).collect();
        assert_eq!(names, ["files/new.txt"]);
    }

    pub(super) async fn a_run_without_changes_has_none_to_bring_back(&self, mut spec: RunSpec) {
        spec.prompt = self.subject.prompt(Behavior::Answers);
        let run = RunHandle::start(self.service(), "contract-unchanged", spec).await;
        let run = run.expect("a run starts");
        let result = within("the end", run.result()).await.expect("it ends");
        let left = result.workspace.as_ref().expect("it had a workspace");
        assert!(!left.has_changes(), "{left:?}");
        self.until(&run, ViewState::Ended).await;
        let diff = run.diff(DiffQuery::default()).await.expect("no changes");
        assert_eq!(diff.files, []);
        for name in ["patch", "bundle"] {
            let none = run.read(name, Vec::new()).await;
            let none = none.expect_err("it has no changes");
            assert_eq!(code(&none), Some(ProblemCode::FileNotFound), "{none}");
        }
    }

    pub(super) async fn a_run_brings_its_changes_and_files_back(&self, mut spec: RunSpec) {
        let service = self.service();
        spec.artifacts = vec!["*.txt".to_owned()];
        let run = RunHandle::start(service.clone(), "contract-writes", spec).await;
        let run = run.expect("a run starts");
        let result = within("the end", run.result()).await.expect("it ends");
        let left = result.workspace.as_ref().expect("it had a workspace");
        assert_eq!((left.commits, left.files_changed), (Some(0), Some(1)));
        assert_eq!((left.insertions, left.dirty), (Some(1), Some(true)));
        self.until(&run, ViewState::Ended).await;
        let view = run.view().await.expect("it is shown");
        assert_eq!(view.summary.workspace, result.workspace);

        let diff = run.diff(DiffQuery::default()).await.expect("changes");
        let [file] = &*diff.files else {
            panic!("{diff:?}");
        };
        assert_eq!((&*file.path, file.status), ("new.txt", DiffStatus::Added));
        let line = &file.hunks[0].lines[0];
        assert_eq!((line.kind, &*line.text), (DiffLineKind::Added, "new"));
        let mut other = DiffQuery::default();
        other.paths = vec!["other.txt".to_owned()];
        assert_eq!(run.diff(other).await.expect("changes").files, []);

        let files = run.files().await.expect("files").files;
        let names: Vec<_> = files.iter().map(|file| &*file.name).collect();
        assert!(
            names.contains(&"patch") && names.contains(&"files/new.txt"),
            "{names:?}"
        );
        let mut content = Vec::new();
        let manifest = run.read("files/new.txt", &mut content).await;
        assert_eq!(content, b"new\n");
        assert_eq!(
            manifest.expect("a file"),
            FileManifest::of("files/new.txt", b"new\n")
        );
        let mut patch = Vec::new();
        run.read("patch", &mut patch).await.expect("a patch");
        let patch = String::from_utf8(patch).expect("text");
        assert!(patch.contains("\n+new\n"), "{patch}");
        for missing in [
            run.read("files/none", Vec::new()).await.map(drop),
            run.read("files/../patch", Vec::new()).await.map(drop),
            service
                .read_part(run.id(), "files/new.txt", 1)
                .await
                .map(drop),
        ] {
            let missing = missing.expect_err("there is no such file");
            assert_eq!(code(&missing), Some(ProblemCode::FileNotFound), "{missing}");
        }
        let none = service.diff("contract-none", DiffQuery::default()).await;
        let none = none.expect_err("there is no such run");
        assert_eq!(code(&none), Some(ProblemCode::RunNotFound));
        let plain = self.hanging("contract-plain").await;
        let live = plain.files().await.expect_err("it is live");
        assert_eq!(code(&live), Some(ProblemCode::RunLive));
        let live = plain.discard().await.expect_err("it is live");
        assert_eq!(code(&live), Some(ProblemCode::RunLive));
        plain.cancel(Stopping::Kill).await.expect("it is stopped");
        self.until(&plain, ViewState::Ended).await;
        let none = plain.apply().await.expect_err("it has no workspace");
        assert_eq!(code(&none), Some(ProblemCode::NoWorkspace));
        let plain = plain.diff(DiffQuery::default()).await;
        let plain = plain.expect_err("it has no workspace");
        assert_eq!(code(&plain), Some(ProblemCode::NoWorkspace));
    }
}
