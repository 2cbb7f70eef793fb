"""The company tables, and the national and regional tables that are derived from them."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, TypeAlias

from starter_world import words
from starter_world.companies import AWARDS, FIGURE_COLUMNS, Company

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

Cell: TypeAlias = "str | int | float | None"
Row: TypeAlias = "Sequence[Cell]"

PROFILE_HEADER = [
    "id",
    "year",
    "bmCode",
    "companyType",
    "bmCompanyName",
    "completedDate",
    "listingDate",
    "delistingDate",
    "industryId",
    "secondIndustryId",
    "firstClassificationId",
    "secondClassificationId",
    "secondClassification",
    "firstClassification",
    "secondIndustry",
    "industry",
    "province",
    "city",
    "area",
    "exchange",
    "plate",
    "ownership",
    "multipleList",
    "isResult",
    "country",
    "isDelete",
    "companyStatusType",
    "createTime",
    "updateTime",
]

AMOUNTS = {
    "营业收入金额": "元",
    "营业利润金额": "元",
    "净利润金额": "元",
    "总资产": "元",
    "总负债": "元",
    "研发投入金额": "元",
    "政府奖励资金、补贴": "元",
    "雇员总数": "人",
    "研发人员数量": "人",
    "公司市值": "",
}
"""Metrics with a sum, and their unit; market value is in 亿元 and the database does not say so."""

RATIOS = ("资产负债率", "研发投入占比", "营业收入同比增减幅", "研发人员占比")
STATISTICS = ("合计", "均值", "最大值", "最小值", "中位数")
MADE, CHANGED = "12/9/2025 10:26:23", "16/9/2025 9:04:51"


def profile(companies: list[Company]) -> list[Row]:
    """Return the rows of company_profile.csv: one a company, and one more (isResult 0) for a second listing."""
    rows: list[Row] = []
    for c in companies:
        rows.append(_profile_row(len(rows) + 1, c, c.code, c.exchange, c.plate, is_result=1))
        if c.listing_code is not None:
            rows.append(_profile_row(len(rows) + 1, c, c.listing_code, words.HONG_KONG, "主板", is_result=0))
    return rows


def _profile_row(number: int, c: Company, code: int, exchange: str, plate: str, *, is_result: int) -> Row:
    hong_kong = exchange == words.HONG_KONG
    kind, label = ("港股" if hong_kong else "沪深"), c.industry.label
    country = "中国香港" if c.province == "香港特别行政区" else "中国"
    twice = int(c.listing_code is not None)
    head: Row = (number, 2022, code, kind, c.name, "" if hong_kong else c.founded, c.listed, c.delisted)
    place: Row = (c.industry.id, 0, 0, 0, "", "", label, label, c.province, c.city, "无", exchange, plate, c.ownership)
    return (*head, *place, twice, is_result, country, 0, 0, MADE, CHANGED)


def operation(companies: list[Company]) -> list[Row]:
    """Return the rows of company_operation_status.csv, sorted by bmCode."""
    return [(c.name, c.code, 2022, *(c.figures[column] for column in FIGURE_COLUMNS)) for c in companies]


def core(rng: random.Random, companies: list[Company]) -> list[Row]:
    """Return the rows of company_core.csv: a passage on each company's strengths, as if cut out of a PDF."""
    rows: list[Row] = []
    for number, c in enumerate(companies, 4101):
        field = c.industry.label.removesuffix("制造业")
        texts = rng.sample(STRENGTHS, 3)
        parts = [f"{i}、{text.format(name=c.name, field=field, city=c.city)}" for i, text in enumerate(texts, 1)]
        page = f" 2022年年度报告全文 {rng.randint(9, 44)} "
        passage = f"{c.name}    三、核心竞争力分析 {parts[0]}{page}{parts[1]} {parts[2]}"
        rows.append((number, c.code, 2022, 1, passage, 0, MADE, CHANGED))
    return rows


