import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { commandToStart } from "@tapedeck/shared/installation";
import { delay } from "@tapedeck/shared/sync/delay";
import type { UpstreamName } from "@tapedeck/shared/upstreams";
import { CommandError } from "../../command-error.ts";
import { programPath, recordingPath } from "./programs.ts";

type Actor = {
  readonly developer: string;
  readonly project: string;
  readonly upstream: UpstreamName;
  /** Folder in packages/fakes/recordings/<upstream>, of Vagrant a file. */
  readonly recording: string;
  readonly speed: number;
  /** Labels of its sessions. */
  readonly labels: Readonly<Record<string, string>>;
  /** How long a process runs. Default: `lifeMs`, and a minute more for each actor. */
  readonly lifeMs?: number;
  /** The arguments of its fake beside the recording and the speed. `turn` counts its processes. */
  readonly fakeArgs: (port: number, turn: number) => readonly string[];
};

const developer = {
  upstream: "skaffold",
  fakeArgs: (port: number) => ["--loop", "--cache-hits", "--port", String(port)],
} as const;
/**
 * What Trends compares this week with: a Skaffold for each of the days, one after the other. The last one stays, idle,
 * until it is forgotten, and they begin again.
 */
const past = (isDay: (daysAgo: number) => boolean) =>
  ({
    upstream: "skaffold",
    fakeArgs: (port: number, turn: number) => {
      const days = workdays().filter(isDay);
      const [index, last] = [turn % days.length, days.length - 1];
      return ["--past", String(days[index]), ...(index === last ? [] : ["--end"]), "--port", String(port)];
    },
    lifeMs: 130 * 60_000,
  }) as const;
const machines = {
  upstream: "vagrant",
  // Each life begins without jobs, by which Tapedeck knows that it is another server.
  fakeArgs: (port: number) => ["--pause", "5000", "--listen", String(port)],
} as const;
const host = {
  upstream: "rkt",
  project: "host",
  // Each life gets its own data directory and so is a session, like a Skaffold process: see `forgetOld`.
  fakeArgs: (port: number) => [
    ...["--listen", String(port)],
    ...["--dir", `/var/lib/rkt-${new Date().toISOString().slice(0, 16)}`],
  ],
} as const;

/**
 * Real recordings, and of Vagrant a real server's answers. Their builds were stand-ins that took 50 ms, their pods lived
 * for seconds and their machines came up in one: they are played slower.
 */
const actors: readonly Actor[] = [
  {
    ...developer,
    developer: "alice",
    project: "shop",
    recording: "01-dev-success-3-artifacts-5-iterations",
    speed: 0.1,
    labels: { branch: "main", commit: "5c1d0a97e4b2", team: "checkout" },
  },
  {
    ...developer,
    developer: "bob",
    project: "shop",
    recording: "04-deploy-failure-then-recovery",
    speed: 0.08,
    labels: { branch: "fix/manifests", commit: "a0f3e2d91c77", dirty: "true", team: "checkout" },
  },
  {
    ...developer,
    developer: "chris",
    project: "blog",
    recording: "10-status-check-port-forward-sync-app-logs",
    speed: 0.12,
    labels: { branch: "main", commit: "77d20be1f035", team: "content" },
  },
  {
    // Real compilers and a real test, which took seconds.
    ...developer,
    developer: "erin",
    project: "cart",
    recording: "31-dev-compilers-and-tests-fail",
    speed: 0.3,
    labels: { branch: "spike/api", commit: "0be86f7713aa", ticket: "SHOP-12" },
  },
  {
    // Bob's failures are nothing new.
    ...past(() => true),
    developer: "gina",
    project: "shop",
    recording: "04-deploy-failure-then-recovery",
    speed: 0.08,
    labels: { branch: "fix/manifests", commit: "9e1b7cd0a452", team: "checkout" },
  },
  {
    // A failure of the week before, which is over.
    ...past((days) => days > 7),
    developer: "hugo",
    project: "cart",
    recording: "27-dev-build-fails-beside-others",
    speed: 0.5,
    labels: { branch: "main", commit: "31f0c6d8be97" },
  },
  {
    ...machines,
    developer: "dana",
    project: "shop",
    recording: "samples/up.jsonl",
    speed: 0.08,
    labels: { branch: "main", team: "checkout" },
  },
  {
    ...host,
    developer: "node-1",
    recording: "01-full-lifecycle",
    speed: 0.15,
    labels: { rack: "b2" },
  },
];

