//! Sizes.

use super::plural;

/// Formats a number of bytes as `512 bytes`, `1.2 KiB`, `45 MiB` or `3.1 GiB`.
pub(crate) fn bytes(n: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| n >> shift > 0) {
        None => plural(n, "byte"),
        Some((shift, unit)) => {
            let tenths = (n >> (shift - 10)).saturating_mul(10) >> 10;
            if tenths < 100 {
                format!("{}.{} {unit}", tenths / 10, tenths % 10)
            } else {
                format!("{} {unit}", tenths / 10)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_fits() {
        let sizes = [
            0,
            1,
            1023,
            1024,
            1536,
            10 << 10,
            (1 << 20) - 1,
            5 << 20,
            3 << 30,
        ];
        let texts = sizes.map(bytes);
        assert_eq!(
            texts,
            [
                "0 bytes",
                "1 byte",
                "1023 bytes",
                "1.0 KiB",
                "1.5 KiB",
                "10 KiB",
                "1023 KiB",
                "5.0 MiB",
                "3.0 GiB"
            ]
        );
    }
}
