// A session with `teamster acp AGENT` by the client of the official SDK: begin, prompt with a permission, load.
// Every message is checked against the SDK's own types by the SDK itself.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const agent = process.argv[2];
// In their mode `default` these change files without a request.
const asks = !["opencode", "pi"].includes(agent);

async function connected(play) {
  const child = spawn("teamster", ["acp", agent], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const seen = { updates: [], asked: [] };
  const app = acp
    .client({ name: "sdk-test" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      seen.asked.push(params);
      const allow = params.options.find((option) => option.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId: allow.optionId } };
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      seen.updates.push(params.update);
    });
  const result = await app.connectWith(stream, async (ctx) => {
    const about = await ctx.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: {},
      clientInfo: { name: "sdk-test", version: "1" },
    });
    assert.equal(about.protocolVersion, 1);
    assert.equal(about.agentInfo.name, "teamster");
    return play(ctx, seen);
  });
  child.stdin.end();
  assert.equal(await ended, 0);
  return result;
}

const text = (updates) =>
  updates
    .filter((update) => update.sessionUpdate === "agent_message_chunk")
    .map((update) => update.content.text)
    .join("");

const cwd = process.cwd();
const sessionId = await connected(async (ctx, seen) => {
  const begun = await ctx.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
  const categories = begun.configOptions.map((option) => option.category);
  assert.ok(categories.includes("mode") && categories.includes("model"), categories.join());
  const answer = await ctx.request(acp.methods.agent.session.prompt, {
    sessionId: begun.sessionId,
    prompt: [{ type: "text", text: "Write the file" }],
  });
  assert.equal(answer.stopReason, "end_turn");
  assert.match(text(seen.updates), /It is written\./);
  const call = seen.updates.find((update) => update.sessionUpdate === "tool_call");
  assert.equal(call.kind, "edit");
  // Where the arguments of the agent's tool have no text of the file, the diff comes with the change itself.
  const content = seen.updates
    .filter((update) => update.toolCallId === call.toolCallId)
    .flatMap((update) => update.content ?? []);
  assert.ok(
    content.some((content) => content.type === "diff" && content.newText === "hello\n"),
    JSON.stringify(seen.updates),
  );
  assert.equal(seen.asked.length, asks ? 1 : 0, "permission is asked once");
  return begun.sessionId;
});

await connected(async (ctx, seen) => {
  const listed = await ctx.request(acp.methods.agent.session.list, { cwd });
  assert.deepEqual(
    listed.sessions.map((session) => [session.sessionId, session.title]),
    [[sessionId, "Write the file"]],
  );
  await ctx.request(acp.methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  assert.match(text(seen.updates), /It is written\./);
  const answer = await ctx.request(acp.methods.agent.session.prompt, {
    sessionId,
    prompt: [{ type: "text", text: "And now?" }],
  });
  assert.equal(answer.stopReason, "end_turn");
  assert.match(text(seen.updates), /Here again\./);
});
console.log("the client of the SDK got what it should");