/** The recordings that the server package includes for the demo. */
export const demoRecordings: readonly Pick<Actor, "upstream" | "recording">[] = actors;

export type DemoSource = Pick<Actor, "developer" | "project" | "upstream" | "labels"> & { readonly address: string };

export type Demo = AsyncDisposable & {
  readonly sources: readonly DemoSource[];
  readonly pause: () => void;
  readonly resume: () => void;
};

/**
 * A process keeps all its events in memory, so it is replaced now and then, as a developer restarts it; and a session
 * that never ended would never be dropped.
 */
const lifeMs = 90 * 60_000;
const between = 60_000;

/** The workdays of the last two weeks, each as a number of days ago, the earliest first. */
function workdays(): readonly number[] {
  const days = Array.from({ length: 13 }, (_, index) => 13 - index);
  return days.filter((day) => ![0, 6].includes(new Date(Date.now() - day * 86_400_000).getDay()));
}

/** Starts the demo's developers and its host: real gRPC servers that play what Skaffold, Vagrant and rkt did. */
export async function startDemo(): Promise<Demo> {
  const over = new AbortController();
  const started = await Promise.allSettled(actors.map((actor, index) => startActor(actor, index, over.signal)));
  const parts = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const demo = {
    sources: parts.map(({ source }) => source),
    pause: () => {
      for (const part of parts) part.send("pause");
    },
    resume: () => {
      for (const part of parts) part.send("resume");
    },
    [Symbol.asyncDispose]: async () => {
      over.abort();
      await Promise.all(parts.map(({ done }) => done));
    },
  };
  const failed = started.find((one) => one.status === "rejected");
  if (failed === undefined) return demo;
  await demo[Symbol.asyncDispose]();
  throw failed.reason;
}

type RunningActor = {
  readonly source: DemoSource;
  readonly send: (message: "pause" | "resume") => void;
  readonly done: Promise<void>;
};

async function startActor(actor: Actor, index: number, signal: AbortSignal): Promise<RunningActor> {
  let turn = 0;
  let current = await startFake(actor, 0, turn);
  let paused = false;
  const { port } = current;
  const { developer, project, upstream, labels } = actor;

  async function stay(): Promise<void> {
    const ownLife = actor.lifeMs ?? lifeMs;
    for (let life = ownLife + index * between; !signal.aborted; life = ownLife) {
      await delay(life, AbortSignal.any([signal, current.exited]));
      await current.stop();
      await delay(2_000, signal);
      if (signal.aborted) return;
      // A port that is taken just then: the actor is absent for a while.
      const next = await startFake(actor, port, ++turn).catch(() => undefined);
      if (next !== undefined) current = next;
      if (paused) current.send("pause");
    }
    // The end came before the first turn, or while another one was starting.
    await current.stop();
  }

  return {
    source: { developer, project, upstream, labels, address: `127.0.0.1:${port}` },
    send: (message) => {
      paused = message === "pause";
      current.send(message);
    },
    done: stay(),
  };
}

type Fake = {
  readonly port: number;
  readonly exited: AbortSignal;
  readonly send: (message: string) => void;
  readonly stop: () => Promise<void>;
};

async function startFake({ upstream, recording, speed, fakeArgs }: Actor, port: number, turn: number): Promise<Fake> {
  const main = programPath(`fakes/${upstream}`);
  const args = [
    main,
    "--recording",
    recordingPath(upstream, recording),
    "--speed",
    String(speed),
    ...fakeArgs(port, turn),
  ];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore", "ipc"], detached: true });
  const exited = new AbortController();
  child.once("exit", () => exited.abort());
  child.once("error", () => exited.abort());
  return {
    port: await portOf(child),
    exited: exited.signal,
    send: (message) => {
      if (child.connected) child.send(message);
    },
    stop: async () => {
      if (exited.signal.aborted) return;
      child.kill("SIGTERM");
      await delay(5_000, exited.signal);
      child.kill("SIGKILL");
    },
  };
}

async function portOf({ stdout }: ChildProcess): Promise<number> {
  if (stdout !== null) {
    for await (const line of createInterface({ input: stdout })) {
      const { port }: { port?: number } = JSON.parse(line);
      stdout.resume();
      if (port !== undefined) return port;
    }
  }
  throw new CommandError(`a part of the demo could not start: run \`${commandToStart()}\` again.`);
}
