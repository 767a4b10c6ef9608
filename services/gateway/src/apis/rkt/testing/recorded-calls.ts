import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export type RecordedCall = {
  readonly n: number;
  readonly tag: string;
  readonly rpc: string;
  /** proto3 JSON with the names of the .proto file. */
  readonly request: object;
  /** Bytes of a unary answer. */
  readonly wire?: Uint8Array;
  readonly error?: { readonly code: number; readonly details: string };
};

/** The calls of a scenario that a real rkt answered (packages/fakes/recordings/rkt, whose README says what stands there). */
export function recordedCalls(scenario: string): readonly RecordedCall[] {
  const folder = new URL(`../../../../../../packages/fakes/recordings/rkt/${scenario}/`, import.meta.url);
  const wires = new Map(lines(folder, "wire.jsonl").map(({ n, response }) => [n, Buffer.from(response, "base64")]));
  return lines(folder, "timeline.jsonl")
    .filter(({ rpc, request }) => rpc !== undefined && request !== undefined)
    .map((line) => (wires.has(line.n) ? { ...line, wire: wires.get(line.n) } : line));
}

function lines(folder: URL, name: string) {
  const file = fileURLToPath(new URL(name, folder));
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}
