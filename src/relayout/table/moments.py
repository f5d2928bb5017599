"""Calendar arithmetic on Iceberg's counts: days, micro- and nanoseconds since 1970, also before it and far beyond.

Python's own dates end at the years 1 and 9999; what manifests hold does not.
"""

from __future__ import annotations

DAY_HOURS = 24
_ERA_DAYS = 146_097
"""Days in 400 years, after which the calendar repeats."""

_EPOCH = 719_468
"""Days from the first of March of year 0 to 1970."""

UNITS_PER_HOUR = {
    "timestamp": 3_600_000_000,
    "timestamptz": 3_600_000_000,
    "timestamp_ns": 3_600_000_000_000,
    "timestamptz_ns": 3_600_000_000_000,
}
"""Types that count moments, and how much they count in an hour."""


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day count (an algorithm by Howard Hinnant, on years that begin in March)."""
    era, of_era = divmod(days + _EPOCH, _ERA_DAYS)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + 400 * era + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def day_count(year: int, month: int, day: int) -> int:
    """Days since 1970; the other way round than `civil`."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * _ERA_DAYS + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _EPOCH


def hours_of(value: int, kind: str) -> int:
    """Whole hours since 1970 of a date or a moment."""
    return value * DAY_HOURS if kind == "date" else value // UNITS_PER_HOUR[kind]


def from_hours(hours: int, kind: str) -> int:
    """The first value of that hour."""
    return hours // DAY_HOURS if kind == "date" else hours * UNITS_PER_HOUR[kind]


def period_of(value: int, kind: str, period: str) -> int:
    """Years, months, days or hours since 1970, as Iceberg's transforms count them."""
    hours = hours_of(value, kind)
    if period == "hour":
        return hours
    days = hours // DAY_HOURS
    if period == "day":
        return days
    year, month, _ = civil(days)
    return year - 1970 if period == "year" else (year - 1970) * 12 + month - 1


def period_start(count: int, kind: str, period: str) -> int:
    """The first value of the type that lies in the period."""
    match period:
        case "hour":
            return from_hours(count, kind)
        case "day":
            days = count
        case "month":
            days = day_count(1970 + count // 12, count % 12 + 1, 1)
        case _:
            days = day_count(1970 + count, 1, 1)
    return from_hours(days * DAY_HOURS, kind)
