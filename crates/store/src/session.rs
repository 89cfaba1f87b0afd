//! Sessions by conversation.

use std::path::PathBuf;
use std::time::Duration;

use teamster_core::time::millis;

use serde::Serialize;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::column::{check_given, figure, path_from_column, path_to_column, text, to_column};
use crate::{Conversation, SessionKey, Store, StoreError};

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionRecord {
    /// Key of the session.
    pub key: SessionKey,
    /// The session, in the provider's words.
    pub session_id: String,
    /// The last model of the session, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Working directory. CLIs keep sessions by directory, so the session is found only there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<PathBuf>,
    /// Time from which the session belongs to the key, in milliseconds since the Unix epoch.
    pub created_at: u64,
    /// Time of the last use, in milliseconds since the Unix epoch.
    pub updated_at: u64,
    /// Expiry unless the session is used before, in milliseconds since the Unix epoch.
    pub expires_at: u64,
}

impl SessionRecord {
    /// Creates a record of a session that was stored at `created_at` and expires at `expires_at`, both in milliseconds
    /// since the Unix epoch.
    pub fn new(
        key: SessionKey,
        session_id: impl Into<String>,
        created_at: u64,
        expires_at: u64,
    ) -> Self {
        Self {
            key,
            session_id: session_id.into(),
            model: None,
            working_directory: None,
            created_at,
            updated_at: created_at,
            expires_at,
        }
    }
}

/// A session to store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewSession {
    /// The session, in the provider's words.
    pub session_id: String,
    /// The model of the session.
    pub model: Option<String>,
    /// Working directory. Stored as an absolute path.
    pub working_directory: Option<PathBuf>,
    /// Time to keep the session from now on. Default: that of the store.
    pub ttl: Option<Duration>,
}

teamster_core::setters! {
    NewSession {
        some_into model: String,
        some_into working_directory: PathBuf,
        some ttl: Duration,
    }
}

impl NewSession {
    /// Creates a session with this id alone.
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            model: None,
            working_directory: None,
            ttl: None,
        }
    }
}

/// Filter of sessions. Default: all that have not expired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionFilter {
    /// Only sessions of this provider.
    pub provider: Option<String>,
    /// Only sessions of this channel.
    pub channel: Option<String>,
    /// Only sessions of this user.
    pub user: Option<String>,
    /// Only sessions of this thread.
    pub thread: Option<String>,
    /// True to include expired sessions.
    pub expired: bool,
    /// Maximum number of sessions. Default: no limit.
    pub limit: Option<u32>,
}

teamster_core::setters! {
    SessionFilter {
        some_into provider: String,
        some_into channel: String,
        some_into user: String,
        some_into thread: String,
        set expired: bool,
        some limit: u32,
    }
}

/// Age of the last heartbeat from which a lock is deleted. It is free long before, once a caller looks at it.
const OLD_LOCK: Duration = Duration::from_hours(24);

const COLUMNS: &str = "channel_id, user_id, thread_id, provider, session_id, model, \
                       working_directory, created_at, updated_at, expires_at";

