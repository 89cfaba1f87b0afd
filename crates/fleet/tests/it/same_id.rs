//! A run whose id an earlier one had, of which the record is gone and files are left.

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use sha2::{Digest, Sha256};
use teamster_api::{BUNDLE, DiffQuery, FileManifest, ProblemCode, RunHandle};
use teamster_core::RunStatus;

use super::machine::{
    Machine, Shared, block_on, end, jetstream, read, runs_of, submit, until_workers, with_worker,
};

/// The subject of a file's parts that a run of Ann's has brought back.
fn place(run: &str, name: &str) -> String {
    let digest = format!("{:x}", Sha256::digest(name));
    format!("tm.file.ann.{run}.r.{}", &digest[..32])
}

async fn put(context: &Context, subject: String, headers: HeaderMap, content: Vec<u8>) {
    let sent = context.publish_with_headers(subject, headers, content.into());
    sent.await.unwrap().await.unwrap();
}

/// Gives a run a result, as a worker does with this claim, or one of an older version.
async fn bring(context: &Context, name: &str, content: &[u8], claim: Option<&str>) {
    let place = place("run", name);
    let mut headers = HeaderMap::new();
    if let Some(claim) = claim {
        headers.insert("Tm-Nonce", claim);
    }
    put(
        context,
        format!("{place}.0"),
        HeaderMap::new(),
        content.to_vec(),
    )
    .await;
    let manifest = serde_json::to_vec(&FileManifest::of(name, content)).unwrap();
    put(context, format!("{place}.m"), headers, manifest).await;
}

#[test]
fn a_run_has_nothing_of_an_earlier_one_with_its_id() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (_fleet, service, mut first) = with_worker(&server, &shared.agent()).await;
        let run = submit(&service, "run").await;
        assert_eq!(end(&run).await, RunStatus::Completed);
        let context = jetstream(&server).await;
        let earlier = "0123456789abcdef0123456789abcdef";
        let diff =
            br#"{"base":"a","head":"b","files":[],"filesChanged":0,"insertions":0,"deletions":0}"#;
        bring(&context, "notes", b"earlier", Some(earlier)).await;
        bring(&context, "old-notes", b"older", None).await;
        bring(&context, "./diff", diff, Some(earlier)).await;
        bring(&context, BUNDLE, b"# v2 git bundle\n", None).await;
        first.drain();
        let files = context.get_stream("TM_FILE").await.unwrap();
        let whole = place("run", "./log");
        let log = files.direct_get_last_for_subject(format!("{whole}.m"));
        let log = log.await.unwrap();
        let part = files.direct_get_last_for_subject(format!("{whole}.0"));
        let part = part.await.unwrap();
        // 30 days later.
        for stream in ["KV_tm_runs", "TM_LOG"] {
            let stream = context.get_stream(stream).await.unwrap();
            stream.purge().await.unwrap();
        }
        let (fleet, service) = runs_of(&server, "ann").await;
        let agent = shared.agent().replace("say done", "say later");
        let mut second = Machine::start(&server, "w2", &agent);
        until_workers(&fleet, 1).await;
        let run = submit(&service, "run").await;
        assert_eq!(end(&run).await, RunStatus::Completed);
        assert_eq!(service.files("run").await.unwrap().files, []);
        // Its own directory was a new one.
        let error = service.diff("run", DiffQuery::default()).await.unwrap_err();
        assert_eq!(error.code, Some(ProblemCode::NoWorkspace), "{error}");
        for name in ["notes", "old-notes", BUNDLE] {
            let error = service.manifest("run", name).await.unwrap_err();
            let is_none =
                |code| matches!(code, ProblemCode::FileNotFound | ProblemCode::NoWorkspace);
            assert!(error.code.is_some_and(is_none), "{name}: {error}");
        }
        second.drain();
        // The whole log of the second run had no room, and its copy has aged out.
        put(
            &context,
            format!("{whole}.0"),
            HeaderMap::new(),
            part.payload.to_vec(),
        )
        .await;
        let mut headers = HeaderMap::new();
        let claim = log.headers.get("Tm-Nonce").unwrap().clone();
        headers.insert("Tm-Nonce", claim);
        put(
            &context,
            format!("{whole}.m"),
            headers,
            log.payload.to_vec(),
        )
        .await;
        let logs = context.get_stream("TM_LOG").await.unwrap();
        logs.purge().await.unwrap();
        let left = String::from_utf8(read(&RunHandle::new(service, "run")).await).unwrap();
        let [reset, done] = &*left.lines().collect::<Vec<_>>() else {
            panic!("{left}");
        };
        assert!(reset.contains("\"type\":\"reset\""), "{left}");
        assert!(done.contains("\"text\":\"later\""), "{left}");
    });
}
