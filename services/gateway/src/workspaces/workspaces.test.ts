import { LogUnusableError } from "@tapedeck/shared/log/jetstream";
import { logStart } from "@tapedeck/shared/log/offset";
import { logNames } from "@tapedeck/shared/log/workspace-logs";
import { silentLogger } from "@tapedeck/shared/service/logger";
import { sourceName } from "@tapedeck/shared/source";
import { testWriter } from "@tapedeck/shared/testing/log-messages";
import { startTestLog } from "@tapedeck/shared/testing/test-log";
import { until } from "@tapedeck/shared/testing/until";
import { expect, it, onTestFinished } from "vitest";
import type { WorkspaceLog } from "./used-workspace.ts";
import { Workspaces } from "./workspaces.ts";

/** Two logs on servers of their own: of `acme`, and of `other`. Any other workspace's can't be used. */
async function start(idleMs?: number) {
  const cleanup = new AsyncDisposableStack();
  onTestFinished(() => cleanup.disposeAsync());
  const logs = {
    acme: cleanup.use(await startTestLog({ workspace: "acme" })),
    other: cleanup.use(await startTestLog({ workspace: "other" })),
  };
  const nats = logs.acme.nc;
  for (const workspace of ["acme", "other"] as const) {
    const source = sourceName({ workspace, developer: "alice", project: "shop", upstream: "skaffold" });
    const started = { session: "A", channel: "tapedeck", kind: "session.started" };
    await testWriter(logs[workspace].writer, source).append(1, started);
  }
  const link = {
    logs: () => ({
      async names() {
        await logNames(nats);
        return ["acme", "other"];
      },
      forget: async () => {},
      async of(workspace: string) {
        if (workspace === "acme" || workspace === "other") return logs[workspace];
        throw new LogUnusableError("its stream has another format.");
      },
    }),
    nats: () => ({ connection: nats, broken: new AbortController().signal }),
  };
  let made = 0;
  const workspaces = cleanup.use(
    new Workspaces<WorkspaceLog>({
      link,
      counted: (reader) => reader,
      logger: silentLogger,
      apisOf(log) {
        made++;
        return log;
      },
      ...(idleMs !== undefined && { idleMs }),
    }),
  );
  return { workspaces, logs, made: () => made };
}

it("a workspace that nobody follows or asks for is forgotten, and made anew", async () => {
  const { workspaces, made } = await start(20);
  const one = await workspaces.apisOf("acme");
  await until(() => workspaces.count === 0, { message: "the workspace to be forgotten" });
  expect(await workspaces.apisOf("acme")).not.toBe(one);
  expect(made()).toBe(2);
});

it("a workspace that is followed stays, while another one is forgotten", async () => {
  const { workspaces } = await start(20);
  const follow = async () => {
    const followed = await workspaces.apisOf("acme");
    const stop = new AbortController();
    const events = followed.log().followBatches({ afterOffset: logStart, subjects: [] }, { signal: stop.signal });
    await events.next();
    const leave = async () => {
      stop.abort();
      await events.return();
    };
    // It may have been forgotten before the first event was there.
    if ((await workspaces.apisOf("acme")) === followed) return { followed, leave };
    await leave();
    return undefined;
  };
  const { followed, leave } = await until(follow, { message: "a workspace in use to be followed" });
  await workspaces.apisOf("other");
  await until(() => workspaces.count === 1, { message: "the other to be forgotten" });
  expect(await workspaces.apisOf("acme")).toBe(followed);
  await leave();
  await until(() => workspaces.count === 0, { message: "nothing to be left" });
});

it("a log that can't be used concerns its callers alone, who learn why", async () => {
  const { workspaces } = await start();
  const [acme, wrong] = [await workspaces.apisOf("acme"), await workspaces.apisOf("wrong")];
  const why = 'the log of the workspace "wrong" can\'t be used: its stream has another format.';
  expect(wrong.log).toThrow(expect.objectContaining({ code: "not_ready", message: why }));
  expect((await acme.log().bounds()).messages).toBe(1);
  await workspaces.check();
  expect(await workspaces.problems()).toEqual([`the workspace "wrong" is away: ${why}`]);
});

it("a log that does not answer is named while another one does, and where none does readiness says so", async () => {
  const { workspaces, logs } = await start();
  await Promise.all(["acme", "other"].map((workspace) => workspaces.apisOf(workspace)));
  await workspaces.check();
  const why = "the log can't be reached: try again in a moment";
  await logs.other.nc.close();
  expect(await workspaces.problems()).toEqual([`the workspace "other" is away: ${why}`]);
  await workspaces.check();
  await logs.acme.nc.close();
  await expect(workspaces.check()).rejects.toMatchObject({ code: "not_ready", message: why });
});
