import { CloudEvent, type CloudEventV1, HTTP } from "cloudevents";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectIs } from "../stack/answer-schemas.ts";
import { type ApiHarness, alice, bob, startApiHarness, time } from "../stack/api-harness.ts";
import type { HttpAnswer } from "../stack/http-call.ts";

const batch = "application/cloudevents-batch+json";

const cleanup = new AsyncDisposableStack();
let harness: ApiHarness;

beforeAll(async () => {
  harness = cleanup.use(await startApiHarness());
});
afterAll(() => cleanup.disposeAsync());

const get = (path: string) => harness.on.stack.httpCall("GET", path, { accept: batch });
/** Reads like a consumer that refuses anything but CloudEvents 1.0. */
const read = ({ headers, body }: HttpAnswer) => {
  const events = HTTP.toEvent({ headers: headers as Record<string, string>, body }) as CloudEventV1<unknown>[];
  return events.map((event) => new CloudEvent(event, true));
};
/** Reads all pages by following their links. */
const readAll = async (first: string) => {
  const pages: CloudEvent<unknown>[][] = [];
  for (let path: string | undefined = first; path !== undefined; ) {
    const answer = await get(path);
    expect([answer.status, answer.headers["content-type"]]).toEqual([200, `${batch}; charset=utf-8`]);
    pages.push(read(answer));
    path = /^<([^>]*)>; rel="next"$/.exec(String(answer.headers.link ?? ""))?.[1];
  }
  return pages;
};

describe("events as batches of CloudEvents", () => {
  it("have the attributes that the specification requires, and the event as their data", async () => {
    const answer = await get("/api/v1/events?kind=build.failed");
    const [event] = JSON.parse(answer.body);
    const { items } = (await harness.get("events?kind=build.failed")).body;
    expect(event).toEqual({
      specversion: "1.0",
      id: "01A1.v1.6",
      source: "/sources/acme/alice/shop/skaffold",
      type: "dev.tapedeck.build.failed",
      subject: "api",
      time: time(9_000),
      datacontenttype: "application/json",
      sequence: expect.stringMatching(/^\d{16}$/),
      tapedeckposition: items[0]?.position,
      recordedtime: items[0]?.recordedAt,
      data: items[0],
    });
    expect(answer.headers["tapedeck-position"]).toBe(harness.on.endAt(harness.lastSeq));
    expect(answer.headers).not.toHaveProperty("link");
  });

  it("are read by a strict consumer page by page, each once and in the order of their sequences", async () => {
    const pages = await readAll("/api/v1/events?limit=4");
    expect(pages.length).toBeGreaterThan(3);
    const events = pages.flat();
    const ids = [...alice.events, ...bob.events].map(({ id }) => id);
    expect(events.map(({ id }) => id)).toEqual(ids);
    const sequences = events.map(({ sequence }) => String(sequence));
    expect(sequences.toSorted()).toEqual(sequences);
    expect(new Set(events.map(({ source, id }) => `${source} ${id}`)).size).toBe(events.length);
  });

  it("have only attribute names and values that every binding can carry", async () => {
    const all = JSON.parse((await get("/api/v1/events")).body);
    expectIs("CloudEvents", all);
    for (const { data, ...attributes } of all) {
      for (const [name, value] of Object.entries(attributes)) {
        expect(name).toMatch(/^[a-z0-9]{1,20}$/);
        expect(value).toEqual(expect.stringMatching(/./));
      }
      expect(JSON.stringify(data)).not.toContain("null");
    }
  });

  it("are filtered and limited like pages, and the links keep both", async () => {
    const events = (await readAll("/api/v1/events?kind=build.*&developer=alice&limit=2&original=true")).flat();
    const { items } = (await harness.get("events?kind=build.*&developer=alice&original=true")).body;
    expect(events.map(({ data }) => data)).toEqual(items);
    const newest = read(await get("/api/v1/events?last=2"));
    expect(newest.map(({ data }) => data)).toEqual((await harness.get("events?last=2")).body.items);
    expect(read(await get("/api/v1/events?after=now"))).toEqual([]);
  });

  it("are refused with JSON errors, like pages", async () => {
    const { status, headers, body } = await get("/api/v1/events?after=soon");
    expect([status, headers["content-type"]]).toEqual([400, "application/json; charset=utf-8"]);
    expect(JSON.parse(body)).toMatchObject({ error: { code: "invalid_argument", field: "after" } });
  });
});
