"""Write the starter database, the same bytes every time: `python make_starter_database.py TARGET`.

Every company, policy and number in it is invented. The national, regional and policy-count tables are derived from
the company rows and the policies, so that they agree; see `starter_world/` for what is awkward in it on purpose.
"""

from __future__ import annotations

import csv
import json
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from starter_world import noise, policies, tables
from starter_world.companies import FIGURE_COLUMNS, make_companies

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SEED = 20220731


def write_database(target: Path) -> None:
    """Write the 19 files below `target`, which is made if need be."""
    rng = random.Random(SEED)
    companies = make_companies(rng)
    laws = policies.make_policies(rng)

    enterprise = target / "enterprise"
    _write(enterprise / "company_profile.csv", tables.PROFILE_HEADER, tables.profile(companies))
    for region, rows in noise.foreign_profiles(rng, companies).items():
        _write(enterprise / f"company_profile_{region}.csv", tables.PROFILE_HEADER, rows)
    header = ["企业名称", "bmCode", "year", *FIGURE_COLUMNS]
    _write(enterprise / "company_operation_status.csv", header, tables.operation(companies))
    header = ["id", "bmCode", "year", "hasRun", "bmCoreVieContent", "isDelete", "createTime", "updateTime"]
    _write(enterprise / "company_core.csv", header, tables.core(rng, companies))
    header = noise.OPERATION_DETAIL_HEADER
    _write(enterprise / "company_operation_status_detail.csv", header, noise.operation_detail(rng, companies))
    _write(enterprise / "company_operation_yearly_status.csv", header, noise.operation_yearly(rng, companies))

    industry = target / "industry"
    header = ["id", "industryId", "industry", "targetName", "targetUnit", "value", "createTime", "updateTime", "year"]
    _write(industry / "national_industry_status.csv", header, tables.national(companies))
    header = ["行业", "省份", *tables.statistics_header()]
    _write(industry / "regional_industry_status.csv", header, tables.regional(companies))
    _write(industry / "national_industry_status_detail.csv", noise.NATIONAL_DETAIL_HEADER, noise.national_detail(rng))
    _write(industry / "national_industry_yearly_status.csv", noise.NATIONAL_DETAIL_HEADER, noise.national_yearly(rng))
    detail = noise.regional_detail(rng)
    _write(industry / "regional_industry_status_detail.csv", noise.REGIONAL_DETAIL_HEADER, detail)
    header = noise.REGIONAL_DETAIL_HEADER
    _write(industry / "regional_industry_yearly_status.csv", header, noise.regional_yearly(detail))

    policy = target / "policy"
    _write(policy / "policy_resource.csv", policies.RESOURCE_HEADER, policies.resource(rng, laws))
    _write_quoted(policy / "policy_release_status.csv", policies.RELEASE_HEADER, policies.release(laws))

    _write(target / "internal_metrics.csv", ["id", "interal_knowladge"], noise.internal_metrics())
    bilingual = json.dumps(noise.bilingual(rng, companies, laws), ensure_ascii=False, indent=2)
    (target / "bilingual_translation_english_chinese.json").write_bytes(bilingual.encode() + b"\n")


def _write(path: Path, header: list[str], rows: Iterable[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _write_quoted(path: Path, header: list[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV that quotes every value and leaves a missing one bare, which the csv module cannot do before 3.12."""
    lines = [header, *rows]
    text = "".join(",".join("" if cell is None else f'"{cell}"' for cell in line) + "\n" for line in lines)
    path.write_bytes(text.encode())


if __name__ == "__main__":
    write_database(Path(sys.argv[1]))
