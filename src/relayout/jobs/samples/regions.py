"""Counties and figures about them; every value is computed from names alone, so content never differs.

The names and codes of the counties are real, all figures are invented.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator

COUNTIES = (
    ("01001", "Autauga", "AL"),
    ("01003", "Baldwin", "AL"),
    ("01073", "Jefferson", "AL"),
    ("04013", "Maricopa", "AZ"),
    ("06001", "Alameda", "CA"),
    ("06037", "Los Angeles", "CA"),
    ("06075", "San Francisco", "CA"),
    ("06085", "Santa Clara", "CA"),
    ("08031", "Denver", "CO"),
    ("12086", "Miami-Dade", "FL"),
    ("17031", "Cook", "IL"),
    ("36047", "Kings", "NY"),
    ("36061", "New York", "NY"),
    ("48201", "Harris", "TX"),
    ("48453", "Travis", "TX"),
    ("53033", "King", "WA"),
)
INCOME_LINES = {
    "CAINC1": ((1, "Personal income"), (2, "Population"), (3, "Per capita personal income")),
    "CAINC4": ((45, "Proprietors' income"), (47, "Employer contributions"), (50, "Wages and salaries")),
}
INDUSTRIES = ("construction", "education", "manufacturing")
INCOME_YEARS = range(2019, 2024)
EMPLOYMENT_YEARS = range(2022, 2024)


def figure(*names: object, low: int, high: int) -> int:
    """A number in `low <= n < high` that depends on the names alone."""
    text = "/".join(map(str, names))
    return low + zlib.crc32(text.encode()) % (high - low)


def sample_sources() -> Iterator[tuple[str, str]]:
    """Path and text of every sample file: JSON with the year in its name, CSV in hive folders, one plain CSV."""
    for year in INCOME_YEARS:
        for table in INCOME_LINES:
            yield f"downloads/regional_income/{table}_{year}_county.json", _income(table, year)
    for year in EMPLOYMENT_YEARS:
        for quarter in range(1, 5):
            yield f"downloads/employment/year={year}/quarter={quarter}/employment.csv", _employment(year, quarter)
    yield "downloads/counties.csv", _counties()


def _income(table: str, year: int) -> str:
    rows = [
        {
            "geo_fips": fips,
            "geo_name": f"{name}, {state}",
            "table_name": table,
            "line_code": code,
            "description": description,
            "value": figure(fips, code, low=40_000, high=90_000)
            + 1_500 * (year - 2019)
            + figure(fips, year, low=0, high=900),
        }
        for fips, name, state in COUNTIES
        for code, description in INCOME_LINES[table]
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def _employment(year: int, quarter: int) -> str:
    lines = ["geo_fips,industry,employed,wages_usd"]
    for fips, _, _ in COUNTIES:
        for industry in INDUSTRIES:
            employed = figure(fips, industry, year, quarter, low=900, high=60_000)
            wage = figure(fips, industry, low=9_000, high=19_000) + 400 * (year - 2022)
            lines.append(f"{fips},{industry},{employed},{employed * wage}")
    return "\n".join(lines) + "\n"


def _counties() -> str:
    lines = ["geo_fips,geo_name,state,area_km2"]
    for fips, name, state in COUNTIES:
        lines.append(f"{fips},{name},{state},{figure(fips, 'area', low=120, high=24_000)}")
    return "\n".join(lines) + "\n"
