import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { type Job, Job_State, VagrantService } from "@tapedeck/proto/vagrant/vagrant";
import { until } from "@tapedeck/shared/testing/until";
import { describe, expect, it, onTestFinished } from "vitest";
import { recordings } from "../recordings.ts";
import { connectTo } from "./client.ts";
import { loadRecording } from "./recording.ts";
import { startFakeVagrant } from "./server.ts";
import { startDemo } from "./timed.ts";

const sample = `${recordings.vagrant}/samples/up.jsonl`;
const recording = loadRecording(sample);

const commandOf = ({ operation }: Job) => (operation?.$case === "command" ? operation.value.command : operation?.$case);

async function demo(options: { readonly speed: number }) {
  const fake = await startFakeVagrant();
  const client = connectTo(fake);
  const leaving = new AbortController();
  const running = startDemo(fake, { recording, pauseMs: 0, ...options, signal: leaving.signal });
  return {
    ...running,
    fake,
    client,
    [Symbol.asyncDispose]: async () => {
      leaving.abort();
      await running.ended;
      client[Symbol.dispose]();
      await fake[Symbol.asyncDispose]();
    },
  };
}

describe("the demo", () => {
  it("brings machines up badly, then well, and destroys them each time, with ids of their own", async () => {
    await using it = await demo({ speed: 1_000 });
    const targets = new Set<string>();
    let jobs: Job[] = [];
    await until(
      async () => {
        for (const { resource_id } of (await it.client.call(VagrantService.listTargets, {})).targets) {
          targets.add(resource_id);
        }
        jobs = await it.client.jobs();
        return it.runs() >= 2 && targets.size >= 3;
      },
      { message: "two runs" },
    );
    const commands = jobs.filter(({ operation }) => operation?.$case === "command").slice(0, 4);
    expect(commands.map(commandOf)).toEqual(["up", "destroy", "up", "destroy"]);
    const ups = commands.filter((job) => commandOf(job) === "up");
    expect(ups.map(({ state }) => state)).toEqual([Job_State.SUCCESS, Job_State.SUCCESS]);
    expect(ups.map(({ result }) => result?.run?.run_result)).toEqual([false, true]);
    expect(new Set(ups.map(({ target_runner }) => JSON.stringify(target_runner))).size).toBe(2);
    expect((await it.client.call(VagrantService.listProjects, {})).projects).toHaveLength(1);

    const texts = await Promise.all(
      ups.map(async ({ id }) => {
        const stream = it.client.follow(id);
        await stream.end;
        return stream.texts().join("\n");
      }),
    );
    expect(texts.filter((text) => text.includes("E: Unable to locate package"))).toHaveLength(1);
    expect(texts.filter((text) => text.includes("web2: provisioned ok"))).toHaveLength(1);
  });

  it("stands still while it is paused, also from one run to the next", async () => {
    await using it = await demo({ speed: 1_000 });
    await until(() => it.runs() > 0, { message: "a run" });
    it.pause();
    const observation = async () => JSON.stringify((await it.client.jobs()).map(({ id, state }) => [id, state]));
    let before = "";
    await until(
      async () => {
        const now = await observation();
        const isSame = now === before;
        before = now;
        return isSame;
      },
      { message: "it to stand still" },
    );
    expect(await observation()).toBe(before);
    const runs = it.runs();
    it.resume();
    await until(() => it.runs() > runs, { message: "another run" });
  });
});

describe("as a process of its own", () => {
  async function start(...args: string[]) {
    const main = new URL("main.ts", import.meta.url).pathname;
    const all = [main, "--recording", sample, "--listen", "127.0.0.1:0", "--pause", "0", ...args];
    const child = spawn(process.execPath, all, { stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    const [text] = (await once(createInterface(child.stdout), "line")) as [string];
    const client = connectTo({ address: `127.0.0.1:${(JSON.parse(text) as { port: number }).port}` });
    onTestFinished(() => client[Symbol.dispose]());
    return { child, client, exited: once(child, "exit") };
  }

  it("says its port, plays, and ends as the real one does", async () => {
    const { child, client, exited } = await start("--speed", "100");
    await until(async () => (await client.jobs()).some((job) => commandOf(job) === "destroy"), { message: "a turn" });
    child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
  });

  it("crashes as the real one does", async () => {
    const { client, exited } = await start();
    await client.raw("FindTarget", Buffer.alloc(0));
    expect(await exited).toEqual([2, null]);
  });

  it.each([
    ["succeeding", 0],
    ["failing", 1],
  ])("plays one %s run and ends with %i", async (run, code) => {
    const { exited } = await start("--speed", "100", "--once", run);
    expect(await exited).toEqual([code, null]);
  });
});
