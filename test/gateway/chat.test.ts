import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { asNow } from "@tapedeck/fakes/skaffold/event-log";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import { startReceiver } from "@tapedeck/gateway/sinks/testing/receiver";
import { until } from "@tapedeck/shared/testing/until";
import { collect } from "tapedeck/testing/cli";
import { recordingFolder } from "tapedeck/testing/skaffold-program";
import { expect, it } from "vitest";
import { startStack } from "../stack/stack.ts";

const main = fileURLToPath(new URL("../../packages/cli/bin/tapedeck.mjs", import.meta.url));

/** The lines of docs/chat.md that begin with `tapedeck sink`, with the receiver's address in place of the chats'. */
function linesToType(url: string): readonly string[] {
  const page = readFileSync(join(import.meta.dirname, "../../docs/chat.md"), "utf8");
  return page
    .split("\n")
    .filter((line) => line.startsWith("tapedeck sink "))
    .map((line) => line.replace(/https:\/\/[^/\s]+\/\S*/, (address) => `${url}${new URL(address).pathname}`));
}

it("the lines of the page, typed, send a real failure to each chat, with the cause that `tapedeck why` gives", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "chat-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rmSync(cwd, { recursive: true, force: true }));
  // What is older than a day is no news.
  const recording = asNow(loadRecording(recordingFolder("04-deploy-failure-then-recovery")));
  const fake = cleanup.use(await startFakeSkaffold({ recording }));
  const receiver = cleanup.use(await startReceiver());
  const stack = cleanup.use(
    await startStack({
      skaffold: [{ developer: "alice", project: "shop", address: fake.address }],
      env: { TAPEDECK_GATEWAY_SINK_HOSTS: "127.0.0.1", TAPEDECK_GATEWAY_PAGE_URL: "https://tapedeck.example/" },
    }),
  );
  const type = async (line: string) => {
    const words = line.replace(/^tapedeck/, `"${process.execPath}" "${main}"`);
    const env = { ...process.env, TAPEDECK_URL: `http://${stack.http}`, XDG_CONFIG_HOME: cwd };
    await using cli = collect(spawn("sh", ["-c", words], { cwd, env, stdio: "pipe" }));
    return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
  };
  const origin = new URL(receiver.url).origin;
  const lines = linesToType(origin);
  expect(lines.map((line) => line.split(" ")[3])).toEqual(["team", "shop", "team", "discord", "teams", "team"]);
  for (const line of lines) expect(await type(line), line).toMatchObject({ code: 0, err: "" });
  const bodiesAt = (path: string) =>
    receiver.requests.filter((one) => one.path.startsWith(path)).map(({ body }) => JSON.parse(body));
  expect(bodiesAt("/services/T0/B0/x")).toMatchObject([{ text: expect.stringContaining("nothing has failed") }]);

  // A message waits for the cause for a quarter of a second alone: the sinks stand still until it is in the tables.
  const sinks = ["team", "shop", "discord", "teams"];
  for (const name of sinks) expect((await type(`tapedeck sink pause ${name}`)).code).toBe(0);
  await fake.playUntil({ v1: 17 });
  await stack.drained(fake);
  for (const name of sinks) expect((await type(`tapedeck sink resume ${name}`)).code).toBe(0);
  const isTold = () =>
    [...["/services/T0/B0/z", "/services/T0/B0/y"], ...["/api/webhooks", "/workflows"]].every(
      (path) => bodiesAt(path).length === 1,
    );
  await until(isTold, { message: "the failure in each chat" });
  const why = JSON.parse((await type("tapedeck why --json")).out);
  const { phase, cause } = why.left.failure;
  const loop = `https://tapedeck.example/loops/${why.left.session}.${why.left.runner}.${why.left.loop}`;
  expect(cause.text).toContain('no matches for kind "Deploymint"');
  const text = `:red_circle: *alice/shop*: ${phase} failed\n${cause.text}\n<${loop}|why>`;
  for (const path of ["/services/T0/B0/z", "/services/T0/B0/y"])
    expect(bodiesAt(path)).toEqual([{ text, unfurl_links: false, unfurl_media: false }]);
  expect(bodiesAt("/services/T0/B0/x")).toHaveLength(1);
  expect(bodiesAt("/api/webhooks")).toEqual([
    { content: `🔴 alice/shop: ${phase} failed\n${cause.text}\n${loop}`, allowed_mentions: { parse: [] } },
  ]);
  const [{ attachments }] = bodiesAt("/workflows");
  expect(attachments[0].content).toMatchObject({
    body: [{ text: `alice/shop: ${phase} failed` }, { text: cause.text }],
    actions: [{ url: loop }],
  });
});

it("a sync that Skaffold retries is named by a chat as `tapedeck why` names it", async () => {
  await using fake = await startFakeSkaffold({
    recording: asNow(loadRecording(recordingFolder("10-status-check-port-forward-sync-app-logs"))),
  });
  await using receiver = await startReceiver();
  await using stack = await startStack({
    skaffold: [{ developer: "alice", project: "shop", address: fake.address }],
    env: { TAPEDECK_GATEWAY_SINK_HOSTS: "127.0.0.1" },
  });
  const body = JSON.stringify({ name: "team", target: receiver.url, format: "slack" });
  expect((await stack.httpCall("POST", "/api/v1/sinks", {}, body)).status).toBe(201);
  const tell = async (step: "pause" | "resume") =>
    expect((await stack.httpCall("POST", `/api/v1/sinks/team/${step}`)).status).toBe(200);
  await tell("pause");
  // Four times the sync fails, and the loop with it.
  await fake.playUntil({ v1: 35 });
  await stack.drained(fake);
  await tell("resume");
  await until(() => receiver.requests.length === 1, { message: "the failure" });
  const why = JSON.parse((await stack.httpCall("GET", "/api/v1/compare?left=alice/shop")).body);
  const { phase, subject, tries, cause } = why.left.failure;
  expect([phase, subject, tries]).toEqual(["sync", "web", 4]);
  const [title, text] = JSON.parse(receiver.requests[0]?.body ?? "").text.split("\n");
  expect(title).toMatch(/^:red_circle: \*alice\/shop\*: sync web(?: \([234] tries\))? failed$/);
  expect(text).toBe(cause.text);
});
