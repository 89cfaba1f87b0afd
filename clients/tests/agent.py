#!/usr/bin/env python3
"""A Claude Code of a few lines, for the tests of the page and of the clients. What it prints is made by hand after
recorded conversations. The first word of the prompt decides what it does."""

import json
import os
import re
import subprocess
import sys
import time

SESSION = f"session-{os.getpid()}"
PACE = float(os.environ.get("AGENT_PACE", "0"))
MODEL = os.environ.get("AGENT_MODEL", "claude-opus-4-8")
HOSTILE = "</pre><img src=x onerror=\"window.hacked=1\"><script>window.hacked=2</script><svg onload=window.hacked=3>"


def emit(kind, **fields):
    print(json.dumps({"type": kind, "session_id": SESSION, **fields}), flush=True)


def message(*blocks, message_id=None):
    message.number += 1
    emit("assistant", message={"id": message_id or f"m{message.number}", "role": "assistant", "content": list(blocks)})
    time.sleep(PACE)


message.number = 0


def text(content):
    message({"type": "text", "text": content})


def thinking(content):
    message({"type": "thinking", "thinking": content})


def tool(name, tool_input, output=None, error=False):
    tool.number += 1
    tool_id = f"toolu_{tool.number}"
    message({"type": "tool_use", "id": tool_id, "name": name, "input": tool_input})
    if output is not None:
        result(tool_id, output, error)
    return tool_id


tool.number = 0


def result(tool_id, output, error=False):
    block = {"type": "tool_result", "tool_use_id": tool_id, "content": output, "is_error": error}
    emit("user", message={"role": "user", "content": [block]})
    time.sleep(PACE)


def lines():
    for line in iter(sys.stdin.readline, ""):
        yield json.loads(line)


INPUT = lines()
ASKS = any("--permission-prompt-tool" in word for word in sys.argv)


def ask(name, tool_input, tool_id):
    """Asks for permission; whether it was given, and why not."""
    if not ASKS:
        return False, "nothing is asked here"
    ask.number += 1
    request = {"subtype": "can_use_tool", "tool_name": name, "input": tool_input, "tool_use_id": tool_id}
    print(json.dumps({"type": "control_request", "request_id": f"q{ask.number}", "request": request}), flush=True)
    for line in INPUT:
        if line.get("type") == "control_response":
            decision = line["response"]["response"]
            return decision.get("behavior") == "allow", decision.get("message", "")
        control(line)
    sys.exit(0)


ask.number = 0


def control(line):
    """Answers a request of the caller; whether it was to interrupt the turn."""
    if line.get("type") != "control_request":
        return False
    subtype = line["request"]["subtype"]
    response = {"subtype": "success", "request_id": line["request_id"], "response": {}}
    print(json.dumps({"type": "control_response", "response": response}), flush=True)
    if subtype == "interrupt":
        done("", "error_during_execution", is_error=True, reason="aborted_streaming")
    elif subtype == "end_session":
        sys.exit(0)
    return subtype == "interrupt"


def hear(line):
    """A prompt, or what is said in the turn in progress."""
    content = line["message"]["content"]
    prompt = content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
    print(json.dumps({"type": "user", "message": {"role": "user", "content": prompt}, "session_id": SESSION,
                      "uuid": line.get("uuid"), "isReplay": True}), flush=True)
    return prompt


def done(answer, subtype="success", is_error=False, reason="completed", cost=0.0421):
    usage = {"input_tokens": 1840, "output_tokens": 912, "cache_read_input_tokens": 41200, "cache_creation_input_tokens": 2100}
    emit("result", subtype=subtype, is_error=is_error, num_turns=max(1, message.number), result=answer, total_cost_usd=cost,
         usage=usage, terminal_reason=reason)


def say(answer, **rest):
    text(answer)
    done(answer, **rest)


def play_ask(_):
    command = {"command": "cargo nextest run --workspace", "description": "Run all tests"}
    text("I run the tests first.")
    tool_id = tool("Bash", command)
    allowed, why = ask("Bash", command, tool_id)
    result(tool_id, "12 tests passed" if allowed else f"denied: {why}", not allowed)
    say("allowed" if allowed else f"denied: {why}")


def play_disguise(_):
    """A command that is shown as another one: by the order of its letters, by nothing between them, by no space."""
    command = {"command": "cat \u202etxt.ssap\u202c \u2066# \u2069\u200bnotes\xa0x\x1b[8m\r; rm -r \U000e0041",
               "description": "می\u200cخواهم \u2764\ufe0f re\u200dad\u202e it"}
    allowed, _why = ask("Ba\u200dsh", command, tool("Ba\u200dsh", command))
    say("allowed" if allowed else "denied")


