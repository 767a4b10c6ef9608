import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { afterAll } from "vitest";
import { urlOf } from "../../../testing/recorder.ts";
import { installSkaffold, recordingFolder } from "../../../testing/skaffold-program.ts";

export const build = recordingFolder("12-skaffold-build-one-shot");
export const nobody = "127.0.0.1:9";

/** Users' projects for the tests of one file: each has a folder with a spill of its own, and how a user's shell is set up there. */
export function projects() {
  const root = mkdtempSync(join(tmpdir(), "tapedeck-run-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const path = installSkaffold(join(root, "bin"));
  return (recording = build) => {
    const cwd = mkdtempSync(join(root, "project-"));
    writeFileSync(join(cwd, "skaffold.yaml"), "apiVersion: skaffold/v4\nmetadata:\n  name: shop\n");
    const spill = join(cwd, "spill");
    const env = {
      PATH: path,
      TAPEDECK_SPILL: spill,
      TAPEDECK_URL: urlOf(nobody),
      TAPEDECK_DEVELOPER: "alice",
      STAND_IN_RECORDING: recording,
    };
    const waiting = () => (existsSync(spill) ? readdirSync(spill) : []);
    return { cwd, env, spill, waiting };
  };
}

export type ReportedLine = {
  readonly args?: string[];
  readonly port?: number;
  readonly tty?: boolean;
  readonly signal?: string;
};

export const reported = (text: string): ReportedLine[] =>
  text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as ReportedLine);

export const framesOf = (items: readonly Item[], channel: string) =>
  items.flatMap(({ what }) => (what?.$case === "frame" && what.value.channel === channel ? [what.value.bytes] : []));

export const messagesOf = (recording: string, channel: "v1" | "v2") =>
  loadRecording(recording).messages[channel].map(({ bytes }) => bytes);
