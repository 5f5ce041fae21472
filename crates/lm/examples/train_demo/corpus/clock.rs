//! The running date and time of a text.

const MONTHS: &[(&str, u32)] = &[
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
];

const SEASONS: [&str; 4] = ["winter", "spring", "summer", "autumn"];
const DAYS_OF_YEAR: u32 = 365;
const MINUTES_OF_DAY: u32 = 24 * 60;

/// A date and a time of day that only move forward. Leap days do not exist here.
pub struct Clock {
    start_year: u32,
    year: u32,
    day: u32,
    minute: u32,
}

impl Clock {
    pub fn new(year: u32, day: u32, minute: u32) -> Self {
        Self { start_year: year, year, day, minute }
    }

    pub fn add_days(&mut self, days: u32) {
        let total = self.day + days;
        self.year += total / DAYS_OF_YEAR;
        self.day = total % DAYS_OF_YEAR;
    }

    /// Moves on by `years`, to the given day of that year.
    pub fn add_years(&mut self, years: u32, day: u32) {
        self.year += years;
        self.day = if years == 0 { self.day.max(day) } else { day };
    }

    /// Moves on to `years` after the start, or not at all if that is past.
    pub fn reach(&mut self, years: u32, day: u32) {
        self.add_years((self.start_year + years).saturating_sub(self.year), day);
    }

    /// Moves on within the day; the last minute of the day is as far as it goes.
    pub fn add_minutes(&mut self, minutes: u32) {
        self.minute = (self.minute + minutes).min(MINUTES_OF_DAY - 1);
    }

    pub fn year(&self) -> u32 {
        self.year
    }

    pub fn years_passed(&self) -> u32 {
        self.year - self.start_year
    }

    /// Day and month, such as "14 March".
    pub fn date(&self) -> String {
        let (month, day) = self.month_and_day();
        format!("{day} {month}")
    }

    /// Day, month and year.
    pub fn full_date(&self) -> String {
        format!("{} {}", self.date(), self.year)
    }

    /// The time of day, such as "7:45 am".
    pub fn time(&self) -> String {
        let hour = self.minute / 60;
        let half = if hour < 12 { "am" } else { "pm" };
        let shown = if hour.is_multiple_of(12) { 12 } else { hour % 12 };
        format!("{shown}:{:02} {half}", self.minute % 60)
    }

    /// The northern season, counted from December, so that it agrees with the date.
    pub fn season(&self) -> &'static str {
        let month = MONTHS.iter().position(|(name, _)| *name == self.month_and_day().0).unwrap_or(0);
        SEASONS[(month + 1) % 12 / 3]
    }

    fn month_and_day(&self) -> (&'static str, u32) {
        let mut left = self.day;
        for &(name, length) in MONTHS {
            if left < length {
                return (name, left + 1);
            }
            left -= length;
        }
        ("December", 31)
    }
}
