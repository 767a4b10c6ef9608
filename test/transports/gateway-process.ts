import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";

/** A gateway in a separate process, which reports its memory. */
export type GatewayProcess = AsyncDisposable & {
  readonly grpc: string;
  readonly http: string;
  /** Bytes in use: heap and buffers after garbage collection. */
  readonly memory: () => Promise<number>;
};

type Ready = { readonly type: "ready"; readonly addresses: Readonly<Record<"grpc" | "http", string>> };
type Failed = { readonly type: string; readonly message: string };

export async function startGatewayProcess(env: Readonly<Record<string, string>>): Promise<GatewayProcess> {
  const { resolve } = createRequire(import.meta.url);
  const child = fork(resolve("@tapedeck/gateway/main"), {
    env: { ...inherited(), ...env },
    execArgv: ["--expose-gc", "--import", new URL("memory-report.mjs", import.meta.url).href],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const ready = (await answerOf(child)) as Ready | Failed;
  if (!("addresses" in ready)) throw new Error(`the gateway did not start: ${ready.message}`);
  const { grpc, http } = ready.addresses;
  return {
    grpc,
    http,
    async memory() {
      child.send("memory");
      return (await answerOf(child)) as number;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`the gateway's process ended with ${code}`);
  });
  const [answer] = await Promise.race([once(child, "message"), ended]);
  return answer;
}

function inherited(): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE };
}
