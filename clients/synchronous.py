#!/usr/bin/env python3
"""Makes the blocking client for Python from the one for asyncio: they differ in a few words only.

    clients/synchronous.py            writes python/src/teamster_client/sync.py
    clients/synchronous.py --check    exit code 1 if it is not what this would write
"""

import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "python/src/teamster_client"
WORDS = [
    ('"""The client for asyncio."""', '"""The blocking client. Made from aio.py by clients/synchronous.py: do not edit."""'),
    ("import asyncio\n", ""),
    ("from collections.abc import AsyncGenerator", "from collections.abc import Generator"),
    ("from contextlib import aclosing, asynccontextmanager", "from contextlib import closing, contextmanager"),
    ("@asynccontextmanager", "@contextmanager"),
    ("asyncio.sleep", "time.sleep"),
    ("aclosing(", "closing("),
    ("httpx.AsyncClient", "httpx.Client"),
]
PATTERNS = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Teamster|Run|Session|Turn)\b", r"\1"),
    (r"\bAsyncGenerator\[(.+), None\]", r"Generator[\1, None, None]"),
    (r"\b__a(enter|exit|iter)__", r"__\1__"),
    (r"\ba(close|read|iter_bytes)\(", r"\1("),
]


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    text = (SOURCE / "aio.py").read_text(encoding="utf-8")
    for old, new in WORDS:
        text = text.replace(old, new)
    for pattern, new in PATTERNS:
        text = re.sub(pattern, new, text)
    target = SOURCE / "sync.py"
    if not check:
        target.write_text(text, encoding="utf-8")
    elif not target.exists() or target.read_text(encoding="utf-8") != text:
        sys.exit("clients/synchronous.py: sync.py is not made from aio.py as it is: run clients/synchronous.py")


main()
