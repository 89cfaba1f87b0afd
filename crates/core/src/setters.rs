//! Setters of output types: payloads of events, results and figures.
//!
//! Setters of input types are derived and take a value. Most optional fields of output types hold data that a CLI
//! may omit, so these setters also take an option.

use serde_json::Value;

use crate::{AgentError, CostSource, Id, McpServerStatus, McpTool, Usage, WorkspaceResult};

/// A value for an optional field of an output type: the value itself, or an [`Option`] of it.
///
/// ```
/// use teamster_core::{Id, Text};
///
/// let missing: Option<Id> = None;
/// let text = Text::new("hi").message_id("m1").parent_tool_id(missing);
/// assert_eq!(text.message_id.as_deref(), Some("m1"));
/// ```
pub trait IntoOption<T>: private::Sealed<T> {
    /// Converts the value to an option.
    fn into_option(self) -> Option<T>;
}

mod private {
    pub trait Sealed<T> {}
}

impl<T> private::Sealed<T> for Option<T> {}

impl<T> IntoOption<T> for Option<T> {
    fn into_option(self) -> Option<T> {
        self
    }
}

macro_rules! values {
    ($($target:ty: $($given:ty),+;)*) => {
        $($(
            impl private::Sealed<$target> for $given {}

            impl IntoOption<$target> for $given {
                fn into_option(self) -> Option<$target> {
                    Some(self.into())
                }
            }
        )+)*
    };
}

values! {
    Id: Id, &str, String;
    String: String, &str;
    bool: bool;
    i32: i32;
    u32: u32;
    u64: u64;
    f64: f64;
    Usage: Usage;
    McpTool: McpTool;
    CostSource: CostSource;
    Value: Value;
    Vec<String>: Vec<String>;
    Vec<McpServerStatus>: Vec<McpServerStatus>;
    AgentError: AgentError;
    WorkspaceResult: WorkspaceResult;
}

/// Defines setters of a type's optional fields and, after `;`, of the others.
macro_rules! setters {
    ($($type:ident { $($optional:ident: $value:ty),* $(; $($field:ident: $given:ty),+)? })*) => {
        $(
            impl $type {
                $(
                    #[doc = concat!(
                        "Sets the [`", stringify!($optional), "`](#structfield.",
                        stringify!($optional), ") field of this struct."
                    )]
                    #[must_use]
                    pub fn $optional(mut self, value: impl $crate::IntoOption<$value>) -> Self {
                        self.$optional = value.into_option();
                        self
                    }
                )*
                $($(
                    #[doc = concat!(
                        "Sets the [`", stringify!($field), "`](#structfield.",
                        stringify!($field), ") field of this struct."
                    )]
                    #[must_use]
                    pub fn $field(mut self, value: $given) -> Self {
                        self.$field = value;
                        self
                    }
                )+)?
            }
        )*
    };
}

pub(crate) use setters;
