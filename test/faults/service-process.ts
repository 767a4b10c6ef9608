import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { ownPort } from "@tapedeck/shared/testing/own-port";
import { until } from "@tapedeck/shared/testing/until";

export type ServiceName = "ingest" | "query" | "gateway";

/** A service in a separate process, to be killed and restarted. */
export type ServiceProcess = AsyncDisposable & {
  readonly pid: number;
  /** "host:port" by the name of the listener; the same after every start. */
  readonly addresses: Readonly<Record<string, string>>;
  /** Lines of its log so far, of all its lives. */
  readonly logged: readonly string[];
  /** Sends SIGKILL or the given signal; resolves when it is gone. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Restarts it on its old ports, from another checkout if one is given; resolves when it reports ready. */
  start(other?: Checkout): Promise<void>;
  /** Returns the answer of the module that `execArgv` has loaded into the process. */
  ask(message: string): Promise<unknown>;
};

/** Another version of Tapedeck, with its settings. */
export type Checkout = { readonly folder: string; readonly env: Readonly<Record<string, string>> };

const { resolve } = createRequire(import.meta.url);

export type FirstStart = {
  /** A file that gets its whole log, of all its lives. */
  readonly logFile?: string;
};

/** Named as in `addresses`. Each start listens on the same ones. */
const ports: Readonly<Record<ServiceName, readonly string[]>> = {
  ingest: ["grpc", "health"],
  query: ["grpc", "health"],
  gateway: ["grpc", "http"],
};

const keptLines = 2_000;

type Ready = { readonly type: string; readonly message?: string; readonly addresses?: Record<string, string> };

export async function startServiceProcess(
  name: ServiceName,
  env: Readonly<Record<string, string>>,
  execArgv: readonly string[] = [],
  { logFile }: FirstStart = {},
): Promise<ServiceProcess> {
  const logged: string[] = [];
  let pending: Promise<unknown> = Promise.resolve();
  let addresses: Readonly<Record<string, string>> = {};
  const portSettings = await ownPorts(name);
  let child: ChildProcess | undefined;

  async function launch(other?: Checkout): Promise<void> {
    const main = other && join(other.folder, "services", name, "src", "main.ts");
    const started = fork(main ?? resolve(`@tapedeck/${name}/main`), {
      execArgv: [...execArgv],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: { ...inherited(), ...portSettings, ...env, ...other?.env },
    });
    child = started;
    keep(started);
    const [message] = (await Promise.race([
      once(started, "message"),
      once(started, "exit").then((exit) => [{ type: "exited", message: exit.join() }]),
    ])) as [Ready];
    if (message.type === "ready") addresses = message.addresses ?? {};
    else {
      await exited(started);
      throw new Error(`${name} did not start: ${message.message}\n${logged.slice(-5).join("\n")}`);
    }
  }

  function keep({ stderr }: ChildProcess): void {
    let rest = "";
    stderr?.setEncoding("utf8").on("data", (text: string) => {
      if (process.env.TAPEDECK_TEST_LOG !== undefined) process.stderr.write(text);
      if (logFile !== undefined) appendFileSync(logFile, text);
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      logged.push(...lines);
      logged.splice(0, logged.length - keptLines);
    });
  }

  async function kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    if (child === undefined) return;
    child.kill(signal);
    await exited(child);
  }

  await launch();
  return {
    get pid() {
      return child?.pid ?? 0;
    },
    get addresses() {
      return addresses;
    },
    logged,
    kill,
    ask(message) {
      // Answers do not identify their requests, so the next request waits for the last one's answer.
      pending = pending.then(async () => {
        if (child === undefined) throw new Error(`${name} does not run`);
        const answer = once(child, "message");
        child.send(message);
        return (await answer)[0];
      });
      return pending;
    },
    async start(other) {
      // Its dependencies may be away too, and its port may be in use for a moment: retries, as a supervisor would.
      const launched = () => launch(other).then(() => true);
      await until(launched, { message: `${name} to start again` });
    },
    [Symbol.asyncDispose]: () => kill(),
  };
}

/** Ports that no other process gets while the service is gone. */
async function ownPorts(name: ServiceName): Promise<Record<string, string>> {
  const settings: Record<string, string> = {};
  for (const kind of ports[name]) settings[`TAPEDECK_${name}_${kind}_PORT`.toUpperCase()] = String(await ownPort());
  return settings;
}

function inherited(): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE };
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}
