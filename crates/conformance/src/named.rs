//! Enums whose values have a name and a description, as a page lists them.

/// Defines such an enum: each value with its name and its description.
macro_rules! named {
    ($(#[$attribute:meta])* $type:ident { $($variant:ident $name:literal $description:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum $type {
            $($variant,)*
        }

        impl $type {
            pub(crate) const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            pub(crate) fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $description,)*
                }
            }
        }
    };
}

pub(crate) use named;
