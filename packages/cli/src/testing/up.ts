import { join } from "node:path";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";
import { type RunningUp, runningUp } from "../local-server/lock.ts";
import { type RunningCli, startCli } from "./cli.ts";

/** Every listener takes a free port. */
const listeners = [
  "GATEWAY_GRPC",
  "GATEWAY_HTTP",
  "QUERY_GRPC",
  "QUERY_HEALTH",
  "INGEST_GRPC",
  "INGEST_HEALTH",
  "NATS",
  "POSTGRES",
];

/** `up` chooses its ports before it starts what listens on them: nobody else may get them meanwhile. */
async function ownPorts(): Promise<Readonly<Record<string, string>>> {
  const ports = await Promise.all(listeners.map(() => ownPort()));
  return Object.fromEntries(listeners.map((name, index) => [`TAPEDECK_${name}_PORT`, String(ports[index])]));
}

export type TestUp = {
  readonly cli: RunningCli;
  readonly running: RunningUp;
  /** The environment in which the other commands find this one. */
  readonly env: Readonly<Record<string, string>>;
  /** Stops it as Ctrl-C does; resolves with the exit code. */
  readonly stop: () => Promise<number | string>;
};

export type StartUp = {
  readonly cwd: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** See StartCli; its files may be seen by itself only then. */
  readonly within?: readonly string[];
};

/** `tapedeck up` in a folder, on free ports, with its data and its users' state in there. */
export async function startUp({ cwd, args = [], env = {}, within = [] }: StartUp): Promise<TestUp> {
  const state = { XDG_STATE_HOME: join(cwd, "state"), XDG_CONFIG_HOME: join(cwd, "config") };
  const cli = startCli(["up", ...args], { cwd, env: { ...(await ownPorts()), ...state, ...env }, within });
  const root = within.length === 0 ? "/" : `/proc/${cli.child.pid}/root`;
  let isOver = false;
  void cli.ended.then(() => {
    isOver = true;
  });
  const running = await until(
    async () => {
      if (isOver) return { failed: `${cli.stdout()}${cli.stderr()}` } as const;
      const found = await runningUp(join(root, cwd, ".tapedeck"));
      if (found?.pid !== cli.child.pid || found?.addresses.http === undefined) return undefined;
      // The addresses are published before the welcome is printed.
      return cli.stdout().includes("HTTP, WebSocket") ? found : undefined;
    },
    { message: "`tapedeck up` to be ready" },
  );
  if ("failed" in running) throw new Error(`tapedeck up ended: ${running.failed}`);
  const { http, grpc } = running.addresses;
  return {
    cli,
    running,
    env: { ...state, TAPEDECK_URL: `http://${http}`, TAPEDECK_GRPC_PORT: `${grpc}`.split(":").at(-1) ?? "" },
    stop: () => {
      cli.child.kill("SIGINT");
      return cli.ended;
    },
  };
}
