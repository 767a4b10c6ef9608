import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { version } from "@tapedeck/shared/version";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startCli } from "../testing/cli.ts";

// What a server answers that does not know of `heardAt` and `clockOffsetMs` yet.
const source = "default/alice/shop/rkt";
const answers: Readonly<Record<string, object>> = {
  "/about": { version, grpcPort: 1, auth: "none", time: new Date().toISOString() },
  "/api/v1/sources": {
    items: [
      {
        ...{ source, status: "recording", currentSession: "", lastEventAt: null, address: "127.0.0.1:15441", gaps: 0 },
        notHeardSince: null,
      },
    ],
    position: "x-1",
  },
  "/api/v1/state": {
    ...{ source, session: null, sessionEnded: false, notHeardSince: null, position: "x-1", upstream: "rkt" },
    state: { info: null, pods: [], images: [] },
  },
};

const server = createServer(({ url = "" }, response) => {
  const answer = answers[new URL(url, "http://a").pathname];
  response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" });
  response.end(JSON.stringify(answer ?? {}));
});
beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
});
afterAll(() => void server.close());

it.each([
  ["state", "as of x-1"],
  ["status", "recording"],
  ["doctor", "answers in"],
])("%s of an older server lacks what that does not know", async (command, text) => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await using cli = startCli([command], { cwd: tmpdir(), env: { TAPEDECK_URL: url } });
  await cli.ended;
  expect(cli.stdout()).toContain(text);
  expect(cli.stdout() + cli.stderr()).not.toMatch(/NaN|undefined|clock of/);
});
