"""The vocabulary of the starter world: industries, places, brands, and how they are written in English."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """A sector word of company names, with its spaced pinyin and its translation."""

    chinese: str
    pinyin: str
    english: str


@dataclass(frozen=True)
class Industry:
    """An industry: how many companies it has, the words they use, and the range of their R&D to revenue."""

    id: int
    label: str
    size: int
    nouns: tuple[Noun, ...]
    research: tuple[float, float]


INDUSTRIES = (
    Industry(
        1,
        "医药制造业",
        28,
        (Noun("生物", "Sheng Wu", "Biotech"), Noun("药业", "Yao Ye", "Pharmaceutical")),
        (0.04, 0.16),
    ),
    Industry(
        2,
        "化学原料和化学制品制造业",
        16,
        (Noun("新材料", "Xin Cai Liao", "New Materials"), Noun("化工", "Hua Gong", "Chemical")),
        (0.01, 0.06),
    ),
    Industry(
        3,
        "软件和信息技术服务业",
        22,
        (Noun("软件", "Ruan Jian", "Software"), Noun("数据", "Shu Ju", "Data")),
        (0.06, 0.24),
    ),
    Industry(
        5,
        "专用设备制造业",
        38,
        (
            Noun("智能装备", "Zhi Neng Zhuang Bei", "Intelligent Equipment"),
            Noun("重工", "Zhong Gong", "Heavy Industry"),
        ),
        (0.03, 0.11),
    ),
    Industry(
        9,
        "电气机械和器材制造业",
        12,
        (Noun("电气", "Dian Qi", "Electric"), Noun("机电", "Ji Dian", "Electromechanical")),
        (0.02, 0.08),
    ),
    Industry(
        18,
        "通用设备制造业",
        32,
        (Noun("机械", "Ji Xie", "Machinery"), Noun("泵阀", "Beng Fa", "Pump and Valve")),
        (0.03, 0.1),
    ),
    Industry(
        23,
        "食品、饮料制造业",
        22,
        (Noun("食品", "Shi Pin", "Food"), Noun("饮品", "Yin Pin", "Beverage")),
        (0.004, 0.03),
    ),
    Industry(
        31,
        "电力、热力生产和供应业",
        10,
        (Noun("能源", "Neng Yuan", "Energy"), Noun("电力", "Dian Li", "Power")),
        (0.002, 0.02),
    ),
)

BRANDS = {
    "岑曜": "Cen Yao",
    "砚溪": "Yan Xi",
    "翊禾": "Yi He",
    "岫川": "Xiu Chuan",
    "棠屿": "Tang Yu",
    "溯光": "Su Guang",
    "霁原": "Ji Yuan",
    "峤牧": "Qiao Mu",
    "衡汀": "Heng Ting",
    "珩汀": "Heng Ting",
    "朔筠": "Shuo Yun",
    "沅铎": "Yuan Duo",
    "骁澜": "Xiao Lan",
    "昀柏": "Yun Bo",
    "漱石": "Shu Shi",
    "槐序": "Huai Xu",
    "苇航": "Wei Hang",
    "栖梧": "Qi Wu",
    "璟辰": "Jing Chen",
    "湛岳": "Zhan Yue",
    "菘蓝": "Song Lan",
    "曦垣": "Xi Yuan",
}
SYLLABLES = {"达": "Da", "盛": "Sheng", "润": "Run", "锐": "Rui", "恒": "Heng", "信": "Xin", "拓": "Tuo", "宁": "Ning"}

PROVINCES = {
    "广东省": (22, ("广州市", "深圳市", "佛山市")),
    "江苏省": (20, ("南京市", "苏州市", "无锡市")),
    "浙江省": (18, ("杭州市", "宁波市", "台州市")),
    "上海市": (12, ("上海市",)),
    "北京市": (12, ("北京市",)),
    "山东省": (14, ("济南市", "青岛市", "烟台市")),
    "四川省": (12, ("成都市", "绵阳市", "德阳市")),
    "湖北省": (9, ("武汉市", "宜昌市")),
    "陕西省": (6, ("西安市", "宝鸡市")),
    "内蒙古自治区": (3, ("呼和浩特市", "包头市")),
    "香港特别行政区": (4, ("香港",)),
    "贵州省": (0, ("贵阳市",)),
}
"""Weight in the draw of seats, and cities; a province of weight 0 has rows in the regional table, and no company."""

PRIVATE = "民营企业"
STATE_OWNED = ("地方国有企业", "中央国有企业", "国有企业（其他）", "国有企业（院所）")
OWNERSHIPS = (PRIVATE, *STATE_OWNED, "外资企业", "集体企业", "中外合资经营企业")
OWNERSHIP_WEIGHTS = (52, 16, 10, 5, 3, 7, 3, 4)

HONG_KONG = "港交所"
EXCHANGES = ("深交所", "上交所", "北交所", HONG_KONG)
EXCHANGE_WEIGHTS = (40, 36, 8, 16)
PLATES = {
    "深交所": ("主板", "创业板"),
    "上交所": ("主板", "科创板"),
    "北交所": ("北交所",),
    HONG_KONG: ("主板", "创业板"),
}
