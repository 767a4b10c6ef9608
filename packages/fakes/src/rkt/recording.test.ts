import { readdirSync, readFileSync } from "node:fs";
import { fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import {
  GetLogsRequest,
  GetLogsResponse,
  InspectPodRequest,
  ListPodsResponse,
  PodState,
} from "@tapedeck/proto/rkt/v1alpha/rkt";
import { messageType } from "@tapedeck/shared/descriptors/registry";
import { describe, expect, it } from "vitest";
import { recordings } from "../recordings.ts";
import { loadRecording, pollRows } from "./recording.ts";

const fixtures = `${recordings.rkt}/`;
const scenarios = readdirSync(fixtures, { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? [entry.name] : [],
);

describe.each(scenarios)("%s", (scenario) => {
  const recording = loadRecording(`${fixtures}${scenario}`);
  const lines = readFileSync(`${fixtures}${scenario}/timeline.jsonl`, "utf8").split("\n").filter(Boolean);
  const timeline = lines.map((line) => JSON.parse(line) as Record<string, JsonValue> & { n: number });

  it("has every step, and every call of the API whose request was recorded", () => {
    const known = timeline.filter((line) => "step" in line || "request" in line);
    expect(recording.rows.map(({ n }) => n)).toEqual(known.map(({ n }) => n));
  });

  it("has in its bytes what its JSON says", () => {
    for (const row of recording.rows) {
      const line = timeline.find(({ n }) => n === row.n);
      const messages = (line?.messages ?? []) as JsonValue[];
      if (row.kind === "step") expect(row.step).toBe(line?.step);
      else if (row.kind === "stream") expect(row.messages).toHaveLength(messages.length);
      else if (row.error !== undefined) expect(line?.error).toMatchObject(row.error);
      else {
        const type = messageType(`v1alpha.${row.rpc}Response`);
        const encoded = Buffer.from(toBinary(type, fromJson(type, line?.response ?? null)));
        expect(encoded.equals(row.response), `${row.rpc} ${row.n}`).toBe(true);
      }
    }
  });
});

it("knows the polls of a recording, tagged or not", () => {
  const count = (name: string) => {
    const recording = loadRecording(`${fixtures}${name}`);
    return [pollRows(recording, "pods").length, pollRows(recording, "images").length];
  };
  expect(count("01-full-lifecycle")).toEqual([70, 70]);
  expect(count("02-fast-and-skipped-states")).toEqual([21, 21]);
  expect(count("06-filters")).toEqual([2, 2]);
  expect(count("08-logs-journal")).toEqual([0, 0]);
  expect(count("10-blocking-start")).toEqual([7, 1]);
  expect(count("11-image-cache")).toEqual([0, 9]);
});

it("has the bytes of a call, a poll, an error, a stream and the events that somebody expected", () => {
  const { rows, expectedEvents } = loadRecording(`${fixtures}01-full-lifecycle`);
  expect(rows[0]).toMatchObject({ kind: "step", n: 0, at: Date.parse("2026-11-20T15:27:29.471Z") });
  expect(rows[0]).toMatchObject({ step: "api-service starting", fields: { bin: "rkt", port: 33229 } });
  expect(expectedEvents).toHaveLength(16);
  expect(expectedEvents[0]).toMatchObject({ type: "EVENT_TYPE_IMAGE_IMPORTED" });

  const inspected = rows.find((row) => row.kind === "unary" && row.rpc === "InspectPod");
  if (inspected?.kind !== "unary") throw new Error("there is one");
  const { id } = InspectPodRequest.decode(inspected.request);
  const listed = pollRows(loadRecording(`${fixtures}01-full-lifecycle`), "pods").map(
    ({ response = Buffer.alloc(0) }) => ListPodsResponse.decode(response).pods[0],
  );
  expect(listed.find((pod) => pod !== undefined)).toMatchObject({ id, state: PodState.POD_STATE_PREPARING, pid: -1 });

  const logs = loadRecording(`${fixtures}08-logs-journal`).rows.filter((row) => row.kind === "stream");
  expect(logs[0]).toMatchObject({ rpc: "GetLogs", messages: [], end: { code: 2 } });
  expect(logs[1]).toMatchObject({ tag: "just started", end: { code: 0 } });
  const [{ bytes } = { bytes: Buffer.alloc(0) }] = logs[1]?.messages ?? [];
  expect(GetLogsResponse.decode(bytes).lines).toHaveLength(2);
  expect(GetLogsRequest.decode(logs.find(({ tag }) => tag === "lines -1")?.request ?? bytes).lines).toBe(-1);
});
