import type { TapedeckError } from "@tapedeck/shared/errors/errors";
import fastify from "fastify";
import { expect, it } from "vitest";
import type { Caller } from "../../call-context.ts";
import { callerLimits } from "../../limits/limits.ts";
import { defaultLimits } from "../../limits/settings.ts";
import type { RecordApis } from "../../workspaces/routed-apis.ts";
import { mcpRoute, triggerHeader } from "./mcp-route.ts";

const nobody: Caller = { workspace: "default", who: "127.0.0.1", kind: "local" };
/** The address of requests that are injected. */
const peer = "127.0.0.1";

/** The route, of which a caller may have one stream, before an API that has no events and counts what reaches Skaffold. */
async function route(page?: string) {
  const app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
  const { live } = callerLimits({ ...defaultLimits, connections: { max: 1, holdsForAddresses: true } });
  let controlled = 0;
  const apis = {
    tapedeck: { events: async () => ({ items: [], position: "100-a" }) },
    skaffold: { control: async () => void controlled++ },
  } as unknown as RecordApis;
  const watch = { seen: () => {}, sent: () => {}, failed: (error: unknown) => error as TapedeckError };
  mcpRoute(app, apis, () => nobody, { watch, limits: { live }, isTls: false, page });
  const post = async (body: object, text = JSON.stringify(body)) => {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      [triggerHeader]: "true",
    };
    const answer = await app.inject({ method: "POST", url: "/mcp", headers, payload: text });
    return { status: answer.statusCode, text: answer.body };
  };
  return { post, live, controlled: () => controlled, [Symbol.asyncDispose]: () => app.close() };
}

const call = (name: string, args: object) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name, arguments: args },
});

it("a batch is refused, and none of its calls is made", async () => {
  await using on = await route();
  const batch = [call("trigger", { action: "build" }), call("trigger", { action: "build" })];
  for (const text of [JSON.stringify(batch), ` \n${JSON.stringify(batch)}`, `\ufeff${JSON.stringify(batch)}`]) {
    const { status, text: answer } = await on.post(batch, text);
    expect([status, JSON.parse(answer)]).toMatchObject([400, { jsonrpc: "2.0", id: null, error: { code: -32600 } }]);
  }
  expect(on.controlled()).toBe(0);
  expect((await on.post(call("trigger", { action: "build" }))).text).toContain("Skaffold has taken the request");
  expect(on.controlled()).toBe(1);
});

it("a call of 2025 that is one stream too many is refused before its tool acts", async () => {
  await using on = await route();
  const over = new AbortController();
  on.live.take({ caller: nobody, peer }, over.signal);
  const { status, text } = await on.post(call("trigger", { action: "build" }));
  expect([status, text]).toEqual([500, expect.stringContaining("live streams")]);
  expect(on.controlled()).toBe(0);
  over.abort();
  expect((await on.post(call("trigger", { action: "build" }))).status).toBe(200);
});

it("a wait of a client of 2025 is one stream", async () => {
  await using on = await route();
  const { text } = await on.post(call("wait_for_loop", { after: "start", at: "383600-t3k9x2" }));
  expect(text).toContain("Nothing has ended");
});

it("links lead to the page's address that is set, or else to where the gateway was asked", async () => {
  const linkOf = async (page?: string) => {
    await using on = await route(page);
    return /Page: (\S+?)\/sessions/.exec((await on.post(call("search_events", { session: "s1" }))).text)?.[1];
  };
  expect(await linkOf("https://tools.example/tapedeck")).toBe("https://tools.example/tapedeck");
  expect(await linkOf()).toMatch(/^http:\/\/localhost(:80)?$/);
});
