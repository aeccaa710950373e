//! Days, months and years. The calendar is the Gregorian one in all times; year 0 is 1 BC.

use super::Date;
use crate::error::{Result, SqlError, SqlState};

/// Julian day of 2000-01-01.
pub const EPOCH_JULIAN: i32 = 2_451_545;
/// Days from 1970-01-01 to 2000-01-01.
pub const UNIX_EPOCH_DAYS: i32 = 10_957;
/// Days of 400 years.
pub const DAYS_PER_400_YEARS: i64 = 146_097;
/// 4714-11-24 BC, the first day there is.
pub const DAY_MIN: i32 = -EPOCH_JULIAN;
/// 5874898-01-01, exclusive: the end of dates.
pub const DAY_END: i32 = 2_147_483_494 - EPOCH_JULIAN;
/// 294277-01-01, exclusive: the end of instants.
pub const TIMESTAMP_DAY_END: i32 = 109_203_528 - EPOCH_JULIAN;

/// A day by its number in year and month.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Day {
    /// Astronomical: 0 is 1 BC, -1 is 2 BC.
    pub year: i32,
    /// 1 ..= 12
    pub month: i32,
    /// 1 ..= 31
    pub day: i32,
}

/// Whether the year has a 29th of February.
pub fn is_leap(year: i32) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Days of a month, 1 ..= 12.
pub fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + i32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Day {
    /// Days since 2000-01-01. The day need not exist: surplus days and months run over.
    pub fn number(self) -> i64 {
        // Years begin in March, so that the leap day is the last of its year.
        let months = i64::from(self.year) * 12 + i64::from(self.month) - 3;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
        let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        let in_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        // 0000-03-01 lies 730425 days before 2000-01-01.
        year * 365 + leaps + in_year - 730_425
    }

    /// The day of a number of days since 2000-01-01.
    pub fn of_number(number: i64) -> Self {
        let days = number + 730_425;
        let era = days.div_euclid(DAYS_PER_400_YEARS);
        let in_era = days.rem_euclid(DAYS_PER_400_YEARS);
        let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
        let in_year = in_era - (365 * year + year / 4 - year / 100);
        let month = (5 * in_year + 2) / 153;
        let day = in_year - (153 * month + 2) / 5 + 1;
        let (month, carry) = if month < 10 {
            (month + 3, 0)
        } else {
            (month - 9, 1)
        };
        Self {
            year: (year + era * 400 + carry) as i32,
            month: month as i32,
            day: day as i32,
        }
    }

    /// Whether the calendar has the day.
    pub fn is_real(self) -> bool {
        (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
    }
}

/// 0 for Sunday ..= 6 for Saturday.
pub fn weekday(number: i64) -> i32 {
    (number + 6).rem_euclid(7) as i32
}

/// Number of a day in its year, from 1.
pub fn day_of_year(day: Day) -> i32 {
    let first = Day {
        month: 1,
        day: 1,
        ..day
    };
    (day.number() - first.number()) as i32 + 1
}

/// Year and week of ISO 8601, in which a week belongs to the year of its Thursday.
pub fn iso_week(number: i64) -> (i32, i32) {
    let thursday = number - i64::from((weekday(number) + 6) % 7) + 3;
    let day = Day::of_number(thursday);
    (day.year, (day_of_year(day) - 1) / 7 + 1)
}

impl Date {
    /// The date of a day.
    ///
    /// # Errors
    /// 22008 if there is no such date.
    pub fn of_day(day: Day) -> Result<Self> {
        match i32::try_from(day.number()) {
            Ok(number) if (DAY_MIN..DAY_END).contains(&number) => Ok(Self(number)),
            _ => Err(SqlError::new(
                SqlState::DATETIME_OVERFLOW,
                "date out of range",
            )),
        }
    }

    /// Year, month and day of a finite date.
    pub fn day(self) -> Day {
        Day::of_number(i64::from(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_numbers_lead_to_each_other() {
        let at = |year, month, day| Day { year, month, day };
        assert_eq!(at(2000, 1, 1).number(), 0);
        assert_eq!(at(1970, 1, 1).number(), -i64::from(UNIX_EPOCH_DAYS));
        assert_eq!(at(-4713, 11, 24).number(), i64::from(DAY_MIN));
        assert_eq!(at(5_874_898, 1, 1).number(), i64::from(DAY_END));
        assert_eq!(at(294_277, 1, 1).number(), i64::from(TIMESTAMP_DAY_END));
        let mut expected = at(-4713, 11, 24);
        for number in i64::from(DAY_MIN)..800_000 {
            let day = Day::of_number(number);
            assert_eq!(day, expected);
            assert_eq!(day.number(), number);
            expected.day += 1;
            if !expected.is_real() {
                (expected.month, expected.day) = (expected.month + 1, 1);
            }
            if !expected.is_real() {
                (expected.year, expected.month) = (expected.year + 1, 1);
            }
        }
        assert_eq!(weekday(0), 6, "2000-01-01 was a Saturday");
        assert_eq!(iso_week(0), (1999, 52));
        assert_eq!(day_of_year(at(2000, 12, 31)), 366);
    }
}
