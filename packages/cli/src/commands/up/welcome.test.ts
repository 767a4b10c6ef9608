import { join, resolve } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { variablesToFind } from "./other-terminals.ts";
import { type Welcome, welcome } from "./welcome.ts";

const sources: Welcome["sources"] = [
  { upstream: "vagrant", name: "Dana/shop", id: "dana/shop", address: "127.0.0.1:9701" },
  { upstream: "rkt", name: "node-1/host", id: "node-1/host", address: "127.0.0.1:15441" },
];
const options: Welcome = {
  mode: "record",
  access: { tls: false, auth: "none" },
  addresses: {
    http: "127.0.0.1:7052",
    grpc: "127.0.0.1:7051",
    postgres: "127.0.0.1:7043",
    "dana/shop/vagrant grpc": "127.0.0.1:50061",
  },
  storeDir: join(process.cwd(), ".tapedeck"),
  sources,
  analystUrl: "postgres://tapedeck_analyst:a-password@127.0.0.1:7043/tapedeck",
  program: { here: "npx tapedeck", anywhere: "tapedeck" },
  variables: {},
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

it("says that a settings file without sources is why no demo plays", () => {
  const empty = { sources: [], demoOffBy: join(process.cwd(), "tapedeck.yaml") };
  expect(shown(empty)[0]).toMatch(/^Tapedeck is running .*\ntapedeck\.yaml has no sources; for the demo: .*--demo$/);
  expect(shown({ sources: [] })[0]).not.toContain("demo");
});

it("says where people get in, and with what", () => {
  const endpoints = { "alice/shop http": "127.0.0.1:50062", "bob/shop http": "0.0.0.0:50063" };
  const addresses = { http: "0.0.0.0:7052", grpc: "0.0.0.0:7051", ...endpoints };
  const access = { tls: true, auth: "tokens", hostName: "deck.example.com" } as const;
  const [, places, toTry] = shown({ addresses, access, sources: sources.slice(1) });
  expect(places).toMatchInlineSnapshot(`
    "  HTTP, WebSocket  https://deck.example.com:7052
      gRPC             deck.example.com:7051
      alice/shop http  127.0.0.1:50062
      bob/shop http    deck.example.com:50063
      access           TLS, tokens (tapedeck token create)
      Postgres         -
      data             .tapedeck"
  `);
  expect(toTry).toMatchInlineSnapshot(`
    "Try, in another terminal:
      export TAPEDECK_TOKEN=$(\\
        npx tapedeck token create --name me --role admin --developer me -q)
        gives you access for 90 days
      npx tapedeck open                       the page, in a browser
      npx tapedeck watch                      what everybody's loop does now
      npx tapedeck tail                       events as they happen
      npx tapedeck state -s node-1/host       the pods and images of a rkt host
      npx tapedeck tail -s node-1/host -k 'pod.*'
        its pods alone
      grpcurl -H "authorization: Bearer $TAPEDECK_TOKEN" \\
        -H 'tapedeck-source: node-1/host' deck.example.com:7051 v1alpha.PublicAPI/ListenEvents
        rkt's own API, with the events that rkt itself never sends
      psql postgres://tapedeck_analyst:a-password@127.0.0.1:7043/tapedeck \\
        -c 'select app, exit_code, count(*) from tapedeck.rkt_apps group by 1, 2'
        the same in SQL
    "
  `);
});

it("says what commands need to find a Tapedeck that is not where they expect it", () => {
  const configFile = resolve("tapedeck.yaml");
  const dataDir = resolve(".tapedeck");
  expect(variablesToFind({ dataDir, configFile }, {})).toEqual({});
  expect(variablesToFind({ dataDir, configFile: undefined }, { TAPEDECK_NATS_PORT: "1" })).toEqual({});
  const variables = variablesToFind(
    { dataDir: "/var/lib/tape deck", configFile: "/etc/tapedeck.yaml" },
    { TAPEDECK_GATEWAY_HTTP_PORT: "8052", TAPEDECK_NATS_PORT: "1" },
  );
  expect(shown({ variables })[2]?.split("\n").slice(0, 6)).toEqual([
    "Try, in another terminal:",
    "  export TAPEDECK_DATA='/var/lib/tape deck' \\",
    "    TAPEDECK_CONFIG=/etc/tapedeck.yaml \\",
    "    TAPEDECK_GATEWAY_HTTP_PORT=8052",
    "    where commands find this Tapedeck",
    "  npx tapedeck open                       the page, in a browser",
  ]);
});

const accesses = [
  { tls: false, auth: "none" },
  { tls: true, auth: "tokens" },
] as const;
it.each((["record", "demo"] as const).flatMap((mode) => accesses.map((access) => [mode, access] as const)))(
  "fits 80 columns (%s, %j)",
  (mode, access) => {
    const lines = shown({ mode, access }).flatMap((part) => part.split("\n"));
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  },
);
