//! Sums of money that do not depend on the order of addition.

/// An amount in millionths of a millionth of a US dollar.
///
/// A token costs some millionths of a dollar. Whole numbers give the same sum in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Money(u128);

const UNIT: f64 = 1e12;

impl Money {
    /// Returns the amount nearest to this many dollars, or `None` if that is negative or not finite.
    pub(crate) fn of_usd(usd: f64) -> Option<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is a number and not negative, and what is too large saturates"
        )]
        (usd.is_finite() && usd >= 0.0).then(|| Self((usd * UNIT).round() as u128))
    }

    /// Returns the amount in dollars.
    #[expect(clippy::cast_precision_loss, reason = "to 16 digits")]
    pub(crate) fn usd(self) -> f64 {
        self.0 as f64 / UNIT
    }

    /// Returns the sum.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
