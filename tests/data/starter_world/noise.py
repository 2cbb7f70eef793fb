"""Tables that look useful and are not, the in-house definitions, and the bilingual map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starter_world import words

if TYPE_CHECKING:
    import random

    from starter_world.companies import Company
    from starter_world.policies import Policy
    from starter_world.tables import Cell, Row

OPERATION_DETAIL_HEADER = ["id", "bmCode", "企业名称", "year", "targetName", "targetUnit", "value"]
NATIONAL_DETAIL_HEADER = ["id", "industryId", "industry", "year", "targetName", "targetUnit", "value"]
REGIONAL_DETAIL_HEADER = ["id", "province", "industryId", "industry", "year", "targetName", "targetUnit", "value"]

REGIONS = {
    "as": (("日本", "新加坡", ""), ("Tokyo", "Osaka", "Singapore"), ("TSE", "SGX")),
    "eu": (("德国", "英国", "法国"), ("Bavaria", "Kent", "Normandy"), ("XETRA", "LSE")),
    "na": (("美国", "加拿大"), ("Ontario", "Ohio", "Oregon"), ("NYSE", "NASDAQ", "TSX")),
    "oc": (("澳大利亚",), ("Victoria", "New South Wales"), ("ASX",)),
}
BATCH = "23/3/2026 09:32:16"


def foreign_profiles(rng: random.Random, companies: list[Company]) -> dict[str, list[Row]]:
    """Return 24 rows per region; every third bmCode is that of a domestic company, which has nothing to do with it."""
    places = [place for _, provinces, _ in REGIONS.values() for place in provinces]
    exchanges = [exchange for _, _, names in REGIONS.values() for exchange in names]
    tables: dict[str, list[Row]] = {}
    number = 0
    for region, (countries, _, _) in REGIONS.items():
        rows: list[Row] = []
        for i in range(24):
            number += 1
            code = rng.choice(companies).code if i % 3 == 0 else rng.choice((number * 7, 600_000 + number * 31))
            noun = rng.choice(rng.choice(words.INDUSTRIES).nouns).chinese
            name = f"{rng.choice(list(words.BRANDS))}{rng.choice(list(words.SYLLABLES))}{noun}控股公司"
            sector = rng.choice(("房地产", "电子", "汽车", "家用电器", "零售"))
            head: Row = (number, 2022, code, "国外", name, "", "", "", "", "", 0, 0, "", "", sector, "")
            place: Row = (rng.choice(places), rng.choice(places), "", rng.choice(exchanges), "Growth", "", 0, 1)
            rows.append((*head, *place, rng.choice(countries), 0, 0, BATCH, BATCH))
        tables[region] = rows
    return tables


def operation_detail(rng: random.Random, companies: list[Company]) -> list[Row]:
    """Return quarterly series of 45 companies, in 万元; the quarters do not add up to the audited year."""
    rows: list[Row] = []
    for c in rng.sample(companies, 45):
        for quarter in (1, 2, 3, 4):
            value = (c.figures["营业收入金额"] or 0) / 10_000 * rng.uniform(0.18, 0.29)
            target = f"营业收入金额:当季值（2022年第{quarter}季度）"
            rows.append((len(rows) + 1, c.code, c.name, 2022, target, "万元", value))
    return rows


def operation_yearly(rng: random.Random, companies: list[Company]) -> list[Row]:
    """Return yearly series from 2022 back to 2019; those of 2022 are early estimates, and not marked as such."""
    rows: list[Row] = []
    for c in rng.sample(companies, 60):
        for metric in ("营业收入金额", "研发投入金额"):
            value = c.figures[metric]
            for year in (2022, 2021, 2020, 2019):
                if value is not None and rng.random() < 0.9:
                    value *= rng.uniform(0.84, 1.06)
                    row: Row = (len(rows) + 1, c.code, c.name, year, f"{metric}（年度）", "元", round(value, 2))
                    rows.append(row)
    return rows


def national_detail(rng: random.Random) -> list[Row]:
    """Return monthly and daily series in the lexical order of their names, with some rows twice."""
    monthly = (
        ("全社会货运量:当月值", "万吨", 40_000),
        ("机床产量:当月值", "台", 5_000),
        ("工业用电量:当月值", "亿千瓦时", 4_000),
    )
    rows: list[tuple[str, str, float]] = []
    for name, unit, size in monthly:
        rows += [
            (f"{name}（2022年{m}月）", unit, size * rng.uniform(0.8, 1.2)) for m in range(1, 13) if rng.random() < 0.9
        ]
    rows += [(f"沿海集装箱运价指数:日值（2022年1月{d}日）", "", rng.uniform(900, 1400)) for d in range(1, 31, 2)]
    rows += rng.sample(rows, 6)
    return [(n, None, None, 2022, *row) for n, row in enumerate(sorted(rows, key=lambda row: row[0]), 1)]


def national_yearly(rng: random.Random) -> list[Row]:
    """Return "annual" series: 2022 stops in May, and sums, means and last values stand side by side."""
    rows: list[Row] = []
    industry = words.INDUSTRIES[-1]
    for year in range(2022, 2014, -1):
        share = 0.42 if year == 2022 else 1.0
        for name, unit, size in (("货运总量", "亿吨", 480), ("机床产量", "万台", 62), ("港口拥堵指数", "", 71)):
            rows.append(
                (len(rows) + 1, None, None, year, f"{name}（年度）", unit, size * share * rng.uniform(0.8, 1.1))
            )
        value: Cell = 8300 * share * rng.uniform(0.8, 1.0)
        rows.append((len(rows) + 1, industry.id, industry.label, year, "热力供应量（年度）", "万吉焦", value))
    return rows


def regional_detail(rng: random.Random) -> list[Row]:
    """Return daily home sales of four cities from 2020 to 2022."""
    rows: list[Row] = []
    cities = (("上海市", "上海"), ("北京市", "北京"), ("广东省", "广州"), ("广东省", "深圳"))
    for province, city in cities:
        for year in (2020, 2021, 2022):
            for day in range(1, 29, 3):
                target = f"商品房:成交面积:{city}（{year}年1月{day}日）"
                value = round(rng.uniform(0.4, 7.5), 2)
                rows.append((len(rows) + 1, province, None, None, year, target, "万平方米", value))
    return rows


def regional_yearly(detail: list[Row]) -> list[Row]:
    """Return the daily rows again, sorted by value, each dated 2022: nothing in them is annual."""
    ordered = sorted(detail, key=lambda row: float(str(row[7])))
    return [(*row[:4], 2022, *row[5:]) for row in ordered]


METRICS = (
    "CRn concentration ratio: combined revenue of the n largest companies of an industry over the industry's revenue.",
    "行业集中度CRn：行业内营业收入排名前n的企业收入之和 / 行业营业收入合计。",
    "HHI: add up the squares of all companies' revenue shares, the shares as fractions, and multiply by 10000.",
    "赫芬达尔指数HHI：各企业收入份额（小数）的平方和 × 10000。",
    "Net margin: net profit over operating revenue, x 100.",
    "Profit margin: total operating profit over total operating revenue.",
    "利润率：营业利润合计 / 营业收入合计，不乘100。",
    "Subsidy utilisation efficiency: revenue sum / subsidy sum, of companies with both figures and a subsidy above 0.",
    "补贴利用效率：一组企业的营业收入之和 / 政府补贴之和；任一数据缺失或补贴不大于零的企业，两个和都不计入。",
    "R&D intensity of a group: R&D investment sum over revenue sum, x 100, of the companies that report both.",
    "Enterprise count: profile rows with isResult = 1; a second listing of the same company is not counted again.",
    "企业数量：只统计 isResult 为 1 的企业，两地上市的第二条记录不重复计入。",
    "State-owned: every ownership whose label contains 国有企业.",
    "人均营业收入：营业收入金额 / 雇员总数，单位为元/人。",
    "人均市值（元/人）：公司市值的单位是亿元，先乘100000000，再除以雇员总数。",
)


def internal_metrics() -> list[Row]:
    """Return the in-house definitions; two of them define a margin differently."""
    return list(enumerate(METRICS, 1))


def bilingual(rng: random.Random, companies: list[Company], policies: list[Policy]) -> dict[str, dict[str, object]]:
    """Return the bilingual map: about half of the companies, some policies, all in no useful order."""
    chosen = [c for c in companies if rng.random() < 0.55]
    rng.shuffle(chosen)
    company_items: dict[str, object] = {
        c.name: c.aliases[0] if len(c.aliases) == 1 else list(c.aliases) for c in chosen
    }
    policy_items: dict[str, object] = {p.title: p.english for p in policies if "智能产线" in p.title}
    policy_items |= {p.title: p.english for p in rng.sample(policies, 10)}
    return {"company_items": company_items, "policy_items": policy_items}
