import type { Event } from "@tapedeck/proto/tapedeck/v1/event";
import { Outcome } from "@tapedeck/proto/tapedeck/v1/event";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it, vi } from "vitest";
import { startReceiver } from "../../testing/receiver.ts";
import { startSinkHarness } from "../../testing/sink-harness.ts";

type Writer = ReturnType<Awaited<ReturnType<typeof startSinkHarness>>["writer"]>;

const loop = (verb: "failed" | "succeeded", number = 7, message = "exit status 1"): Partial<Event> => ({
  kind: `loop.${verb}`,
  operation: { kind: "loop", subject: "", runner: 1, loop: number },
  ...(verb === "failed" && { outcome: Outcome.OUTCOME_FAILED, error: { code: "X", message, suggestions: [] } }),
});
const record = (writer: Writer, ...of: Parameters<typeof loop>) => writer.append(1, loop(...of));

/** The texts of all requests. */
const textsIn = (receiver: Awaited<ReturnType<typeof startReceiver>>) =>
  receiver.requests.map(({ body }) => (JSON.parse(body) as { readonly text: string }).text);
const idsIn = (receiver: Awaited<ReturnType<typeof startReceiver>>) =>
  receiver.requests.map(({ headers }) => headers["tapedeck-message"]);

it("a chat gets one message for a failed loop, and one when it is good again, at the end of the minute", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway({}, { messageMs: 1_500 });
  expect((await gateway.add("team", receiver, { format: "slack", start: "now" })).status).toBe(201);
  const alice = harness.writer("alice");
  await record(alice, "succeeded", 6);
  await record(alice, "failed", 7, "<!channel> no space left");
  await until(() => receiver.requests.length === 1, { message: "the failure" });
  await record(alice, "failed", 8);
  await record(alice, "succeeded", 9);
  await until(() => receiver.requests.length === 2, { message: "the message that it is good again" });
  expect(receiver.requests[0]?.headers["content-type"]).toMatch(/^application\/json/);
  expect(receiver.requests[0]?.headers["webhook-signature"]).toBeUndefined();
  expect(JSON.parse(receiver.requests[0]?.body ?? "")).toMatchObject({ unfurl_links: false });
  const [failure, good] = textsIn(receiver);
  expect(failure).toMatch(
    /^:red_circle: \*alice\/shop\*: loop 7 failed\n&lt;!channel&gt; no space left\n<http:\/\/\S+\/loops\/s\.1\.7\|why>$/,
  );
  expect(good).toMatch(/^:large_green_circle: \*alice\/shop\*: good again after \d+ s; 1 more failure meanwhile\n/);
});

it("a gateway that takes over knows what was sent, and sends at the end of the minute what was held back", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  const [alice, bob] = [harness.writer("alice"), harness.writer("bob")];
  {
    await using gateway = await harness.gateway({}, { messageMs: 5_000 });
    await gateway.add("team", receiver, { format: "slack" });
    await record(alice, "failed", 7);
    await record(alice, "failed", 8);
    await until(() => receiver.requests.length === 1, { message: "the failure" });
    await record(alice, "succeeded", 9);
    await record(bob, "failed");
    await until(() => receiver.requests.length === 2, { message: "the failure of another source" });
  }
  await using gateway = await harness.gateway({}, { messageMs: 5_000 });
  await until(() => receiver.requests.length === 3, { message: "the message that was held back" });
  expect(textsIn(receiver)[2]).toMatch(/alice\/shop\*: good again after \d+ s; 1 more failure meanwhile/);
  await record(bob, "succeeded");
  await until(() => receiver.requests.length === 4, { message: "the message about what failed before the change" });
  expect(textsIn(receiver)[3]).toMatch(/bob\/shop\*: good again/);
  expect(new Set(idsIn(receiver)).size).toBe(4);
  expect(await gateway.sink("team")).toMatchObject({ parked: 0 });
});

it("a message that waits is sent at the end of its minute, also when the log's clock is ahead", async () => {
  const now = Date.now;
  const clock = vi.spyOn(Date, "now").mockImplementation(() => now() - 3_600_000);
  try {
    await using harness = await startSinkHarness();
    await using receiver = await startReceiver();
    await using gateway = await harness.gateway({}, { messageMs: 1_500 });
    await gateway.add("team", receiver, { format: "slack" });
    const alice = harness.writer("alice");
    await record(alice, "failed");
    await until(() => receiver.requests.length === 1, { message: "the failure" });
    await record(alice, "succeeded");
    await until(() => receiver.requests.length === 2, { message: "the message that it is good again" });
  } finally {
    clock.mockRestore();
  }
});

