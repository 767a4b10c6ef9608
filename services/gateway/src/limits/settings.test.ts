import { expect, it } from "vitest";
import { readConfig } from "../config.ts";
import { defaultLimits } from "./settings.ts";

const MiB = 1024 * 1024;

it("every limit has a default", () => {
  expect(defaultLimits).toEqual({
    grpc: { messageBytes: 4 * MiB, streams: 100, connections: 10_000 },
    http: { bodyBytes: 4 * MiB, headerBytes: 16_384, connections: 10_000 },
    webSocket: { messageBytes: 262_144, subscriptions: 64 },
    connections: { max: 50, holdsForAddresses: false },
    tokenConnections: 1_000,
    requestsPerSecond: { max: 100, holdsForAddresses: false },
    refusalsPerMinute: 60,
    arrivalMs: 60_000,
    queryMs: 15_000,
    unreadBytes: MiB,
    historyReaders: 256,
    pages: 32,
    largeAnswers: 8,
  });
});

it("is set in the file or the environment, and what is set holds for addresses, too", () => {
  const values = { limits: { webSocket: { messageBytes: 4096 }, connections: 50, query: "1m" } };
  const { limits } = readConfig({
    env: { TAPEDECK_LIMITS_REQUESTS_PER_SECOND: "7" },
    file: { path: "tapedeck.yaml", values },
  });
  expect(limits).toMatchObject({
    webSocket: { messageBytes: 4096, subscriptions: 64 },
    connections: { max: 50, holdsForAddresses: true },
    requestsPerSecond: { max: 7, holdsForAddresses: true },
    queryMs: 60_000,
  });
});

it("none is nothing", () => {
  const env = { TAPEDECK_LIMITS_CONNECTIONS: "0", TAPEDECK_LIMITS_QUERY: "0s", TAPEDECK_LIMITS_UNREAD_BYTES: "1MiB" };
  expect(() => readConfig({ env })).toThrow(/^3 settings are wrong/);
});
