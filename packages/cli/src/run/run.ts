import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { createServer } from "node:net";
import { constants as system } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { sentenceOf } from "../command-error.ts";
import type { RunOptions } from "../commands/run.ts";
import { type CommandProcess, type Exit, startCommand } from "./command-process.ts";
import { loginName, sessionLabels } from "./labels.ts";
import { projectName } from "./project-name.ts";
import type { CommandRecording } from "./record-command.ts";
import { readSkaffoldCommand } from "./skaffold-command.ts";
import { spillHome } from "./spill-home.ts";

/** Set for the command: a `tapedeck run` inside of it is recorded by the outer one already. */
const insideOf = "TAPEDECK_RUN";

/** Runs a command in our place and records the Skaffold in it. Ends this process as the command ended. */
export async function run(command: readonly string[], options: RunOptions): Promise<void> {
  const { env } = process;
  if (isOn(env.TAPEDECK_OFF) || (env[insideOf] ?? "") !== "") return runAsItIs(command);

  const asked = readSkaffoldCommand(command, env);
  const port = asked.rpcPort === undefined ? await freePort() : Number(asked.rpcPort);
  const recordable = Number.isInteger(port) && port > 0 && port < 65_536;
  const added = recordable ? { SKAFFOLD_RPC_PORT: String(port), [insideOf]: String(process.pid) } : {};
  const ran = await start(recordable ? asked.command : command, { ...env, ...added });

  let recording: CommandRecording | undefined;
  try {
    if (!recordable) throw new Error(`nobody can know which port --rpc-port ${asked.rpcPort} means`);
    if (asked.subcommand === "render") throw new Error("skaffold render has no --rpc-port");
    // Loaded while the command starts.
    const { recordCommand } = await import("./record-command.ts");
    const folder = process.cwd();
    recording = await recordCommand({
      address: `127.0.0.1:${port}`,
      to: options.to,
      spillHome: spillHome(env, options.spill),
      identity: {
        developer: options.developer ?? loginName(),
        project: options.project ?? projectName(folder, asked.filename),
        redact: options.redact,
      },
      labels: sessionLabels(folder, env).then((labels) => ({
        ...labels,
        ...(asked.isSkaffold && { command: ["skaffold", asked.subcommand].filter(Boolean).join(" ") }),
        ...options.label,
      })),
      isUpstream: asked.isSkaffold,
      exited: ran.exited,
      warn,
    });
  } catch (error) {
    warn(`this command is not recorded: ${sentenceOf(error)}`);
  }

  const exit = await ran.exited;
  ran.release();
  if (recording !== undefined) await finish(recording);
  endAs(exit);
}

/** Nothing of us stays: the command takes over this very process, where the system can do that. */
async function runAsItIs([program = "", ...args]: readonly string[]): Promise<void> {
  const path = program.includes("/") ? program : onPath(program);
  if (path !== undefined && process.execve !== undefined) {
    process.execve(path, [program, ...args], process.env as Record<string, string>);
  }
  const ran = await start([program, ...args], process.env);
  endAs(await ran.exited);
}

function endAs({ code, signal }: Exit): never {
  if (signal !== null) process.kill(process.pid, signal);
  process.exit(code ?? 128 + (system.signals[signal ?? "SIGTERM"] ?? 15));
}

/** A signal says: don't wait. */
async function finish(recording: CommandRecording): Promise<void> {
  const hurry = new AbortController();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const quick = () => hurry.abort();
  for (const signal of signals) process.on(signal, quick);
  try {
    const { waiting, folder, reason } = await recording.finish(hurry.signal);
    if (waiting > 0) {
      const why = reason === undefined ? "" : ` (${reason})`;
      warn(`not recorded yet${why}: what was heard waits in ${folder} for the next \`${startThatTakes(folder)}\``);
    }
  } catch (error) {
    warn(`what was not recorded yet is lost: ${sentenceOf(error)}`);
  } finally {
    for (const signal of signals) process.off(signal, quick);
  }
}

/** `up` looks for what waits in the same place, unless it is told another. */
function startThatTakes(folder: string): string {
  const home = dirname(folder);
  const usual = spillHome(process.env);
  return `${home === usual ? "" : `TAPEDECK_SPILL=${home} `}npm start -- --no-demo`;
}

async function start(command: readonly string[], env: NodeJS.ProcessEnv): Promise<CommandProcess> {
  try {
    return await startCommand(command, env);
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    warn(missing ? `${command[0]}: there is no such command` : `${command[0]} can't be run: ${sentenceOf(error)}`);
    // As a shell says it.
    process.exit(missing ? 127 : 126);
  }
}

function onPath(program: string): string | undefined {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** Skaffold listens on it a moment later; that somebody else takes it in between is as good as impossible. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}

function isOn(text: string | undefined): boolean {
  return text !== undefined && !["", "0", "false", "off", "no"].includes(text.toLowerCase());
}

function warn(line: string): void {
  process.stderr.write(`tapedeck: ${line}\n`);
}
