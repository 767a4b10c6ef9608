import { readFileSync } from "node:fs";
import { fromBinary, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { GetJobStreamRequest, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { messageType, registry } from "@tapedeck/shared/descriptors/registry";
import { describe, expect, it } from "vitest";
import { recordings } from "../recordings.ts";
import { loadRecording, type RecordedRow } from "./recording.ts";

const samples = `${recordings.vagrant}/samples/`;
const linesOf = (file: string) =>
  readFileSync(`${samples}${file}`, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
const answered = (row: RecordedRow | undefined) =>
  row?.kind === "unary" ? row.response : row?.kind === "stream-message" ? row.message : undefined;

describe.each(["up", "up-shipped-cli"])("%s", (name) => {
  const recording = loadRecording(`${samples}${name}.jsonl`);
  const lines = linesOf(`${name}.jsonl`);

  it("has every line: what it says of itself, and what was called", () => {
    expect(recording.name).toBe(name);
    expect(recording.about[0]).toMatch(/^NOT a recording of a real vagrant run/);
    const called = lines.filter(({ actor }) => actor !== "meta");
    expect(recording.rows.map(({ n }) => n)).toEqual(called.map(({ n }) => n));
    expect(recording.about).toHaveLength(lines.length - called.length);
  });

  it("has in its bytes what its JSON says", () => {
    for (const row of recording.rows) {
      const line = lines.find(({ n }) => n === row.n);
      const method = registry.getService("hashicorp.vagrant.Vagrant")?.methods.find((each) => each.name === row.rpc);
      const bytes = answered(row);
      if (method === undefined || bytes === undefined) continue;
      const type = messageType(method.output.typeName);
      const said = fromJson(type, line.message as JsonValue, { registry });
      expect(toJson(type, fromBinary(type, bytes), { registry }), `row ${row.n}`).toEqual(
        toJson(type, said, { registry }),
      );
    }
  });
});

it("gives the bytes of the wire where they were kept", () => {
  const { rows } = loadRecording(`${samples}up.jsonl`);
  for (const { n, b64 } of linesOf("up.wire.jsonl")) {
    expect(answered(rows.find((row) => row.n === n))?.toString("base64")).toBe(b64);
  }
});

it("has requests, answers, errors, and streams with their ends", () => {
  const { rows } = loadRecording(`${samples}up.jsonl`);
  const row = (expected: number) => rows.find(({ n }) => n === expected);
  expect(row(3)).toMatchObject({ kind: "unary", actor: "cli", rpc: "GetVersionInfo", atMs: 2 });
  expect(row(7)).toMatchObject({
    kind: "unary",
    error: { code: 5, details: "failed to locate basis (record not found)" },
  });
  expect(row(25)).toMatchObject({ rpc: "_ListJobs", actor: "recorder", note: "after init job" });
  expect(row(54)).toMatchObject({ kind: "stream-open", stream: "up-late", rpc: "GetJobStream" });
  const opening = row(54);
  const { job_id } = GetJobStreamRequest.decode(opening?.kind === "stream-open" ? opening.request : Buffer.alloc(0));
  expect(job_id).toBe("01M7WSXR6NFM73VJ0F879K4ZNP");
  expect(row(85)).toMatchObject({ kind: "stream-end", stream: "up-late", end: { code: 0, details: "" } });
  expect(row(101)).toMatchObject({ kind: "stream-end", end: { code: 1, details: "context canceled" } });
  const sent = row(4);
  const runner = VagrantService.runnerConfig.requestDeserialize(
    sent?.kind === "stream-send" ? sent.message : Buffer.alloc(0),
  );
  expect(runner).toMatchObject({ event: { value: { runner: { by_id_only: true } } } });
});