def play_question(_):
    """A question of an MCP server, with a form."""
    schema = {"type": "object", "required": ["name", "count"], "properties": {
        "name": {"type": "string", "title": "Name", "description": "As it is in Cargo.toml"},
        "count": {"type": "integer", "title": "How many", "minimum": 1},
        "kind": {"type": "string", "title": "Kind", "enum": ["lib", "bin"]},
        "publish": {"type": "boolean", "title": "Publish it"},
    }}
    request = {"subtype": "elicitation", "mcp_server_name": "crates", "message": "Which crate?", "mode": "form", "requested_schema": schema}
    print(json.dumps({"type": "control_request", "request_id": "e1", "request": request}), flush=True)
    for line in INPUT:
        if line.get("type") == "control_response":
            say(json.dumps(line["response"]["response"], sort_keys=True))
            return
        control(line)


def play_wait(_):
    text("I wait for something.")
    for line in INPUT:
        if control(line):
            return
        if line.get("type") == "user":
            say(f"heard: {hear(line)}")
            return


def play_count(words):
    """`count 100 0.01`: so many pieces of text, so far apart in seconds."""
    number, pause = int(words[1]), float(words[2])
    for i in range(1, number + 1):
        message({"type": "text", "text": f"piece {i}\n"}, message_id=f"piece{i}")
        time.sleep(pause)
    done("counted")


def play_many(words):
    """`many 50000`: so many entries, of texts, tools and their results, in one write each thousand."""
    number = int(words[1])
    out = []
    for i in range(number // 3):
        tool_id = f"toolu_many{i}"
        blocks = [{"type": "text", "text": f"Step {i}: **look** at `file_{i}`\n\n- one\n- two\n"},
                  {"type": "tool_use", "id": tool_id, "name": "Read", "input": {"file_path": f"{os.getcwd()}/src/file_{i}.rs"}}]
        for message_id, block in zip((f"t{i}", f"u{i}"), blocks):
            out.append({"type": "assistant", "session_id": SESSION, "message": {"id": message_id, "role": "assistant", "content": [block]}})
        block = {"type": "tool_result", "tool_use_id": tool_id, "content": f"line {i}\n" * 5}
        out.append({"type": "user", "session_id": SESSION, "message": {"role": "user", "content": [block]}})
        if i % 1000 == 999:
            print("\n".join(map(json.dumps, out)), flush=True)
            out = []
    if out:
        print("\n".join(map(json.dumps, out)), flush=True)
    done("many")


def play_hostile(_):
    thinking(HOSTILE)
    text(f"{HOSTILE}\n\n```html\n{HOSTILE}\n```\n**{HOSTILE}** `{HOSTILE}` [x](javascript:window.hacked=4)")
    tool(HOSTILE, {"command": HOSTILE, HOSTILE: HOSTILE}, HOSTILE)
    tool("Bash", {"command": HOSTILE}, HOSTILE, error=True)
    tool("TodoWrite", {"todos": [{"content": HOSTILE, "status": "in_progress", "activeForm": HOSTILE}]}, "ok")
    tool("Write", {"file_path": f"/tmp/{HOSTILE}", "content": HOSTILE}, "File created successfully")
    edit = {"file_path": f"/tmp/{HOSTILE}", "old_string": HOSTILE, "new_string": HOSTILE}
    allowed, _why = ask("Edit", edit, tool("Edit", edit))
    say(f"{'allowed' if allowed else 'denied'} {HOSTILE}")


def todos(*states):
    names = ["Find why `retry_after` is ignored", "Read dates in Retry-After", "Test both forms", "Run the whole suite"]
    items = [{"content": name, "status": state, "activeForm": name} for name, state in zip(names, states)]
    tool("TodoWrite", {"todos": items}, "Todos have been modified successfully")


def play_story(_):
    """The run of the pictures in docs/page.md."""
    thinking("The failing test expects a date in Retry-After to be honoured. The parser takes only seconds, so a date "
             "falls through to the default of 1 s. I look at the parser first, then at its callers.")
    text("The test fails because `Retry-After` may be an HTTP date, and the parser reads only seconds. I look at the code.")
    todos("in_progress", "pending", "pending", "pending")
    tool("Grep", {"pattern": "retry_after", "path": "src"}, "src/http/retry.rs:41\nsrc/http/retry.rs:58\nsrc/client.rs:112")
    tool("Read", {"file_path": f"{os.getcwd()}/src/http/retry.rs"}, "41  fn retry_after(headers: &HeaderMap) -> Option<Duration> {\n42      headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)\n43  }")
    todos("completed", "in_progress", "pending", "pending")
    tool("Edit", {"file_path": f"{os.getcwd()}/src/http/retry.rs",
                  "old_string": "    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)",
                  "new_string": "    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;\n    match value.parse() {\n        Ok(seconds) => Some(Duration::from_secs(seconds)),\n        Err(_) => until(httpdate::parse_http_date(value).ok()?),\n    }"},
         "The file has been updated.")
    tool("Write", {"file_path": f"{os.getcwd()}/tests/retry_date.rs", "content": "#[test]\nfn a_date_is_honoured() {}\n"}, "File created successfully")
    todos("completed", "completed", "in_progress", "pending")
    tool("Bash", {"command": "cargo test retry", "description": "Run the tests of retries"}, "error[E0433]: failed to resolve: use of undeclared crate `httpdate`", error=True)
    text("The crate is not among the dependencies. It is small and has no dependencies of its own:\n\n- `httpdate` reads all three forms of RFC 9110\n- `tower-http` has it already, so that nothing new is compiled")
    todos("completed", "completed", "completed", "in_progress")
    command = {"command": "cargo add httpdate && cargo nextest run --workspace", "description": "Add the crate and run all tests"}
    tool_id = tool("Bash", command)
    allowed, why = ask("Bash", command, tool_id)
    if allowed:
        result(tool_id, "     Summary [   4.210s] 214 tests run: 214 passed, 0 skipped")
        todos("completed", "completed", "completed", "completed")
        say("Done: `Retry-After` is now read in **both forms**, and all 214 tests pass.\n\n```rust\nmatch value.parse() {\n    Ok(seconds) => Some(Duration::from_secs(seconds)),\n    Err(_) => until(httpdate::parse_http_date(value).ok()?),\n}\n```")
    else:
        result(tool_id, f"denied: {why}", True)
        say("I stop here: without the crate I would have to write a parser of dates.")


def play_markdown(_):
    """The message of the pictures in docs/page.md that has all of Markdown."""
    say("## What is left\n\n1. Read `Retry-After`:\n   - as seconds\n   - as a **date**, in the three forms of [RFC 9110](https://www.rfc-editor.org/rfc/rfc9110#section-10.2.3)\n"
        "2. Wait until then, ~~or a second~~ at most a minute\n3. Test both forms\n\n"
        "| Form | Length | Read by |\n|:-----|-------:|---------|\n| `120` | 3 | `parse` |\n| `Sun, 06 Nov 1994 08:49:37 GMT` | 29 | `httpdate` |\n\n"
        "> A date in the past means now.\n\n- [x] the parser\n- [ ] the callers\n\n```rust\nlet wait = retry_after(&headers)?;\n```")


def play_messages(words):
    """Sends each of the texts in a file."""
    with open(words[1]) as file:
        for content in json.load(file):
            text(content)
    done("")


def play_create(_):
    """Writes a file of two parts."""
    with open("large.txt", "w") as file:
        file.write("0123456789abcde\n" * (48 << 10))
    say("created")


def git(*words):
    subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *words], check=True, capture_output=True)


