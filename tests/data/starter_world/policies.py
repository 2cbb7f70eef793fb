"""The policies of the starter world, and the table of counts that is derived from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starter_world import words
from starter_world.tables import CHANGED, MADE, Row

if TYPE_CHECKING:
    import random

RESOURCE_HEADER = [
    "id",
    "title",
    "content",
    "clearContent",
    "summary",
    "attachmentList",
    "originalUrl",
    "writtenDate",
    "publishDate",
    "policyClassification",
    "province",
    "city",
    "area",
    "issueAuthor",
    "createTime",
    "updateTime",
    "isDelete",
    "machineSummary",
    "industry",
]
RELEASE_HEADER = ["id", "industryId", "industry", "targetName", "value", "createTime", "updateTime", "year", "province"]

MINISTRY, COUNCIL, LOCAL = "部委政策", "国务院政策", "地方政策"

MINISTRIES = (
    ("工业和信息化部", "工信部"),
    ("国家发展改革委", "国家发展和改革委员会"),
    ("科技部", "科学技术部"),
)
"""Bodies with the two names that each is written by; the database counts the names apart."""

LOCAL_BODIES = (
    ("人民政府办公厅", "政府办公厅"),
    ("发展和改革委员会", "发展改革委"),
    ("工业和信息化厅", "工信厅"),
    ("科学技术厅", "科技厅"),
)

AIMS = {
    "数字化车间改造": "Digital Workshop Retrofitting",
    "首台套装备应用": "First-of-a-Kind Equipment Adoption",
    "绿色工艺替代": "Green Process Substitution",
    "中小企业研发协作": "Joint Research of Small and Medium-Sized Enterprises",
    "产业链备份布局": "Supply Chain Back-up Siting",
    "检验检测能力提升": "Testing and Inspection Capacity",
    "技能人才引育": "Recruitment and Training of Skilled Staff",
    "节能降耗诊断": "Energy-Saving Diagnosis",
}
KINDS = {"若干措施": "Certain Measures on", "实施细则": "Detailed Rules for", "行动计划": "Action Plan for"}
PROVINCES_ENGLISH = {
    "广东省": "Guangdong",
    "江苏省": "Jiangsu",
    "浙江省": "Zhejiang",
    "上海市": "Shanghai",
    "北京市": "Beijing",
    "山东省": "Shandong",
    "四川省": "Sichuan",
    "湖北省": "Hubei",
    "陕西省": "Shaanxi",
    "内蒙古自治区": "Inner Mongolia",
    "贵州省": "Guizhou",
}

OPENINGS = (
    "为帮助相关企业稳住订单、补齐短板，现就{aim}有关事项安排如下。",
    "围绕{aim}，结合前期调研中企业反映的困难，制定本文件。",
    "本文件面向正常经营、依法纳税的企业，旨在以可核验的方式推进{aim}。",
)
MEASURES = (
    "对列入年度清单的项目，按设备投入的{low}%给予补助，单个企业最高{cap}万元。",
    "设立联络员制度，企业提出的用地、用能问题应在{days}个工作日内答复。",
    "支持企业与院校共建试验平台，平台开放时间每年不少于{hours}小时。",
    "鼓励金融机构提供设备更新贷款，贴息期限不超过{years}年。",
    "对首次购置自主产品的用户单位，按合同金额的{low}%给予一次性奖励。",
    "每年评选示范企业不超过{count}家，评选结果公示{days}个工作日。",
    "企业申报材料实行线上提交，同一材料不得要求重复提供。",
    "建立项目台账，对连续{years}年未达到目标的企业停止支持。",
)
CLOSINGS = (
    "本文件自印发之日起施行，有效期{years}年，由印发单位负责解释。",
    "各地可根据实际细化办法，执行情况每半年报送一次。",
)


@dataclass(frozen=True)
class Policy:
    """A policy; `province` is "" for a national one, `note` stands in the HTML text alone."""

    title: str
    english: str
    classification: str
    province: str
    authors: tuple[str, ...]
    industries: tuple[str, ...]
    paragraphs: tuple[str, ...]
    written: str
    published: str
    note: str = ""


SHOWCASE = (
    ("江苏省", ("通用设备制造业", "专用设备制造业", "医药制造业"), "关于培育智能产线示范企业的若干措施"),
    ("浙江省", ("医药制造业", "食品、饮料制造业"), "关于培育智能产线示范企业的若干措施（试行）"),
    ("广东省", ("专用设备制造业", "电气机械和器材制造业"), "关于培育智能产线重点企业的若干措施"),
)
"""Three titles that differ in a word: whoever searches for one by a part of it finds all."""


def make_policies(rng: random.Random) -> list[Policy]:
    """Draw 42 policies: 3 of the State Council, 11 of ministries, 28 local ones; titles are unique."""
    policies: list[Policy] = []
    plan = [COUNCIL] * 3 + [MINISTRY] * 11 + [LOCAL] * 25
    for classification in plan:
        policies.append(_draw(rng, classification, {p.title for p in policies}))
    for province, industries, title in SHOWCASE:
        english = f"{PROVINCES_ENGLISH[province]}: Certain Measures on Model Enterprises with Smart Production Lines"
        authors = (province + LOCAL_BODIES[2][0],)
        policies.append(_policy(rng, title, english, LOCAL, province, authors, industries, "智能产线建设"))
    rng.shuffle(policies)
    return policies


def _draw(rng: random.Random, classification: str, taken: set[str]) -> Policy:
    labels = [industry.label for industry in words.INDUSTRIES]
    weights = [industry.size for industry in words.INDUSTRIES]
    while True:
        aim, kind = rng.choice(list(AIMS)), rng.choice(list(KINDS))
        industries = tuple(dict.fromkeys(rng.choices(labels, weights, k=rng.choice((1, 2, 2, 3)))))
        province, place = "", "National"
        if classification == LOCAL:
            names = [name for name in words.PROVINCES if name in PROVINCES_ENGLISH]
            province = rng.choices(names, [words.PROVINCES[name][0] + 2 for name in names])[0]
            place = PROVINCES_ENGLISH[province]
            body = province + rng.choice(rng.choice(LOCAL_BODIES))
            title = f"{province}{aim}{kind}"
            authors: tuple[str, ...] = (body,)
        else:
            first, second = rng.sample(MINISTRIES, 2)
            body = "国务院办公厅" if classification == COUNCIL else rng.choice(first)
            joint = classification == MINISTRY and rng.random() < 0.4
            authors = (body, rng.choice(second)) if joint else (body,)
            title = f"《推进{aim}{kind}》" if rng.random() < 0.4 else f"关于印发《推进{aim}{kind}》的通知"
        if title not in taken:
            english = f"{place}: {KINDS[kind]} {AIMS[aim]}"
            return _policy(rng, title, english, classification, province, authors, industries, aim)


def _policy(
    rng: random.Random,
    title: str,
    english: str,
    classification: str,
    province: str,
    authors: tuple[str, ...],
    industries: tuple[str, ...],
    aim: str,
) -> Policy:
    numbers = {
        "aim": aim,
        "low": rng.randint(4, 18),
        "cap": rng.choice((80, 150, 260, 400)),
        "days": rng.randint(3, 12),
        "hours": rng.choice((300, 450, 600)),
        "years": rng.randint(2, 5),
        "count": rng.randint(10, 40),
    }
    texts = (rng.choice(OPENINGS), *rng.sample(MEASURES, 4), rng.choice(CLOSINGS))
    day, month = rng.randint(1, 14), rng.randint(1, 12)
    note = f"备注：入选企业另可一次性申领{rng.randint(12, 48) * 10000}元。" if rng.random() < 0.15 else ""
    written, published = f"{day}/{month}/2022", f"{day + rng.randint(1, 14)}/{month}/2022"
    paragraphs = tuple(text.format(**numbers) for text in texts)
    return Policy(title, english, classification, province, authors, industries, paragraphs, written, published, note)


def resource(rng: random.Random, policies: list[Policy]) -> list[Row]:
    """Return the rows of policy_resource.csv; the texts are the same but for what HTML and clipping do to them."""
    rows: list[Row] = []
    for number, policy in enumerate(policies, 1):
        lines = [*policy.paragraphs, policy.note] if policy.note else list(policy.paragraphs)
        html = "\n".join(f'<p style="text-indent: 2em;">&nbsp;&nbsp;{line}</p>' for line in lines)
        plain = "\n\n".join(policy.paragraphs)
        url = f"http://policy.example/{2022000 + number}.html"
        file = [{"url": url.replace(".html", ".pdf"), "fileName": "附件.pdf"}] if rng.random() < 0.3 else {}
        shuffled = rng.sample(policy.paragraphs, len(policy.paragraphs))
        text: Row = (number, policy.title, html, plain, plain[:60], json.dumps(file, ensure_ascii=False), url)
        origin: Row = (policy.written, policy.published, policy.classification, policy.province, "", "")
        rows.append(
            (
                *text,
                *origin,
                "，".join(policy.authors),
                MADE,
                CHANGED,
                0,
                ";".join(shuffled),
                "；".join(policy.industries),
            )
        )
    return rows


def release(policies: list[Policy]) -> list[Row]:
    """Return the rows of policy_release_status.csv: counts by body, class, industry and province; no zero rows."""
    rows: list[Row] = []

    def add(target: str, matching: list[Policy], industry: words.Industry | None = None, province: str = "") -> None:
        if matching:
            label = (industry.id, industry.label) if industry else (None, None)
            rows.append((len(rows) + 1, *label, target, len(matching), MADE, MADE, 2022, province or None))

    def of_class(group: list[Policy], classification: str) -> list[Policy]:
        return [p for p in group if p.classification == classification]

    add("发布政策数量", policies)
    for classification in (COUNCIL, LOCAL, MINISTRY):
        add(f"{classification}政策数量", of_class(policies, classification))
    for body in dict.fromkeys(author for p in policies for author in p.authors):
        add(f"{body}发布政策数量", [p for p in policies if body in p.authors])
    for province in words.PROVINCES:
        add(f"{province}发布政策数量", [p for p in policies if p.province == province], province=province)
    for industry in words.INDUSTRIES:
        label = industry.label
        group = [p for p in policies if label in p.industries]
        add(f"{label}发布政策数量", group, industry)
        for classification in (COUNCIL, LOCAL, MINISTRY):
            add(f"{label}-{classification}政策数量", of_class(group, classification), industry)
        for province in words.PROVINCES:
            local = [p for p in group if p.province == province]
            add(f"{label}-{province}发布政策数量", local, industry, province)
    return rows
