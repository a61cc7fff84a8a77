//! Doubles as plans have them.

/// A double in 15 digits if these tell it, else in 17: `0.33`, `1e+16`.
pub(super) fn digits(value: f64) -> String {
    let short = format!("{value:.14e}");
    let exact = short.parse() == Ok(value);
    let text = if exact { short } else { format!("{value:.16e}") };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let most = if exact { 15 } else { 17 };
    if (-4..most).contains(&exponent) {
        let places = usize::try_from(most - 1 - exponent).unwrap_or_default();
        return without_zeros(&format!("{value:.places$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.unsigned_abs())
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_in_plans() {
        for (value, text) in [
            (0.33, "0.33"),
            (-0.005_676_387_343_555_689, "-0.0056763873435556889"),
            (-1.797_69e308, "-1.79769e+308"),
            (1e15, "1e+15"),
            (123_456.5, "123456.5"),
            (1_234_567_890_123_456.5, "1234567890123456.5"),
            (2.0, "2"),
            (-0.0, "-0"),
            (0.000_1, "0.0001"),
            (0.000_01, "1e-05"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(digits(value), text);
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }
}