impl Store {
    /// Returns the session of a conversation with a provider, if there is one that has not expired.
    ///
    /// # Errors
    ///
    /// Fails if the key is invalid or the database fails.
    pub async fn session(&self, key: &SessionKey) -> Result<Option<SessionRecord>, StoreError> {
        key.check()?;
        let [channel, user, thread] = key.conversation.columns();
        let sql = format!(
            "SELECT {COLUMNS} FROM teamster_sessions WHERE channel_id = $1 AND user_id = $2 \
             AND thread_id = $3 AND provider = $4 AND expires_at > $5"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(channel)
            .bind(user)
            .bind(thread)
            .bind(&key.provider)
            .bind(to_column(self.now()));
        let found = self.fetch_sessions("look up a session", query).await?;
        Ok(found.into_iter().next())
    }

    /// Stores the session of a conversation, replacing the previous one. Its expiry starts over.
    ///
    /// # Errors
    ///
    /// Fails if the key or the session's id is invalid, or if the database fails.
    pub async fn put_session(
        &self,
        key: &SessionKey,
        session: &NewSession,
    ) -> Result<(), StoreError> {
        self.put_session_of(key, session, None, None).await
    }

    /// Stores a session that was known at `known_at`, unless another one was stored since.
    ///
    /// `continues` is the session that the conversation had for the caller. Then only that one and itself are replaced,
    /// and without a row it is stored only while no process has the right to begin a session: the conversation may have
    /// been started over.
    pub(crate) async fn put_session_of(
        &self,
        key: &SessionKey,
        session: &NewSession,
        known_at: Option<u64>,
        continues: Option<&str>,
    ) -> Result<(), StoreError> {
        key.check()?;
        check_given("session id", &session.session_id)?;
        let now = known_at.unwrap_or_else(|| self.now());
        let ttl = session.ttl.unwrap_or(self.ttl());
        let ttl = millis(ttl);
        let [channel, user, thread] = key.conversation.columns();
        let query = sqlx::query(
            "INSERT INTO teamster_sessions (channel_id, user_id, thread_id, provider, session_id, \
             model, working_directory, created_at, updated_at, expires_at) \
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $8, $9 WHERE $11 = '' \
             OR EXISTS (SELECT 1 FROM teamster_sessions WHERE channel_id = $1 \
             AND user_id = $2 AND thread_id = $3 AND provider = $4) \
             OR NOT EXISTS (SELECT 1 FROM teamster_session_locks WHERE channel_id = $1 \
             AND user_id = $2 AND thread_id = $3 AND provider = $4) \
             ON CONFLICT (channel_id, user_id, thread_id, provider) DO UPDATE SET \
             session_id = excluded.session_id, model = excluded.model, \
             working_directory = excluded.working_directory, \
             created_at = CASE WHEN teamster_sessions.session_id = excluded.session_id \
             THEN teamster_sessions.created_at ELSE excluded.created_at END, \
             updated_at = excluded.updated_at, expires_at = excluded.expires_at \
             WHERE teamster_sessions.updated_at <= $10 \
             AND ($11 = '' OR teamster_sessions.session_id IN ($11, excluded.session_id))",
        )
        .bind(channel)
        .bind(user)
        .bind(thread)
        .bind(&key.provider)
        .bind(&session.session_id)
        .bind(session.model.as_deref().map(text))
        .bind(session.working_directory.as_deref().map(path_to_column))
        .bind(to_column(now))
        .bind(to_column(now.saturating_add(ttl)))
        .bind(known_at.map_or(i64::MAX, to_column))
        // No session has an empty id.
        .bind(continues.unwrap_or_default());
        self.execute("keep a session", query).await.map(drop)
    }

    /// Deletes the session of a conversation. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Fails if the key is invalid or the database fails.
    pub async fn remove_session(&self, key: &SessionKey) -> Result<bool, StoreError> {
        self.remove(key, None, None).await
    }

    /// Deletes the session of a conversation, optionally only if it has this id or was last used before this time.
    /// The conditions keep a session that was stored meanwhile.
    pub(crate) async fn remove(
        &self,
        key: &SessionKey,
        session_id: Option<&str>,
        used_before: Option<u64>,
    ) -> Result<bool, StoreError> {
        key.check()?;
        let [channel, user, thread] = key.conversation.columns();
        let query = sqlx::query(
            "DELETE FROM teamster_sessions WHERE channel_id = $1 AND user_id = $2 \
             AND thread_id = $3 AND provider = $4 AND session_id = COALESCE($5, session_id) \
             AND updated_at < COALESCE($6, updated_at + 1)",
        )
        .bind(channel)
        .bind(user)
        .bind(thread)
        .bind(&key.provider)
        .bind(session_id)
        .bind(used_before.map(to_column));
        let removed = self.execute("forget a session", query).await?;
        Ok(removed > 0)
    }

    /// Deletes all expired sessions, and what killed processes have left of locks. Returns the number of sessions.
    pub async fn expire(&self) -> Result<u64, StoreError> {
        let now = self.now();
        let query = sqlx::query("DELETE FROM teamster_session_locks WHERE heartbeat_at <= $1")
            .bind(to_column(now.saturating_sub(millis(OLD_LOCK))));
        self.execute("forget old locks", query).await?;
        let query = sqlx::query("DELETE FROM teamster_sessions WHERE expires_at <= $1")
            .bind(to_column(now));
        self.execute("forget expired sessions", query).await
    }

    /// Returns the stored sessions, last used first.
    pub async fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRecord>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM teamster_sessions WHERE provider = COALESCE($1, provider) \
             AND channel_id = COALESCE($2, channel_id) AND user_id = COALESCE($3, user_id) \
             AND thread_id = COALESCE($4, thread_id) AND expires_at > $5 \
             ORDER BY updated_at DESC, channel_id, user_id, thread_id, provider LIMIT $6"
        );
        let expires_after = if filter.expired {
            -1
        } else {
            to_column(self.now())
        };
        let query = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(filter.provider.as_deref().map(text))
            .bind(filter.channel.as_deref().map(text))
            .bind(filter.user.as_deref().map(text))
            .bind(filter.thread.as_deref().map(text))
            .bind(expires_after)
            .bind(filter.limit.map_or(i64::MAX, i64::from));
        self.fetch_sessions("list sessions", query).await
    }

    async fn fetch_sessions(
        &self,
        doing: &'static str,
        query: sqlx::query::Query<'_, sqlx::Any, sqlx::any::AnyArguments>,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let rows = self.fetch(doing, query).await?;
        let sessions = rows.iter().map(read).collect::<Result<_, _>>();
        sessions.map_err(|error| self.failed(doing, &error))
    }
}

fn read(row: &AnyRow) -> Result<SessionRecord, sqlx::Error> {
    Ok(SessionRecord {
        key: Conversation::from_columns(
            row.try_get("channel_id")?,
            row.try_get("user_id")?,
            row.try_get("thread_id")?,
        )
        .with(row.try_get::<String, _>("provider")?),
        session_id: row.try_get("session_id")?,
        model: row.try_get("model")?,
        working_directory: row
            .try_get::<Option<String>, _>("working_directory")?
            .map(path_from_column),
        created_at: figure(row, "created_at")?,
        updated_at: figure(row, "updated_at")?,
        expires_at: figure(row, "expires_at")?,
    })
}
