"""The bundled database: always the same bytes, the published shape, and tables that agree with one another."""

from __future__ import annotations

import csv
import statistics
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from starter_firms import DATABASE, ROOT, Firm, aliases, all_firms, rows_of

if TYPE_CHECKING:
    from pathlib import Path

GENERATOR = ROOT / "tests" / "data" / "make_starter_database.py"

FILES = {
    "bilingual_translation_english_chinese.json",
    "internal_metrics.csv",
    *(f"enterprise/company_profile{suffix}.csv" for suffix in ("", "_as", "_eu", "_na", "_oc")),
    "enterprise/company_core.csv",
    *(f"enterprise/company_operation_{suffix}.csv" for suffix in ("status", "status_detail", "yearly_status")),
    *(f"industry/national_industry_{suffix}.csv" for suffix in ("status", "status_detail", "yearly_status")),
    *(f"industry/regional_industry_{suffix}.csv" for suffix in ("status", "status_detail", "yearly_status")),
    "policy/policy_release_status.csv",
    "policy/policy_resource.csv",
}
METRICS = (
    "营业收入金额",
    "营业利润金额",
    "总负债",
    "政府奖励资金、补贴",
    "公司市值",
    "研发投入占比",
    "营业收入同比增减幅",
)


@pytest.fixture(scope="module")
def firms() -> list[Firm]:
    return all_firms()


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_generator_reproduces_the_database_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-B", str(GENERATOR), str(tmp_path)], check=True, timeout=60)

    made, kept = files_below(tmp_path), files_below(DATABASE)
    assert made.keys() == kept.keys()
    assert [name for name in made if made[name] != kept[name]] == []


def test_database_has_the_19_files_and_stays_small() -> None:
    kept = files_below(DATABASE)
    assert len(FILES) == 19
    assert kept.keys() == FILES
    assert sum(map(len, kept.values())) < 700_000


def test_headers_are_those_of_the_benchmark() -> None:
    operation = list(rows_of("enterprise/company_operation_status.csv")[0])
    assert len(operation) == len(set(operation)) == 51
    assert operation[:7] == ["企业名称", "bmCode", "year", "总资产", "净利润金额", "雇员总数", "营业收入金额"]
    profiles = {tuple(rows_of(name)[0]) for name in FILES if "company_profile" in name}
    assert [len(header) for header in profiles] == [29]
    assert list(rows_of("internal_metrics.csv")[0]) == ["id", "interal_knowladge"]
    release = (DATABASE / "policy/policy_release_status.csv").read_text(encoding="utf-8").splitlines()
    assert release[0] == '"id","industryId","industry","targetName","value","createTime","updateTime","year","province"'
    assert release[1].startswith('"1",,,"发布政策数量","42",')


@pytest.mark.parametrize("name", sorted(name for name in FILES if name.endswith(".csv")))
def test_csv_is_plain_utf8_and_rectangular(name: str) -> None:
    data = (DATABASE / name).read_bytes()
    assert not data.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in data
    with (DATABASE / name).open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    assert {len(line) for line in lines} == {len(lines[0])}
    assert not {"NULL", "NaN", "nan", "None", "-"} & {cell for line in lines for cell in line}


def test_companies_are_as_many_as_planned(firms: list[Firm]) -> None:
    assert len(firms) == len({f.name for f in firms}) == 180
    assert len({f.industry for f in firms}) == 8
    assert len({f.province for f in firms}) == 10


@pytest.mark.parametrize("metric", METRICS)
def test_regional_table_agrees_with_the_company_rows(firms: list[Firm], metric: str) -> None:
    rows = rows_of("industry/regional_industry_status.csv")
    assert len(rows) == 8 * 13
    for row in rows:
        inside = [f for f in firms if f.industry == row["行业"] and row["省份"] in ("全国", f.province)]
        assert int(row["企业总数"]) == len(inside)
        assert int(row["民营企业企业数量"] or 0) == sum(f.ownership == "民营企业" for f in inside)
        values = [float(f[metric]) for f in inside if f.has(metric)]
        if not values:
            assert row[f"{metric}中位数"] == ""
            continue
        figures = {"均值": statistics.fmean(values), "最大值": max(values), "中位数": statistics.median(values)}
        if f"{metric}合计" in row:
            figures["合计"] = sum(values)
        for name, value in figures.items():
            # From 10^11 the table shows six digits and an exponent.
            tolerance = 5e-6 * value if abs(value) >= 1e11 else 0.0051
            assert float(row[f"{metric}{name}"]) == pytest.approx(value, rel=0, abs=tolerance)


@pytest.mark.parametrize("metric", METRICS)
def test_national_table_agrees_with_the_company_rows(firms: list[Firm], metric: str) -> None:
    table = {row["targetName"]: row["value"] for row in rows_of("industry/national_industry_status.csv")}
    assert table["企业总数"] == "180"
    assert table["港交所企业数量"] == str(sum(f.exchange == "港交所" for f in firms))
    for industry, count in Counter(f.industry for f in firms).items():
        assert table[f"{industry}企业数量"] == str(count)
        values = [float(f[metric]) for f in firms if f.industry == industry and f.has(metric)]
        assert float(table[f"{industry}-{metric}最小值"]) == min(values)
        for name, value in (("均值", statistics.fmean(values)), ("中位数", statistics.median(values))):
            assert float(table[f"{industry}-{metric}{name}"]) == pytest.approx(value, rel=0, abs=0.0051)


def test_policy_counts_agree_with_the_policies() -> None:
    policies = rows_of("policy/policy_resource.csv")
    assert len(policies) == len({row["title"] for row in policies}) == 42
    for row in rows_of("policy/policy_release_status.csv"):
        scope = row["targetName"].removesuffix("政策数量").removesuffix("发布").split("-")[-1]
        matching = [
            p
            for p in policies
            if row["industry"] in ("", *p["industry"].split("；"))
            and row["province"] in ("", p["province"])
            and scope in ("", row["industry"], p["province"], p["policyClassification"], *p["issueAuthor"].split("，"))
        ]
        assert len(matching) == int(row["value"]), row["targetName"]


def test_friction_is_there(firms: list[Firm]) -> None:
    profiles = rows_of("enterprise/company_profile.csv")
    codes = {row["bmCode"] for row in profiles}
    assert sum(row["isResult"] == "0" for row in profiles) >= 3
    assert all(codes & {row["bmCode"] for row in rows_of(name)} for name in FILES if "company_profile_" in name)
    assert any(not f.has("政府奖励资金、补贴") for f in firms)
    assert min(f["政府奖励资金、补贴"] for f in firms if f.has("政府奖励资金、补贴")) < 0
    assert max(f["研发投入占比"] for f in firms if f.has("研发投入占比")) > 10_000
    authors = {author for row in rows_of("policy/policy_resource.csv") for author in row["issueAuthor"].split("，")}
    assert {"工业和信息化部", "工信部"} <= authors


def test_an_english_name_means_one_company() -> None:
    english = [alias for names in aliases().values() for alias in names]
    assert len(english) == len(set(english))
