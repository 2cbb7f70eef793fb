"""The province-level divisions of China under the names that data, questions and agents use for them."""

from __future__ import annotations

_PROVINCES = {
    "河北": "Hebei", "山西": "Shanxi", "辽宁": "Liaoning", "吉林": "Jilin", "黑龙江": "Heilongjiang", "江苏": "Jiangsu",
    "浙江": "Zhejiang", "安徽": "Anhui", "福建": "Fujian", "江西": "Jiangxi", "山东": "Shandong", "河南": "Henan",
    "湖北": "Hubei", "湖南": "Hunan", "广东": "Guangdong", "海南": "Hainan", "四川": "Sichuan", "贵州": "Guizhou",
    "云南": "Yunnan", "陕西": "Shaanxi", "甘肃": "Gansu", "青海": "Qinghai", "台湾": "Taiwan",
}  # fmt: skip
_MUNICIPALITIES = {"北京": "Beijing", "天津": "Tianjin", "上海": "Shanghai", "重庆": "Chongqing"}
_REGIONS = {
    ("内蒙古", "内蒙古自治区"): ("Inner Mongolia", "Inner Mongolia Autonomous Region", "Neimenggu", "Nei Mongol"),
    ("广西", "广西壮族自治区"): ("Guangxi", "Guangxi Zhuang Autonomous Region", "Guangxi Autonomous Region"),
    ("西藏", "西藏自治区"): ("Tibet", "Tibet Autonomous Region", "Xizang", "Xizang Autonomous Region"),
    ("宁夏", "宁夏回族自治区"): ("Ningxia", "Ningxia Hui Autonomous Region", "Ningxia Autonomous Region"),
    ("新疆", "新疆维吾尔自治区"): (
        "Xinjiang", "Xinjiang Uygur Autonomous Region", "Xinjiang Uyghur Autonomous Region",
        "Xinjiang Autonomous Region",
    ),
}  # fmt: skip
_SARS = {"香港": ("Hong Kong",), "澳门": ("Macau", "Macao")}

PROVINCE_NAMES: tuple[frozenset[str], ...] = (
    *(frozenset({zh, f"{zh}省", en, f"{en} Province"}) for zh, en in _PROVINCES.items()),
    *(
        frozenset({zh, f"{zh}市", en, f"{en} Municipality", f"{en} City", f"{en} Province"})
        for zh, en in _MUNICIPALITIES.items()
    ),
    *(frozenset({*zh, *en, f"{en[0]} Province"}) for zh, en in _REGIONS.items()),
    *(
        frozenset({zh, f"中国{zh}", f"{zh}特别行政区"}).union(
            *({en, f"{en} SAR", f"{en} Special Administrative Region", f"{en}, China"} for en in names)
        )
        for zh, names in _SARS.items()
    ),
)
"""One set of names for each division."""
