import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { pause } from "@tapedeck/shared/streams/pause";
import { CommandError } from "../command-error.ts";

type Actor = {
  readonly developer: string;
  readonly project: string;
  /** Folder in test/fixtures/skaffold. */
  readonly recording: string;
  readonly speed: number;
};

/** Real recordings. Their builds were stand-ins that took 50 ms, so they are played slower. */
const actors: readonly Actor[] = [
  { developer: "alice", project: "shop", recording: "01-dev-success-3-artifacts-5-iterations", speed: 0.1 },
  { developer: "bob", project: "shop", recording: "04-deploy-failure-then-recovery", speed: 0.08 },
  { developer: "chris", project: "blog", recording: "10-status-check-port-forward-sync-app-logs", speed: 0.12 },
];

export type DemoSource = { readonly developer: string; readonly project: string; readonly address: string };

export type Demo = AsyncDisposable & {
  readonly sources: readonly DemoSource[];
  readonly pause: () => void;
  readonly resume: () => void;
};

/** A Skaffold process remembers all it said, so it is followed by a new one now and then, as on a real desk. */
const lifeMs = 90 * 60_000;
const between = 60_000;

/** Starts the demo's developers, each a real gRPC Skaffold server that plays a recorded dev loop again and again. */
export async function startDemo(): Promise<Demo> {
  const over = new AbortController();
  const desks = await Promise.all(actors.map((actor, nth) => startDesk(actor, nth, over.signal)));
  return {
    sources: desks.map(({ source }) => source),
    pause: () => {
      for (const desk of desks) desk.send("pause");
    },
    resume: () => {
      for (const desk of desks) desk.send("resume");
    },
    [Symbol.asyncDispose]: async () => {
      over.abort();
      await Promise.all(desks.map(({ done }) => done));
    },
  };
}

type Desk = {
  readonly source: DemoSource;
  readonly send: (message: "pause" | "resume") => void;
  readonly done: Promise<void>;
};

async function startDesk(actor: Actor, nth: number, signal: AbortSignal): Promise<Desk> {
  let current = await startFake(actor, 0);
  let paused = false;
  const { port } = current;

  async function stay(): Promise<void> {
    for (let life = lifeMs + nth * between; !signal.aborted; life = lifeMs) {
      await pause(life, AbortSignal.any([signal, current.gone]));
      await current.stop();
      if (signal.aborted) return;
      await pause(2_000, signal);
      if (signal.aborted) return;
      // A port that is taken just then: the desk stays empty for a while.
      const next = await startFake(actor, port).catch(() => undefined);
      if (next !== undefined) current = next;
      if (paused) current.send("pause");
    }
  }

  return {
    source: { developer: actor.developer, project: actor.project, address: `127.0.0.1:${port}` },
    send: (message) => {
      paused = message === "pause";
      current.send(message);
    },
    done: stay(),
  };
}

type Fake = {
  readonly port: number;
  readonly gone: AbortSignal;
  readonly send: (message: string) => void;
  readonly stop: () => Promise<void>;
};

async function startFake({ recording, speed }: Actor, port: number): Promise<Fake> {
  const main = fileURLToPath(import.meta.resolve("@tapedeck/ingest/upstreams/skaffold/fake-main"));
  const folder = fileURLToPath(new URL(`../../../../test/fixtures/skaffold/${recording}`, import.meta.url));
  const args = [main, "--recording", folder, "--loop", "--speed", String(speed), "--port", String(port)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore", "ipc"], detached: true });
  const gone = new AbortController();
  child.once("exit", () => gone.abort());
  child.once("error", () => gone.abort());
  return {
    port: await portOf(child),
    gone: gone.signal,
    send: (message) => {
      if (child.connected) child.send(message);
    },
    stop: async () => {
      if (gone.signal.aborted) return;
      child.kill("SIGTERM");
      await pause(5_000, gone.signal);
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
  throw new CommandError("a developer of the demo could not start: run `npm start` again.");
}
