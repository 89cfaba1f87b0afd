//! Compactions of a conversation.

use agent_client_protocol_schema::v1::{
    CompactionId, CompactionStatus, CompactionUpdate, SessionUpdate,
};
use teamster_core::{Notice, NoticeCode};

/// The compactions of a session.
#[derive(Debug, Default)]
pub(super) struct Compactions {
    begun: u64,
    /// The compaction in progress.
    current: Option<CompactionId>,
}

pub(super) fn is_about(notice: &Notice) -> bool {
    status(notice.code).is_some()
}

impl Compactions {
    /// Returns the update for a notice. Some agents report only the end of a compaction.
    pub(super) fn update(&mut self, notice: &Notice) -> Option<SessionUpdate> {
        let status = status(notice.code)?;
        let is_over = status != CompactionStatus::InProgress;
        let current = self.current.take();
        let id = current.unwrap_or_else(|| {
            self.begun += 1;
            CompactionId::new(format!("c{}", self.begun))
        });
        if !is_over {
            self.current = Some(id.clone());
        }
        let has_failed = status == CompactionStatus::Failed;
        let mut update = CompactionUpdate::new(id, status);
        if has_failed {
            update = update.error(notice.message.clone());
        }
        Some(SessionUpdate::CompactionUpdate(update))
    }
}

fn status(code: Option<NoticeCode>) -> Option<CompactionStatus> {
    match code? {
        NoticeCode::CompactionStarted => Some(CompactionStatus::InProgress),
        NoticeCode::Compacted => Some(CompactionStatus::Completed),
        NoticeCode::CompactionFailed => Some(CompactionStatus::Failed),
        _ => None,
    }
}
