import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { connect } from "../index.ts";
import { readLanes } from "./read-lanes.ts";

// What a Tapedeck with very many sessions answers.

let ports = 0;
/** Operations go on page by page, without an end. */
let isEndless = false;
const requests: URL[] = [];
const source = (n: number) => ({
  source: `acme/dev${n}/shop/skaffold`,
  developer: `dev${n}`,
  project: "shop",
  status: "recording",
  currentSession: `s${n}`,
  lastPosition: "15-e",
  lastEventAt: null,
  notHeardSince: null,
  gaps: 0,
});
const operation = () => ({ ...source(0), kind: "loop", subject: "", session: "s0", startedAt: null, endedAt: null });
const session = { endedAt: null, endReason: null, labels: {} };

const server = createServer((request, response) => {
  const url = new URL(request.url ?? "", "http://127.0.0.1");
  requests.push(url);
  response.setHeader("content-type", "application/json").end(JSON.stringify(answer(url)));
});

function answer({ pathname, searchParams }: URL): object {
  const sessions = searchParams.getAll("session");
  switch (pathname) {
    case "/api/v1/sources":
      return { items: Array.from({ length: 200 }, (_, n) => source(n)) };
    case "/api/v1/sessions":
      return { items: sessions.map((one) => ({ ...session, session: one })) };
    case "/api/v1/operations":
      return isEndless ? { items: Array.from({ length: 1_000 }, operation), nextPage: "more" } : { items: [] };
    default: {
      const all = sessions.flatMap((one) =>
        Array.from({ length: ports }, (_, n) => ({ session: one, detail: { localPort: 8_000 + n } })),
      );
      return { items: all.slice(-Number(searchParams.get("last"))) };
    }
  }
}

let url = "";
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  requests.length = 0;
  isEndless = false;
});

async function read() {
  using client = connect({ url });
  return await readLanes(client, {}, new AbortController().signal);
}
/** How many ports rows have, without repetition. */
const portCounts = ({ now }: Awaited<ReturnType<typeof read>>) => [
  ...new Set([...now.values()].map((row) => row.ports.length)),
];
const requestsOf = (path: string) => requests.filter(({ pathname }) => pathname === `/api/v1/${path}`);

it("asks for the ports of fewer sessions as long as an answer is full", async () => {
  ports = 4;
  expect(portCounts(await read())).toEqual([4]);
  expect(requestsOf("events")).toHaveLength(2);
  requests.length = 0;
  ports = 30;
  expect(portCounts(await read())).toEqual([30]);
  // Parts of 100, 50 and 25 sessions.
  expect(requestsOf("events")).toHaveLength(2 + 4 + 8);
});

it("asks for no more when many answers are full", async () => {
  ports = 1_000;
  await read();
  expect(requestsOf("events")).toHaveLength(2 + 2 * 50);
});

it("keeps a bounded number of loops, steps and apps, however many there are", async () => {
  isEndless = true;
  await read();
  // Pages of 1,000: 8,000 loops, 8,000 steps and 1,000 apps.
  expect(requestsOf("operations")).toHaveLength(8 + 8 + 1);
});