it("a message that its chat refuses at the end of its minute counts as behind until it is accepted", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway({}, { messageMs: 1_500 });
  await gateway.add("team", receiver, { format: "slack" });
  const alice = harness.writer("alice");
  await record(alice, "failed");
  await until(() => receiver.requests.length === 1, { message: "the failure" });
  receiver.answer = () => ({ status: 404, body: "no_service" });
  await record(alice, "succeeded");
  const lag = async () => Number(/sink_lag_seconds\{.*sink="team".*\} (\d+)/.exec(await gateway.metrics())?.[1]);
  await until(async () => receiver.requests.length > 2 && (await lag()) > 0, { message: "the lag" });
  receiver.answer = () => ({ status: 200 });
  await until(async () => (await lag()) === 0, { message: "the end of the lag" });
});

it("a busy morning gives one message a source and minute, whatever happens at the same time", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway();
  await gateway.add("team", receiver, { format: "slack" });
  const writers = Array.from({ length: 10 }, (_, index) => harness.writer(`dev${index}`));
  for (let round = 0; round < 10; round++) {
    for (const writer of writers) await record(writer, round % 3 === 2 ? "succeeded" : "failed", round);
  }
  const isIdle = async () => (await gateway.sink("team"))?.lagEvents === 0 && receiver.requests.length >= 10;
  await until(isIdle, { message: "all events to be read" });
  expect(textsIn(receiver).map((text) => /dev\d/.exec(text)?.[0])).toEqual(writers.map((_, index) => `dev${index}`));
});

it("a message that Slack can't read is parked without a test, and a target that is gone parks nothing", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway();
  const [alice, bob] = [harness.writer("alice"), harness.writer("bob")];
  receiver.answer = () => ({ status: 404, body: "no_service" });
  await gateway.add("team", receiver, { format: "slack" });
  await record(alice, "failed");
  await until(() => receiver.requests.length >= 3, { message: "several attempts" });
  const refused = await gateway.sink("team");
  expect(refused).toMatchObject({ parked: 0, state: "retrying", error: "answered 404: no_service" });
  receiver.answer = ({ body }) =>
    body.includes("alice") ? { status: 400, body: "invalid_payload" } : { status: 200, body: "ok" };
  await until(async () => (await gateway.sink("team"))?.parked === 1, { message: "the message to be parked" });
  await record(bob, "failed");
  await until(() => textsIn(receiver).at(-1)?.includes("bob") === true, { message: "the next message" });
  expect(textsIn(receiver).every((text) => text.includes("failed\n"))).toBe(true);
  receiver.answer = () => ({ status: 200, body: "ok" });
  const retried = await gateway.call("POST", "/team/parked/retry", {});
  expect(retried.body).toMatchObject({ items: [{ accepted: true, status: 200 }] });
  expect(textsIn(receiver).at(-1)).toContain("alice");
});

it("a sink whose webhook was revoked gets another URL, and goes on there with what waited", async () => {
  await using harness = await startSinkHarness();
  await using revoked = await startReceiver();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway({}, { retryMs: 60_000, maxRetryMs: 60_000 });
  revoked.answer = () => ({ status: 404, body: "no_service" });
  await gateway.add("team", revoked, { format: "slack", filter: { projects: ["shop"] } });
  for (const name of ["alice", "bob"]) await record(harness.writer(name), "failed");
  await until(async () => (await gateway.sink("team"))?.state === "retrying", { message: "the refusal" });
  const again = await gateway.add("team", receiver, { format: "slack" });
  expect(again.body.error?.message).toBe('there is a sink "team" already: `tapedeck sink target` changes its URL');
  const refused = await gateway.call("POST", "/team/target", { target: "http://hooks.example/" });
  expect(refused).toMatchObject({ status: 400, body: { error: { field: "target" } } });
  const changed = await gateway.call("POST", "/team/target", { target: receiver.url });
  expect(changed).toMatchObject({ status: 200, body: { format: "slack", filter: { projects: ["shop"] } } });
  await until(() => receiver.requests.length === 2, { message: "what waited" });
  expect(textsIn(receiver).map((text) => /\w+(?=\/shop)/.exec(text)?.[0])).toEqual(["alice", "bob"]);
  expect((await gateway.call("POST", "/gone/target", { target: receiver.url })).status).toBe(404);
});

