"""The companies of the starter world and their figures for 2022."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from starter_world import words

if TYPE_CHECKING:
    import random

Figures: TypeAlias = "dict[str, float | None]"

AWARDS = (
    "国家科技进步类奖项数",
    "国家技术发明类奖项数",
    "国家级专利奖项数",
    "省级科技进步类奖项数",
    "省级技术发明类奖项数",
    "省级专利奖项数",
    "行业协会科技奖项数",
    "国家级质量奖项数",
    "省级质量奖项数",
)
FIGURE_COLUMNS = (
    "总资产",
    "净利润金额",
    "雇员总数",
    "营业收入金额",
    "资产负债率",
    "研发投入金额",
    "营业收入同比增减幅",
    "营业利润金额",
    "营业利润同比增减幅",
    "净利润同比增减幅",
    "研发投入同比增减幅",
    "研发投入占比",
    "研发投入占比增减幅",
    "资本化研发投入",
    "资本化研发投入同比增减幅",
    "研发人员数量",
    "研发人员数量同比增减幅",
    "雇员同比增减幅",
    "政府奖励资金、补贴",
    "公司市值",
    "累计中国专利申请数",
    "累计PCT专利申请数",
    "累计中国发明专利授权数",
    "累计中国发明专利失效数",
    "累计PCT发明专利失效数",
    "当年中国专利申请数",
    "当年PCT专利申请数",
    "当年中国发明专利申请数",
    "当年中国发明专利授权数",
    "当年PCT发明专利申请数",
    "当年中国发明专利失效数",
    "研发人员占比",
    *AWARDS,
    "总负债",
    "累计所有专利被引用数",
    "累计核心专利被引次数",
    "累计中国发明专利申请数",
    "累计PCT发明专利申请数",
    "参与起草国家标准",
    "参与起草行业标准",
)
"""With name, bmCode and year before them: the 51 columns of company_operation_status.csv."""

ALWAYS_BLANK = ("累计核心专利被引次数", "累计PCT发明专利失效数")


@dataclass
class Company:
    """A listed company; `listing_code` is the bmCode of its second, Hong Kong, row where it is listed twice."""

    code: int
    name: str
    aliases: tuple[str, ...]
    industry: words.Industry
    province: str
    city: str
    exchange: str
    plate: str
    ownership: str
    founded: str
    listed: str
    delisted: str
    figures: Figures
    listing_code: int | None = None


def make_companies(rng: random.Random) -> list[Company]:
    """Draw all companies, sorted by bmCode, with the outliers and double listings that the tasks rely on."""
    codes = rng.sample(range(100_000, 1_000_000), 220)
    taken: set[str] = set()
    companies = [
        _company(rng, codes.pop(), industry, taken) for industry in words.INDUSTRIES for _ in range(industry.size)
    ]
    _plant_outliers(companies)
    twice = [c for c in companies if c.exchange in ("上交所", "深交所")][5::31]
    for company in twice:
        company.listing_code = codes.pop()
    return sorted(companies, key=lambda company: company.code)


def date(rng: random.Random, first: int, last: int) -> str:
    """Draw a day of the years `first` to `last`, written d/m/yyyy without padding."""
    return f"{rng.randint(1, 28)}/{rng.randint(1, 12)}/{rng.randint(first, last)}"


def _company(rng: random.Random, code: int, industry: words.Industry, taken: set[str]) -> Company:
    name, aliases = _name(rng, industry, taken)
    provinces = list(words.PROVINCES)
    province = rng.choices(provinces, [words.PROVINCES[p][0] for p in provinces])[0]
    exchange = rng.choices(words.EXCHANGES, words.EXCHANGE_WEIGHTS)[0]
    ownership = rng.choices(words.OWNERSHIPS, words.OWNERSHIP_WEIGHTS)[0]
    if province == "香港特别行政区":
        exchange, ownership = words.HONG_KONG, rng.choice((words.PRIVATE, "外资企业"))
    hong_kong = exchange == words.HONG_KONG
    return Company(
        code=code,
        name=name,
        aliases=aliases,
        industry=industry,
        province=province,
        city=rng.choice(words.PROVINCES[province][1]),
        exchange=exchange,
        plate=rng.choice(words.PLATES[exchange]),
        ownership=ownership,
        founded="" if hong_kong else date(rng, 1985, 2008),
        listed=date(rng, 1997, 2021),
        delisted=date(rng, 2024, 2025) if rng.random() < 0.03 else "",
        figures=_figures(rng, industry, hong_kong=hong_kong, private=ownership == words.PRIVATE),
    )


def _name(rng: random.Random, industry: words.Industry, taken: set[str]) -> tuple[str, tuple[str, ...]]:
    while True:
        brand, syllable = rng.choice(list(words.BRANDS)), rng.choice(list(words.SYLLABLES))
        # One name in ten speaks of a business that is not the company's industry.
        spoken = rng.choice(words.INDUSTRIES) if rng.random() < 0.1 else industry
        noun = rng.choice(spoken.nouns)
        pinyin = f"{words.BRANDS[brand]} {words.SYLLABLES[syllable]}"
        joined = words.BRANDS[brand].title().replace(" ", "").capitalize()
        aliases = (
            f"{joined} {words.SYLLABLES[syllable]} {noun.english} Company",
            f"{pinyin} {noun.pinyin} Co., Ltd.",
            f"{joined}{words.SYLLABLES[syllable].lower()} {noun.english} Joint Stock Co., Ltd.",
        )
        # Homophones would give two companies one alias, which no question could then resolve.
        if taken.isdisjoint(aliases):
            taken.update(aliases)
            return f"{brand}{syllable}{noun.chinese}公司", aliases[: rng.choice((1, 2, 2, 3))]


def _figures(rng: random.Random, industry: words.Industry, *, hong_kong: bool, private: bool) -> Figures:
    revenue = round(rng.uniform(1, 10) * rng.choice((10**8, 10**8, 10**9, 10**9, 10**9, 10**10)), 2)
    assets = round(revenue * rng.uniform(0.8, 3), 2)
    debts = round(assets * rng.uniform(0.15, 0.8), 2)
    operating = round(revenue * rng.uniform(-0.06, 0.16), 2)
    staff = max(45, int(revenue / rng.uniform(600_000, 2_500_000)))
    researchers = max(3, int(staff * rng.uniform(0.04, 0.35)))
    low, high = industry.research
    intensity = rng.uniform(low, high)
    research = round(revenue * intensity, 2)
    # Growth follows research in private companies, and hardly in the others.
    pull = (intensity - 0.06) * (230 if private else 70)
    figures: Figures = {
        "总资产": assets,
        "净利润金额": round(operating * (rng.uniform(0.7, 0.95) if operating > 0 else rng.uniform(1, 1.15)), 2),
        "雇员总数": float(staff),
        "营业收入金额": revenue,
        "资产负债率": round(debts / assets * 100, 2),
        "研发投入金额": research,
        "营业收入同比增减幅": round(7 + pull + rng.uniform(-20, 22), 2),
        "营业利润金额": operating,
        "研发投入占比": round(research / revenue * 100, 2),
        "研发投入占比增减幅": round(rng.uniform(-1.5, 1.8), 2),
        "资本化研发投入": round(research * rng.uniform(0.02, 0.3), 2),
        "研发人员数量": float(researchers),
        "政府奖励资金、补贴": round(revenue * rng.uniform(0.0005, 0.03), 2),
        "公司市值": round(revenue / 10**8 * rng.uniform(0.6, 5), 2),
        "研发人员占比": round(researchers / staff * 100, 2),
        "总负债": debts,
    }
    figures |= {
        c: round(rng.uniform(-35, 45), 2) for c in FIGURE_COLUMNS if c.endswith("同比增减幅") and c not in figures
    }
    figures |= _patents(rng, int(20 + intensity * 1500))
    figures |= {c: float(rng.randint(1, 4)) if rng.random() < 0.12 else None for c in AWARDS}
    _blank_some(rng, figures, hong_kong=hong_kong)
    return {column: figures[column] for column in FIGURE_COLUMNS}


def _patents(rng: random.Random, scale: int) -> Figures:
    applied, world = rng.randint(scale, scale * 3), rng.randint(1, scale // 8)
    inventions = int(applied * rng.uniform(0.3, 0.6))
    granted = int(inventions * rng.uniform(0.3, 0.7))
    counts = {
        "累计中国专利申请数": applied,
        "累计PCT专利申请数": world,
        "累计中国发明专利授权数": granted,
        "累计中国发明专利失效数": granted // 9,
        "当年中国专利申请数": applied // rng.randint(5, 12),
        "当年PCT专利申请数": world // 4,
        "当年中国发明专利申请数": inventions // rng.randint(6, 12),
        "当年中国发明专利授权数": granted // rng.randint(6, 12),
        "当年PCT发明专利申请数": world // 5,
        "当年中国发明专利失效数": granted // 60,
        "累计所有专利被引用数": applied * rng.randint(1, 6),
        "累计中国发明专利申请数": inventions,
        "累计PCT发明专利申请数": world - world // 6,
        "参与起草国家标准": rng.randint(0, 9),
        "参与起草行业标准": rng.randint(0, 7),
    }
    # A company without a patent or standard leaves the field blank; it never writes 0.
    return {name: float(count) if count else None for name, count in counts.items()} | dict.fromkeys(ALWAYS_BLANK)


def _blank_some(rng: random.Random, figures: Figures, *, hong_kong: bool) -> None:
    if hong_kong or rng.random() < 0.05:
        figures["政府奖励资金、补贴"] = None
    if rng.random() < (0.3 if hong_kong else 0.07):
        for column in figures:
            if column.startswith(("研发投入", "资本化研发投入", "研发人员")):
                figures[column] = None
    if rng.random() < 0.5:
        figures["资本化研发投入"] = figures["资本化研发投入同比增减幅"] = None
    for column in ("营业收入同比增减幅", "公司市值", "营业利润金额"):
        if rng.random() < 0.06:
            figures[column] = None


def _plant_outliers(companies: list[Company]) -> None:
    def first(label: str, province: str) -> Figures:
        return next(c.figures for c in companies if c.industry.label == label and c.province == province)

    tiny = first("医药制造业", "江苏省")
    tiny |= {
        "营业收入金额": 18400.0,
        "研发投入金额": 8_731_220.5,
        "研发投入占比": 47452.29,
        "营业收入同比增减幅": -99.81,
    }
    tiny |= {"营业利润金额": -9_120_344.18, "净利润金额": -9_204_871.6}
    first("通用设备制造业", "江苏省")["营业收入同比增减幅"] = 2917.36
    first("通用设备制造业", "浙江省")["营业利润同比增减幅"] = -8734.21
    first("食品、饮料制造业", "山东省")["政府奖励资金、补贴"] = -2_315_400.0
    overpaid = first("软件和信息技术服务业", "广东省")
    assets = overpaid["总资产"] or 1.0
    overpaid |= {"总负债": -41_200_000.0, "资产负债率": round(-41_200_000.0 / assets * 100, 2)}
