import { scenario } from "@tapedeck/query/testing/scenario";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { statsPaths } from "../stack/answer-schemas.ts";
import { type RawClient, rawClient, reasonOf } from "../stack/raw-call.ts";
import { type SeededStack, startSeededStack } from "../stack/seeded-stack.ts";

// Values at and beyond the bounds of what a parameter takes: they find nothing, or are refused by their name.

const cleanup = new AsyncDisposableStack();
let on: SeededStack;
let client: RawClient;

beforeAll(async () => {
  on = cleanup.use(await startSeededStack());
  client = cleanup.use(rawClient(on.stack.grpc));
  const alice = scenario();
  const plain = alice.session("01A1");
  plain.started({ branch: "main" });
  plain.configured();
  plain.loopStarted();
  plain.build("web", "started");
  plain.build("web", "succeeded");
  const odd = alice.session("01A2");
  // In a literal, this would be the object's prototype.
  odd.started(JSON.parse('{"__proto__": "x", "constructor": "y"}'));
  odd.configured();
  odd.loopStarted();
  odd.build("web", "started");
  odd.build("web", "succeeded");
  await on.seed(alice.events);
});
afterAll(() => cleanup.disposeAsync());

async function get(path: string) {
  const { status, body } = await on.stack.httpCall("GET", `/api/v1/${path}`);
  return { status, ...(JSON.parse(body) as { items?: Record<string, unknown>[]; error?: Record<string, unknown> }) };
}

it.each(["runner=2147483648", "runner=4294967295", "runner=1&loop=2147483648", "runner=0&loop=4294967295"])(
  "operations of %s are none",
  async (number) => {
    expect(await get(`operations?session=01A1&${number}`)).toMatchObject({ status: 200, items: [] });
  },
);

const lists = ["sessions", "operations", ...statsPaths.map((path) => path.replace("/api/v1/", ""))];

describe.each([
  "9999-12-31T23:59:59-14:00",
  "0001-01-01T00:00:00%2B14:00",
  "2026-02-30T00:00:00Z",
  "2026-01-01T24:00:00Z",
])("the time %s", (time) => {
  it.each(lists.flatMap((list) => [`${list}?from=`, `${list}?to=`]))("is refused by %s", async (path) => {
    expect(await get(path + time)).toMatchObject({
      status: 400,
      error: { field: path.slice(path.indexOf("?") + 1, -1) },
    });
  });

  it.each(["events?after=", "events?until=", "state?at=", "sessions?at=", "audit?since="])(
    "is refused by %s",
    async (path) => {
      expect(await get(path + time)).toMatchObject({ status: 400, error: { code: "invalid_argument" } });
    },
  );
});

it.each(lists.flatMap((list) => [`${list}?from=`, `${list}?to=`]))(
  "%s takes the first and the last time",
  async (path) => {
    for (const time of ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"])
      expect((await get(path + time)).status).toBe(200);
  },
);

it.each([
  ["__proto__=x", ["01A2"]],
  ["constructor=y", ["01A2"]],
  ["__proto__=y", []],
  ["toString=x", []],
  ["branch=main", ["01A1"]],
  ["branch=main&label=__proto__=x", []],
])("sessions with the label %s are %j", async (label, sessions) => {
  expect((await get(`sessions?label=${label}`)).items?.map(({ session }) => session)).toEqual(sessions);
});

it("labels of any name are shown", async () => {
  const { items = [] } = await get("sessions?label=__proto__=x");
  expect(JSON.stringify(items[0]?.labels)).toBe('{"__proto__":"x","constructor":"y"}');
  const { items: groups = [] } = await get("stats/builds?group=label.__proto__,label.constructor");
  expect(groups.map((group) => JSON.stringify(group.labels))).toEqual([
    '{"__proto__":"","constructor":""}',
    '{"__proto__":"x","constructor":"y"}',
  ]);
  expect((await get("stats/builds?label=__proto__=x")).items).toMatchObject([{ count: 1 }]);
});

it.each([
  "/tapedeck.v1.Recorder/Push",
  "/tapedeck.v1.Tapedeck/Events",
  "/tapedeck.v1.Tapedeck/GetState",
  "/grpc.health.v1.Health/Check",
])("%s refuses bytes that are no message", async (path) => {
  const answer = await client.ask(path, {}, Buffer.from([0x0a, 0xff]));
  expect([reasonOf(answer), answer]).toMatchObject([
    "invalid_argument",
    { code: 3, details: expect.stringContaining(path) },
  ]);
});
