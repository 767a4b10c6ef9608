import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Hello } from "@tapedeck/proto/tapedeck/v1/recorder";
import { temporaryFolder } from "@tapedeck/shared/testing/temporary-folder";
import { expect, it } from "vitest";

import { identityOf } from "../../spill/process-identity.ts";
import { endOf } from "./event-log-offsets.ts";
import { takeLeftEventLogs } from "./left-event-logs.ts";
import { OwnEventLog } from "./own-event-log.ts";

const tap = "01JD3F7Q2W8ZK4M5N6P7R8S9T0";
const { first_index: _, ...hello } = Hello.fromPartial({
  tap,
  developer: "alice",
  project: "shop",
  upstream: "skaffold",
});
const never = new AbortController().signal;
/** Lives, and is not this process. */
const living = process.ppid;

function leftNote(home: string): { readonly path: string; readonly change: (fields: object) => void } {
  const left = new OwnEventLog({
    home,
    hello,
    file: undefined,
    to: "",
    isOneProcess: true,
    address: "127.0.0.1:1",
  });
  left.runs(living);
  left.leave(endOf(left.path));
  const path = join(home, `${tap}.events.json`);
  return {
    path,
    change: (fields) => writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...fields })),
  };
}

it("the file of a command that still runs waits, that of one whose number another process has now does not", async () => {
  await using tidy = await temporaryFolder();
  const { path, change } = leftNote(tidy.folder);
  await takeLeftEventLogs(tidy.folder, never);
  expect(existsSync(path)).toBe(true);
  change({ commandStarted: "long ago" });
  await takeLeftEventLogs(tidy.folder, never);
  expect(existsSync(path)).toBe(false);
});

it("so does the file of a tap that still runs, and not of one whose number another process has now", async () => {
  await using tidy = await temporaryFolder();
  const { path, change } = leftNote(tidy.folder);
  change({ ...identityOf(living), command: undefined });
  await takeLeftEventLogs(tidy.folder, never);
  expect(existsSync(path)).toBe(true);
  change({ started: "long ago" });
  await takeLeftEventLogs(tidy.folder, never);
  expect(existsSync(path)).toBe(false);
});