STRENGTHS = (
    "工艺 {name}在{field}领域自建中试线，新配方从立项到量产平均 不足十四个月。",
    "渠道 {name}以{city}为中心设有三个服务站，重点客户的备件可在两天内送达。",
    "人才 公司实行导师制，技术骨干中半数以上 由内部培养，近三年核心人员未有流失。",
    "质量 {name}对每批产品留样五年，客户投诉在四十八小时内 给出书面答复。",
    "成本 通过余热回收与集中采购，单位产品能耗连续 三年下降。",
    "协作 {name}与{city}的两所院校共建实验室，共享检测设备和?据。",
    "品牌 在{field}的细分市场中，老客户复购占订单的大部分。",
    "数字化 车间排产、仓储和售后已接入同一平台，{name}据此缩短了交付周期。",
)


def statistics_header() -> list[str]:
    """Return the metric columns that the national and the regional table share."""
    joint = [f"{o}-{e}企业数量" for o in words.OWNERSHIPS for e in words.EXCHANGES]
    sums = [f"{m}{s}" for m in AMOUNTS for s in STATISTICS]
    ratios = [f"{m}{s}" for m in RATIOS for s in STATISTICS[1:]]
    awards = [f"{a}合计" for a in AWARDS]
    return ["企业总数", *(f"{o}企业数量" for o in words.OWNERSHIPS), *joint, *sums, *ratios, *awards]


def statistics_of(companies: Iterable[Company]) -> dict[str, Cell]:
    """Return the shared metric columns for a group of companies; None where there is nothing to count."""
    group = list(companies)
    cells: dict[str, Cell] = {"企业总数": len(group)}
    for o in words.OWNERSHIPS:
        cells[f"{o}企业数量"] = sum(c.ownership == o for c in group) or None
        for e in words.EXCHANGES:
            cells[f"{o}-{e}企业数量"] = sum(c.ownership == o and c.exchange == e for c in group) or None
    for metric in (*AMOUNTS, *RATIOS):
        values = [v for c in group if (v := c.figures[metric]) is not None]
        cells |= {f"{metric}{s}": None for s in STATISTICS} if not values else _five(metric, values)
    for award in AWARDS:
        cells[f"{award}合计"] = sum(int(c.figures[award] or 0) for c in group)
    return {column: cells[column] for column in statistics_header()}


def _five(metric: str, values: list[float]) -> dict[str, Cell]:
    # fsum: the built-in sum of floats differs in its last digit between Python versions.
    total = math.fsum(values)
    figures = (total, total / len(values), max(values), min(values), statistics.median(values))
    return {f"{metric}{name}": round(value, 2) for name, value in zip(STATISTICS, figures, strict=True)}


def regional(companies: list[Company]) -> list[Row]:
    """Return the rows of regional_industry_status.csv (wide); each industry begins with a national aggregate."""
    rows: list[Row] = []
    for industry in words.INDUSTRIES:
        members = [c for c in companies if c.industry is industry]
        for province in ("全国", *words.PROVINCES):
            group = members if province == "全国" else [c for c in members if c.province == province]
            rows.append((industry.label, province, *map(_spreadsheet, statistics_of(group).values())))
    return rows


def _spreadsheet(cell: Cell) -> Cell:
    """Write sums from 10^11 as a spreadsheet shows them: six digits and an exponent."""
    return f"{cell:.5E}" if isinstance(cell, float) and cell >= 1e11 else cell


def national(companies: list[Company]) -> list[Row]:
    """Return the rows of national_industry_status.csv (long): the indicator's name carries industry and statistic."""
    rows: list[Row] = []

    def add(industry_id: int, industry: str, target: str, unit: str, value: Cell) -> None:
        if value is not None:
            rows.append((len(rows) + 1, industry_id, industry, target, unit, value, MADE, MADE, 2022))

    add(0, "全行业", "企业总数", "", len(companies))
    for exchange in words.EXCHANGES:
        add(0, "全行业", f"{exchange}企业数量", "", sum(c.exchange == exchange for c in companies))
    for industry in words.INDUSTRIES:
        label = industry.label
        for column, value in statistics_of(c for c in companies if c.industry is industry).items():
            target = f"{label}企业数量" if column == "企业总数" else f"{label}-{column}"
            add(industry.id, label, target, _unit(column), value)
    return rows


def _unit(column: str) -> str:
    metric = next((m for m in (*AMOUNTS, *RATIOS) if column.startswith(m)), "")
    return "%" if metric in RATIOS else AMOUNTS.get(metric, "")