def write(path, content):
    with open(path, "wb") as file:
        file.write(content.encode())


def play_changes(words):
    """`changes few` or `changes many`: changes the repository that it works in, and a file elsewhere."""
    if words[1] == "few":
        write("src/retry.rs", "fn wait() {\n    match value {\n}\n")
        git("mv", "src/transport.rs", "src/client.rs")
        git("commit", "--quiet", "--all", "--message", "Retry")
        os.chmod("run.sh", 0o755)
        os.remove("old.md")
        write("a\nb\u202e.txt", f"{HOSTILE}\n")
        write("a.bin", "a\0b")
    else:
        for i in range(310):
            write(f"part_{i:03}.rs", f"{i}\n")
        write("big.txt", "".join(f"{i} lorem ipsum dolor sit amet, consectetur\n" for i in range(45_000)))
    elsewhere = {"file_path": f"{os.environ['HOME']}/elsewhere.txt", "content": "a\n"}
    tool("Write", elsewhere, "File created successfully")
    say("changed")


def play_fail(_):
    done("Invalid API key · Please run /login", is_error=True, cost=0)


def play_tick(_):
    say("Nothing to do.", cost=0.0031)


def play(prompt):
    words = re.split(r"\s+", prompt.strip())
    default = os.environ.get("AGENT_DEFAULT", "echo")
    known = globals().get(f"play_{words[0]}") or globals().get(f"play_{default}")
    if known:
        known(words)
    else:
        say(prompt)


def main():
    if "--version" in sys.argv:
        print("2.1.330 (Claude Code)")
        return
    if "--" in sys.argv:
        # A run without questions: the prompt is an argument.
        emit("system", subtype="init", model=MODEL)
        play(sys.argv[-1])
        return
    for line in INPUT:
        control(line)
        if line.get("type") != "user":
            continue
        emit("system", subtype="init", model=MODEL)
        play(hear(line))


main()
