//! The check of files that runs take along.

use teamster_api::{FileManifest, PART_BYTES, ProblemCode};

use super::{Behavior, Check, code};

impl Check<'_> {
    pub(super) async fn an_upload_goes_on_with_the_missing_parts(&self) {
        const ID: &str = "contract-upload";

        let service = self.service();
        let content: Vec<u8> = (0..PART_BYTES + 3).map(|it| (it % 251) as u8).collect();
        let (first, last) = content.split_at(usize::try_from(PART_BYTES).expect("it fits"));
        let manifest = FileManifest::of("a name/of parts", &content);
        let name = &*manifest.name;
        let early = service.write_part(ID, name, 0, first.to_vec()).await;
        let early = early.expect_err("it was not declared");
        assert_eq!(code(&early), Some(ProblemCode::FileNotFound));
        let missing = service.offer(ID, manifest.clone()).await;
        assert_eq!(missing.expect("it is declared"), [0, 1]);
        let kept = service.write_part(ID, name, 1, last.to_vec()).await;
        kept.expect("a part is kept");
        let damaged = service.write_part(ID, name, 0, last.to_vec()).await;
        let damaged = damaged.expect_err("it is another part");
        assert_eq!(code(&damaged), Some(ProblemCode::FileDamaged));
        let none = service.write_part(ID, name, 2, last.to_vec()).await;
        let none = none.expect_err("there is no such part");
        assert_eq!(code(&none), Some(ProblemCode::FileNotFound));
        let missing = service.offer(ID, manifest.clone()).await;
        assert_eq!(missing.expect("it is declared again"), [0]);
        let kept = service.write_part(ID, name, 0, first.to_vec()).await;
        kept.expect("a part is kept");
        let missing = service.offer(ID, manifest.clone()).await;
        assert_eq!(missing.expect("it is complete"), Vec::<u32>::new());
        self.start("contract-upload-late", Behavior::Answers).await;
        let late = service
            .offer("contract-upload-late", manifest.clone())
            .await;
        let late = late.expect_err("the run was started");
        assert_eq!(code(&late), Some(ProblemCode::RunExists));
        let late = service.withdraw("contract-upload-late").await;
        let late = late.expect_err("the run was started");
        assert_eq!(code(&late), Some(ProblemCode::RunExists));
        // What is withdrawn is not there any more, however often that is repeated.
        for _ in 0..2 {
            service.withdraw(ID).await.expect("it is withdrawn");
        }
        let gone = service.write_part(ID, name, 0, first.to_vec()).await;
        let gone = gone.expect_err("it was withdrawn");
        assert_eq!(code(&gone), Some(ProblemCode::FileNotFound));
        let missing = service.offer(ID, manifest).await;
        assert_eq!(missing.expect("it is declared"), [0, 1]);
    }
}
