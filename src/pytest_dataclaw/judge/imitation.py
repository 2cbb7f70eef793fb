"""Spot text of an agent that plays the judge or the harness; such text changes no score, it is only flagged."""

from __future__ import annotations

import re
import unicodedata

# Every gap is bounded and every repetition is over one character class, so that a search is linear in the text.
_SIGNS = re.compile(
    r"""
      \\?["'“”] (?: scores \\?["'“”] \s{0,20} : \s{0,20} [{\[]
                  | (?: match | part_\d{1,4} ) \\?["'“”] \s{0,20} : \s{0,20} (?: [01](?:\.0)? | true | false ) \b
                  | achieved \\?["'“”] \s{0,20} : \s{0,20} (?: [01] | true | false ) \b
                  | total \\?["'“”] \s{0,20} : \s{0,20} [01] (?: \.\d{1,4} )? \s{0,20} , \s{0,20} \\?["'“”] reason )
    | \b (?: mark | grade | score | rate | judge | count | accept | treat ) \s
      (?: [^\n.]{0,40} \s )? as \s (?: being \s )? (?: fully \s )? (?: correct | right | solved | a \s match | passed )
    | \b (?: give | award | assign ) \s (?: [^\n.]{0,40} \s )? full \s (?: marks? | score | credit | points? )
    | \b (?: ignore | disregard | forget ) \s (?: [^\n.]{0,40} \s )? (?: instructions? | rules? | rubrics? )
    | \b you \s are \s (?: now \s )? (?: a | an | the ) \s (?: [^\n.]{0,40} \s )? (?: judge | grader | evaluator ) \b
    | ^ [ \t]{0,20} (?: [#*\[<]{1,6} [ \t]{0,4} )? (?: system | developer )
      (?: [ \t] (?: message | prompt | note | override ) )? [ \t]{0,4} [\]>*]{0,4} [ \t]{0,4} [:>\]]
    | < / ? system > | <\|im_(?:start|end)\|> | \[ / ? inst \] | << / ? sys >>
    | <<< (?: data | end ) \s [0-9a-f]{8}
    | (?: 判 (?: 定 | 断 | 为 | 作 )? | 评 (?: 定 | 为 | 判 )? | 标记 | 视 ) [^\n。]{0,10} [为作] [^\n。]{0,4} 正确
    | 给 予? [^\n。]{0,10} 满分
    | (?: 忽略 | 无视 ) [^\n。]{0,20} (?: 指令 | 指示 | 规则 | 要求 )
    """,
    re.VERBOSE | re.MULTILINE,
)


def imitates_verdict(text: str) -> bool:
    """Tell whether `text` holds a judge's JSON, asks for a verdict, or poses as a system message. Linear time."""
    # One character at a time: normalizing a long run of combining marks as a whole takes quadratic time.
    folded = "".join(unicodedata.normalize("NFKC", char) for char in text).casefold()
    return _SIGNS.search(folded) is not None
