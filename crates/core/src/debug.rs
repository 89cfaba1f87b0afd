//! `Debug` of types some of whose fields cannot be shown, or must not be.

/// Implements `Debug` with these fields alone: `debug_fields!(Type { a, b })`, or with other values
/// `debug_fields!(Type |it| { a: it.a, count: it.list.len() })`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
    ($type:ident |$it:ident| { $($field:ident: $value:expr),* $(,)? }) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $it = self;
                f.debug_struct(stringify!($type))
                    $(.field(stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    };
}
