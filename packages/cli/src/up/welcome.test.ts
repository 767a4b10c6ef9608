import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { type Welcome, welcome } from "./welcome.ts";

const sources: Welcome["sources"] = [
  { upstream: "vagrant", name: "Dana/shop", id: "dana/shop", address: "127.0.0.1:9701" },
  { upstream: "rkt", name: "node-1/host", id: "node-1/host", address: "127.0.0.1:15441" },
];
const options: Welcome = {
  mode: "record",
  addresses: {
    ...{ http: "127.0.0.1:7052", grpc: "127.0.0.1:7051", postgres: "127.0.0.1:7043" },
    "dana/shop/vagrant grpc": "127.0.0.1:50061",
  },
  storeDir: join(process.cwd(), ".tapedeck"),
  sources,
  analystUrl: "postgres://tapedeck_analyst:a-password@127.0.0.1:7043/tapedeck",
  program: { here: "npx tapedeck", anywhere: "tapedeck" },
  waiting: 0,
};
/** Its paragraphs. */
const shown = (more: Partial<Welcome> = {}) => stripVTControlCharacters(welcome({ ...options, ...more })).split("\n\n");

it("says where everything is, however long its name, and each source on a line", () => {
  expect(shown()[1]).toMatchInlineSnapshot(`
    "  HTTP, WebSocket  http://127.0.0.1:7052
      gRPC             127.0.0.1:7051
      dana/shop/vagrant grpc  127.0.0.1:50061
      Postgres         127.0.0.1:7043
      data             .tapedeck
      sources          Dana/shop (127.0.0.1:9701)
                       node-1/host (127.0.0.1:15441)"
  `);
});

it.each(["record", "demo"] as const)("fits 80 columns (%s)", (mode) => {
  const lines = shown({ mode }).flatMap((part) => part.split("\n"));
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});
