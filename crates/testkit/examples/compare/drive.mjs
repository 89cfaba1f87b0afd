// Drives one tool with the fake CLI, as its documentation shows: node drive.mjs TOOL
// The environment and the output are those of main.rs.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const { COMPARE_AGENT: agent, COMPARE_RUNS: runs, COMPARE_TIMES: timed } = process.env;
let start, lines, times;

function text(value) {
  if (timed) times.push(Number(process.hrtime.bigint() - BigInt(value)));
  lines += 1;
}

/** Measures `run`, which calls `text` with each piece of text. */
async function measure(run) {
  for (let n = 0; n < runs; n++) {
    [start, lines, times] = [performance.now(), 0, timed ? [] : null];
    await run();
    console.log(JSON.stringify({ ms: performance.now() - start, lines, times }));
  }
}

function claudeDelta(message) {
  if (message.type === "stream_event" && message.event.delta?.type === "text_delta") text(message.event.delta.text);
}

const tools = {
  /** What a program without a library would do. */
  async node() {
    await measure(async () => {
      const child = spawn(agent, ["-p"], { stdio: ["ignore", "pipe", "inherit"] });
      const ended = new Promise((resolve) => child.on("close", resolve));
      for await (const line of createInterface({ input: child.stdout })) claudeDelta(JSON.parse(line));
      await ended;
    });
  },

  async claude() {
    const { query } = await import("@anthropic-ai/claude-agent-sdk");
    const options = { pathToClaudeCodeExecutable: agent, includePartialMessages: true };
    await measure(async () => {
      for await (const message of query({ prompt: "x", options })) claudeDelta(message);
    });
  },

  async codex() {
    const { Codex } = await import("@openai/codex-sdk");
    const codex = new Codex({ codexPathOverride: agent });
    await measure(async () => {
      const { events } = await codex.startThread({ skipGitRepoCheck: true }).runStreamed("x");
      for await (const event of events) if (event.type === "item.completed") text(event.item.text);
    });
  },

  /** A server and a client of it. The server finds the fake CLI on PATH by the name of an agent. */
  async sandbox() {
    const { SandboxAgent } = await import("sandbox-agent");
    const free = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => free.on("listening", resolve));
    const { port } = free.address();
    await new Promise((resolve) => free.close(resolve));
    const server = spawn(process.env.COMPARE_SANDBOX_AGENT,
      ["server", "--no-token", "--no-telemetry", "--port", `${port}`], { stdio: "ignore" });
    try {
      await measure(async () => {
        const client = await SandboxAgent.connect({ baseUrl: `http://127.0.0.1:${port}` });
        const session = await client.createSession({ agent: "opencode" });
        session.onEvent(({ payload }) => {
          const update = payload.params?.update;
          if (update?.sessionUpdate === "agent_message_chunk") text(update.content.text);
        });
        await session.prompt([{ type: "text", text: "x" }]);
      });
    } finally {
      // Instead of `dispose`, which takes 2 s: it is not a part of a run.
      server.kill();
    }
  },
};

await tools[process.argv[2]]();
// The connections to a server that has ended would be opened again.
process.exit();
