import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { toGatewayJson } from "@tapedeck/shared/descriptors/grpc-gateway-json";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { expect, it } from "vitest";
import { recordings } from "../recordings.ts";
import { loadRecording, recordingFolders } from "./recording.ts";

const fixtures = recordings.skaffold;
const resultsOf = (file: string) =>
  readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line) => (line.startsWith('{"result"') ? [(JSON.parse(line) as { result: unknown }).result] : []));

it.each([
  ["07-two-processes-same-port/process-a", "v1-events"],
  ["07-two-processes-same-port/process-a", "v2-events"],
  ["07-two-processes-same-port/process-b", "v1-events"],
  ["07-two-processes-same-port/process-b", "v2-events"],
  ["12c-wait-for-connection", "v1-events"],
  ["12c-wait-for-connection", "v2-events"],
  ["10-status-check-port-forward-sync-app-logs", "v2-applicationLogs"],
] as const)("%s: %s, encoded from its JSON, says the same", (folder, stem) => {
  const { messages } = loadRecording(`${fixtures}/${folder}`);
  const channel = stem === "v2-applicationLogs" ? "logs" : stem === "v1-events" ? "v1" : "v2";
  const type = messageType(channel === "v1" ? "proto.LogEntry" : "proto.v2.Event");
  const json = messages[channel].map(({ bytes }) => toGatewayJson(type, bytes));
  expect(json).toEqual(resultsOf(`${fixtures}/${folder}/${stem}.ndjson`));
  expect(json.length).toBeGreaterThan(0);
});

it("knows versions, generations, and how v2 of 17 ended", () => {
  const all = Object.fromEntries(recordingFolders(fixtures).map((folder) => [basename(folder), loadRecording(folder)]));
  expect(Object.keys(all)).toHaveLength(45);
  const reported = (name: string) => [all[name]?.version, all[name]?.generation];
  expect(reported("process-b")).toEqual(["v2.14.2", "C"]);
  expect(reported("20-old-v1.39.18")).toEqual(["v1.39.18", "C"]);
  expect(reported("21-old-v0.40.0")).toEqual(["v0.40.0", "A"]);
  expect(Object.values(all).filter(({ ends }) => Object.keys(ends).length > 0)).toMatchObject([
    { name: "17-invalid-utf8-in-build-output", ends: { v2: { code: 13 } } },
  ]);
});

it("has every control call that gRPC can make, with its answer", () => {
  const { calls } = loadRecording(`${fixtures}/05-control-api-auto-off`);
  expect(calls).toHaveLength(18);
  expect(calls.map(({ answer }) => answer?.code).filter((code) => code !== 0)).toEqual([6, 6, 3, 6]);
});