it("a retry of parked events tries all of them, also after one that a chat has no message about", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway({}, { messageMs: 1 });
  receiver.answer = () => ({ status: 400, body: "invalid_payload" });
  await gateway.add("team", receiver, { format: "slack" });
  const [alice, bob] = [harness.writer("alice"), harness.writer("bob")];
  const isParked = (count: number) =>
    until(async () => (await gateway.sink("team"))?.parked === count, { message: `${count} parked events` });
  await record(alice, "failed");
  await isParked(1);
  await record(alice, "succeeded");
  await isParked(2);
  await record(bob, "failed");
  await isParked(3);
  receiver.answer = () => ({ status: 200, body: "ok" });
  const retried = (await gateway.call("POST", "/team/parked/retry", {})).body;
  expect(retried).toMatchObject({
    items: [{ status: 200 }, { accepted: true, status: null }, { status: 200 }],
    left: 0,
  });
  await isParked(0);
});

it("a retry of parked events ends when the target is away, and says how many are left", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway();
  receiver.answer = () => ({ status: 400, body: "invalid_payload" });
  await gateway.add("team", receiver, { format: "slack" });
  for (const name of ["alice", "bob", "chris"]) await record(harness.writer(name), "failed");
  await until(async () => (await gateway.sink("team"))?.parked === 3, { message: "the failures to be parked" });
  const retried = async () => (await gateway.call("POST", "/team/parked/retry", {})).body;
  receiver.answer = () => ({ status: 503 });
  expect(await retried()).toMatchObject({ items: [{ outcome: "away", status: 503 }], left: 2 });
  await receiver.kill();
  expect(await retried()).toMatchObject({ items: [{ outcome: "away", status: null }], left: 2 });
});

it("the time that Slack asks for after too many messages is waited for", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway();
  const times: number[] = [];
  receiver.answer = () => {
    times.push(performance.now());
    return times.length === 1 ? { status: 429, headers: { "retry-after": "1" } } : { status: 200, body: "ok" };
  };
  await gateway.add("team", receiver, { format: "slack" });
  await record(harness.writer("alice"), "failed");
  await until(() => times.length === 2, { message: "the second attempt" });
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(990);
  expect(new Set(idsIn(receiver)).size).toBe(1);
});

it("a template of any chat is filled, and the test of a sink is one message", async () => {
  await using harness = await startSinkHarness();
  await using receiver = await startReceiver();
  await using gateway = await harness.gateway();
  const template = { content: "{{text}}", allowed_mentions: { parse: [] } };
  await gateway.add("discord", receiver, { format: "chat", template });
  await record(harness.writer("alice"), "failed", 7, '@everyone "quoted"');
  await until(() => receiver.requests.length === 1, { message: "the failure" });
  expect(JSON.parse(receiver.requests[0]?.body ?? "")).toEqual({
    content: expect.stringMatching(
      /^🔴 alice\/shop: loop 7 failed\n@\u2060everyone "quoted"\nhttp:\S+\/loops\/s\.1\.7$/,
    ),
    allowed_mentions: { parse: [] },
  });
  expect((await gateway.call("POST", "/discord/test")).body).toMatchObject({ accepted: true });
  expect(JSON.parse(receiver.requests[1]?.body ?? "")).toEqual({
    content: "A test of the sink discord of Tapedeck: nothing has failed.",
    allowed_mentions: { parse: [] },
  });
});

it.each([
  [{ format: "slack", filter: { kinds: ["*.failed"] } }, "filter"],
  [{ format: "slack", template: { text: "{{txt}}" } }, "template"],
  [{ format: "webhook", template: { text: "{{text}}" } }, "template"],
  [{ format: "slack", cdevents: true }, "cdevents"],
])("a sink with %j is refused", async (fields, field) => {
  await using harness = await startSinkHarness();
  await using gateway = await harness.gateway();
  const refused = await gateway.call("POST", "", { name: "team", target: "https://hooks.slack.com/x", ...fields });
  expect(refused).toMatchObject({ status: 400, body: { error: { field } } });
});
