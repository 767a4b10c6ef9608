import { openLog } from "@tapedeck/shared/log/jetstream";
import { recordedNames } from "@tapedeck/shared/log/workspace-logs";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestLog } from "@tapedeck/shared/testing/test-log";
import { expect, it } from "vitest";
import { OtherWorkspaces } from "./other-workspaces.ts";

it("a server without tokens names the workspaces whose recordings it no longer shows, and how to move them", async () => {
  await using log = await startTestLog();
  const record = async (workspace: string) => {
    const source = sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });
    await using own = await openLog(log.nc, { workspace, syncKnown: true });
    await testWriter(own.writer, source).append(1, { session: "A", channel: "tapedeck", kind: "session.started" });
  };
  const warnings = (workspace: string, auth: "none" | "tokens" = "none") =>
    new OtherWorkspaces({ workspace, auth }, () => recordedNames(log.nc)).warnings();
  expect(await warnings("acme")).toEqual([]);
  await record("default");
  expect(await warnings("default")).toEqual([]);
  expect(await warnings("acme")).toEqual([
    'what was recorded in the workspace "default" stays there, and the workspace "acme" does not show it; to move it: set `workspace` back, `tapedeck export`, set it again, `tapedeck import`',
  ]);
  expect(await warnings("acme", "tokens")).toEqual([]);
  for (const workspace of ["a", "b", "c"]) await record(workspace);
  expect(await warnings("acme")).toEqual([expect.stringContaining('workspace "a", "b", "c" and 1 more stays there')]);
});
