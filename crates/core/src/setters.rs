//! Setters of the workspace's types, by one macro.
//!
//! Setters of input types take a value. Most optional fields of output types (payloads of events, results and
//! figures) hold data that a CLI may omit, so their setters also take an option.

use serde_json::Value;

use crate::{
    AgentError, CostSource, Id, McpServerStatus, McpTool, ModelChoice, NoticeCode, SlashCommand,
    Usage, WorkspaceResult,
};

/// A value for an optional field of an output type: the value itself, or an [`Option`] of it.
#[doc(hidden)]
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
    Vec<SlashCommand>: Vec<SlashCommand>;
    Vec<ModelChoice>: Vec<ModelChoice>;
    NoticeCode: NoticeCode;
    AgentError: AgentError;
    WorkspaceResult: WorkspaceResult;
}

/// Defines setters: one line for each field, with what the setter takes.
///
/// - `set f: T` takes a `T`, `into f: T` what converts into one;
/// - `some f: T` and `some_into f: T` do the same for a field that is an `Option<T>`;
/// - `option f: T` also takes an `Option<T>` ([`IntoOption`]);
/// - `… f as name: T` defines the setter `name`.
///
/// A setter whose name does not say it all has a doc comment before it, as a field has.
///
/// Those of an output type have `#[doc(hidden)]` before the type: its documentation is for readers of it, and
/// [`provider`](crate::provider) describes them.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($(
        $(#[$attribute:meta])*
        $type:ident {
            $($(#[$doc:meta])* $kind:ident $field:ident $(as $name:ident)?: $value:ty),* $(,)?
        }
    )*) => {
        $(
            /// Setters of single fields.
            $(#[$attribute])*
            impl $type {
                $($crate::setter! { [$(#[$doc])*] $kind $field $(as $name)?: $value })*
            }
        )*
    };
}

/// Defines one setter; see [`setters`].
#[doc(hidden)]
#[macro_export]
macro_rules! setter {
    ($docs:tt $kind:ident $field:ident: $type:ty) => {
        $crate::setter! { $docs $kind $field as $field: $type }
    };
    ($docs:tt set $field:ident as $name:ident: $type:ty) => {
        $crate::setter! { @ $docs $field $name value: $type => value }
    };
    ($docs:tt into $field:ident as $name:ident: $type:ty) => {
        $crate::setter! { @ $docs $field $name value: impl Into<$type> => value.into() }
    };
    ($docs:tt some $field:ident as $name:ident: $type:ty) => {
        $crate::setter! { @ $docs $field $name value: $type => Some(value) }
    };
    ($docs:tt some_into $field:ident as $name:ident: $type:ty) => {
        $crate::setter! { @ $docs $field $name value: impl Into<$type> => Some(value.into()) }
    };
    ($docs:tt option $field:ident as $name:ident: $type:ty) => {
        $crate::setter! { @ $docs $field $name value: impl $crate::IntoOption<$type> => value.into_option() }
    };
    (@ [] $field:ident $name:ident $value:ident: $given:ty => $new:expr) => {
        $crate::setter! {
            @ [#[doc = concat!(
                "Sets the [`", stringify!($field), "`](#structfield.", stringify!($field), ") field."
            )]] $field $name $value: $given => $new
        }
    };
    (@ [$(#[$doc:meta])+] $field:ident $name:ident $value:ident: $given:ty => $new:expr) => {
        $(#[$doc])+
        #[must_use]
        pub fn $name(mut self, $value: $given) -> Self {
            self.$field = $new;
            self
        }
    };
}

pub(crate) use setters;
