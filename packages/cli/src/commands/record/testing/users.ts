import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadRecording } from "@tapedeck/fakes/skaffold/recording";
import type { Item } from "@tapedeck/proto/tapedeck/v1/recorder";
import { until } from "@tapedeck/shared/testing/until";
import { afterAll } from "vitest";
import { type RunningCli, startCli } from "../../../testing/cli.ts";
import { type TestRecorder, urlOf } from "../../../testing/recorder.ts";
import { installSkaffold, recordingFolder } from "../../../testing/skaffold-program.ts";

export const folder = recordingFolder("12-skaffold-build-one-shot");
export const recording = loadRecording(folder);

export const framesOf = (items: readonly Item[], channel: "v1" | "v2") =>
  items.flatMap(({ what }) => (what?.$case === "frame" && what.value.channel === channel ? [what.value.bytes] : []));
export const said = (channel: "v1" | "v2") => recording.messages[channel].map(({ bytes }) => bytes);

/** Users' folders for the tests of one file: each is a project, and what waits of it. */
export function users() {
  const root = mkdtempSync(join(tmpdir(), "tapedeck-record-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const path = installSkaffold(join(root, "bin"));
  return (to: string) => {
    const cwd = mkdtempSync(join(root, "user-"));
    writeFileSync(join(cwd, "skaffold.yaml"), "apiVersion: skaffold/v4\nmetadata:\n  name: shop\n");
    const spill = join(cwd, "spill");
    const env = { PATH: path, TAPEDECK_SPILL: spill, TAPEDECK_URL: urlOf(to), STAND_IN_RECORDING: folder };
    const cli = (args: readonly string[], more = {}) => startCli(args, { cwd, env: { ...env, ...more } });
    return {
      cli,
      run: (developer: string, more = {}) => cli(["run", "--developer", developer, "--", "skaffold", "build"], more),
      record: (address: string, ...more: string[]) =>
        cli(["record", "--upstream", "skaffold", "--address", address, "--developer", "alice", ...more]),
      /** Folders of spills. */
      waiting: () => (existsSync(spill) ? readdirSync(spill).filter((name) => /^[0-9A-Z]{26}$/.test(name)) : []),
    };
  };
}

export const lines = ({ stdout }: RunningCli) => stdout().split("\n").slice(0, -1);
export const reports = (cli: RunningCli, text: string) =>
  until(() => lines(cli).some((line) => line.includes(text)), { message: `"${text}" to be told` });
export const has = ({ items }: TestRecorder, channel: "v1" | "v2") =>
  until(() => framesOf(items, channel).length >= said(channel).length, { message: `all of ${channel}` });
