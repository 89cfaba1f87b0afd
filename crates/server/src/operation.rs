//! The table of API operations, from which routes and the `OpenAPI` document are generated.

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::MethodRouter;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use teamster_api::ProblemCode;

use crate::state::Shared;
use crate::{Scope, auth};

type State = Arc<Shared>;
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// An operation: a method of a path.
pub(crate) struct Operation {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// The required scope; `None` if no token is required.
    pub(crate) scope: Option<Scope>,
    /// The `operationId`, which names the operation in generated clients.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: &'static str,
    /// A type whose fields are the path parameters. Without it, they are ids.
    pub(crate) path_fields: Option<SchemaOf>,
    /// A type whose fields are the query parameters.
    pub(crate) query: Option<SchemaOf>,
    pub(crate) headers: &'static [Header],
    pub(crate) body: Option<RequestBody>,
    pub(crate) replies: Vec<Reply>,
    pub(crate) problems: Vec<ProblemCode>,
    handler: MethodRouter<State>,
    /// The handler itself refuses requests that are not authorized.
    has_own_authorization: bool,
}

pub(crate) struct RequestBody {
    pub(crate) media: &'static str,
    pub(crate) content: SchemaOf,
    pub(crate) required: bool,
}

/// A request header that changes the response.
pub(crate) struct Header {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// The pattern of accepted values; empty if all are.
    pub(crate) pattern: &'static str,
    /// The maximum length in characters; 0 for no limit.
    pub(crate) max_length: usize,
}

/// A success response.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) description: &'static str,
    /// The headers that it always has, each with a description.
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    /// The media types and their content.
    pub(crate) content: Vec<(&'static str, SchemaOf)>,
}

teamster_core::setters! {
    Operation {
        set scope: Option<Scope>,
        set headers: &'static [Header],
    }
}

impl Operation {
    pub(crate) fn new(
        method: Method,
        path: &'static str,
        id: &'static str,
        handler: MethodRouter<State>,
    ) -> Self {
        Self {
            method,
            path,
            scope: Some(Scope::Read),
            id,
            summary: "",
            description: "",
            path_fields: None,
            query: None,
            headers: &[],
            body: None,
            replies: Vec::new(),
            problems: Vec::new(),
            handler,
            has_own_authorization: false,
        }
    }

    /// Leaves the check of the scope to the handler.
    pub(crate) fn with_own_authorization(mut self) -> Self {
        self.has_own_authorization = true;
        self
    }

    pub(crate) fn about(mut self, summary: &'static str, description: &'static str) -> Self {
        (self.summary, self.description) = (summary, description);
        self
    }

    pub(crate) fn path<T: JsonSchema>(mut self) -> Self {
        self.path_fields = Some(SchemaGenerator::root_schema_of::<T>);
        self
    }

    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(SchemaGenerator::root_schema_of::<T>);
        self
    }

    pub(crate) fn body<T: JsonSchema>(mut self, required: bool) -> Self {
        self.body = Some(RequestBody {
            media: "application/json",
            content: SchemaGenerator::subschema_for::<T>,
            required,
        });
        self
    }

    /// Sets a body of bytes.
    pub(crate) fn bytes(mut self) -> Self {
        self.body = Some(RequestBody {
            media: "application/octet-stream",
            content: |_| schemars::json_schema!({"type": "string", "format": "binary"}),
            required: true,
        });
        self
    }

    /// Adds a JSON response.
    pub(crate) fn json<T: JsonSchema>(self, status: StatusCode, description: &'static str) -> Self {
        let content: SchemaOf = SchemaGenerator::subschema_for::<T>;
        self.reply(status, description, vec![("application/json", content)])
    }

    pub(crate) fn reply(
        mut self,
        status: StatusCode,
        description: &'static str,
        content: Vec<(&'static str, SchemaOf)>,
    ) -> Self {
        self.replies.push(Reply {
            status,
            description,
            headers: Vec::new(),
            content,
        });
        self
    }

    /// Adds a header to the last response.
    pub(crate) fn with_header(mut self, name: &'static str, description: &'static str) -> Self {
        if let Some(reply) = self.replies.last_mut() {
            reply.headers.push((name, description));
        }
        self
    }

    pub(crate) fn problems(mut self, problems: &[ProblemCode]) -> Self {
        self.problems.extend(problems);
        self
    }

    /// Returns the path in the document, which has no name for a parameter with slashes.
    pub(crate) fn documented_path(&self) -> String {
        self.path.replace("{*", "{")
    }

    /// Adds the operation's route to a router.
    pub(crate) fn mount(self, router: Router<State>, shared: &State) -> Router<State> {
        let scope = self.scope.filter(|_| !self.has_own_authorization);
        let handler = match scope {
            Some(scope) => self
                .handler
                .layer(from_fn_with_state((shared.clone(), scope), auth::authorize)),
            None => self.handler,
        };
        router.route(self.path, handler)
    }
}

/// Generates the schema of a type inline, for path and query parameters.
trait RootSchema {
    fn root_schema_of<T: JsonSchema>(&mut self) -> Schema;
}

impl RootSchema for SchemaGenerator {
    fn root_schema_of<T: JsonSchema>(&mut self) -> Schema {
        T::json_schema(self)
    }
}
