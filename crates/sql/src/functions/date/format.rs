//! Writing a moment in a form that is given.
//!
//! | in the form     | is written                                   |
//! |-----------------|----------------------------------------------|
//! | `yyyy`          | the year, four digits                        |
//! | `y`, `yy`       | the year of its century                      |
//! | `M`, `MM`       | the month, with a zero before it if doubled  |
//! | `d`, `dd`       | the day of the month                         |
//! | `H`, `HH`       | the hour of the day, 0 to 23                 |
//! | `h`, `hh`       | the hour of the half day, 1 to 12            |
//! | `tt`            | `AM` or `PM`                                 |
//! | `m`, `mm`       | the minute                                   |
//! | `s`, `ss`       | the second                                   |
//! | `f` to `fffffff`| so many digits of the fraction of the second |
//! | `F` to `FFFFFFF`| the same without zeros at the end            |
//! | `\` and any     | that character                               |
//! | any other       | itself                                       |
//!
//! Longer runs of `y`, `M`, `d`, `f` and `F`, which elsewhere are names of months
//! and days, have no meaning here and make the result undefined.

use super::moment::{Moment, Shown};

/// Writes a moment; none if the form asks for something that is not known.
pub(super) fn write(moment: Moment, form: &str) -> Option<String> {
    let shown = moment.shown();
    let mut out = String::with_capacity(form.len());
    let mut rest = form.chars();
    while let Some(letter) = rest.next() {
        if letter == '\\' {
            out.push(rest.next()?);
            continue;
        }
        let mut length = 1;
        while rest.as_str().starts_with(letter) {
            rest.next();
            length += 1;
        }
        write_run(&shown, letter, length, &mut out)?;
    }
    Some(out)
}

/// Writes what a run of one letter stands for.
fn write_run(shown: &Shown, letter: char, length: usize, out: &mut String) -> Option<()> {
    match (letter, length) {
        ('y', 1 | 2) => padded(shown.year % 100, length, out),
        ('y', 4) => padded(shown.year, 4, out),
        ('M', 1 | 2) => padded(shown.month, length, out),
        ('d', 1 | 2) => padded(shown.day, length, out),
        ('H', _) => padded(shown.hour, length.min(2), out),
        ('h', _) => padded((shown.hour + 11) % 12 + 1, length.min(2), out),
        ('m', _) => padded(shown.minute, length.min(2), out),
        ('s', _) => padded(shown.second, length.min(2), out),
        ('t', 2) => out.push_str(if shown.hour < 12 { "AM" } else { "PM" }),
        ('f', 1..=7) => out.push_str(format!("{:07}", shown.fraction).get(..length)?),
        ('F', 1..=7) => {
            let digits = format!("{:07}", shown.fraction);
            out.push_str(digits.get(..length)?.trim_end_matches('0'));
        }
        ('y' | 'M' | 'd' | 'f' | 'F', _) => return None,
        _ => out.extend(std::iter::repeat_n(letter, length)),
    }
    Some(())
}

fn padded(number: i64, width: usize, out: &mut String) {
    out.push_str(&format!("{number:0width$}"));
}
