"""Drives claude-agent-sdk with the fake CLI. The environment and the output are those of main.rs."""

import asyncio
import json
import os
import time

from claude_agent_sdk import ClaudeAgentOptions, query
from claude_agent_sdk.types import StreamEvent

TIMED = "COMPARE_TIMES" in os.environ


async def main():
    options = ClaudeAgentOptions(cli_path=os.environ["COMPARE_AGENT"], include_partial_messages=True)
    for _ in range(int(os.environ["COMPARE_RUNS"])):
        start, lines, times = time.monotonic(), 0, [] if TIMED else None
        async for message in query(prompt="x", options=options):
            if isinstance(message, StreamEvent) and message.event.get("delta", {}).get("type") == "text_delta":
                if TIMED:
                    times.append(time.monotonic_ns() - int(message.event["delta"]["text"]))
                lines += 1
        print(json.dumps({"ms": (time.monotonic() - start) * 1000, "lines": lines, "times": times}))


asyncio.run(main())
