import { once } from "node:events";
import { createServer } from "node:net";
import { resolve } from "node:path";
import { CommandError } from "../../../command-error.ts";
import { projectName } from "../../../recording/project-name.ts";
import { programName, type RecordableCommand } from "../recordable.ts";
import { readSkaffoldCommand, type SkaffoldCommand } from "./command.ts";

/**
 * Variables set Skaffold's port, and the file to which it writes its events at its end. Versions that do not know them
 * ignore them. It waits for no reader.
 */
export const skaffold: RecordableCommand = {
  isIt: (program) => programName(program) === "skaffold",

  async prepare({ command, env, folder }) {
    const options = readSkaffoldCommand(command, env);
    const port = options.rpcPort === undefined ? await freePort() : Number(options.rpcPort);
    if (!Number.isInteger(port) || port <= 0 || port >= 65_536) {
      throw new CommandError(`--rpc-port ${options.rpcPort} is not a fixed port`);
    }
    if (options.subcommand === "render") throw new CommandError("skaffold render has no --rpc-port");
    // With a port, Skaffold serves its API in `version` and the like too, and may complain when they are over at once.
    if (options.rpcPort === undefined && !mayHaveApi(options)) return undefined;
    return {
      upstream: "skaffold",
      isUpstream: options.isSkaffold,
      command,
      env: { SKAFFOLD_RPC_PORT: String(port) },
      project: () => projectName(folder, options.filename),
      labels: options.isSkaffold
        ? { command: ["skaffold", options.subcommand, ...options.choices].filter(Boolean).join(" ") }
        : {},
      address: async () => `127.0.0.1:${port}`,
      ...(mayHaveApi(options) && {
        eventLog: {
          variable: "SKAFFOLD_EVENT_LOG_FILE",
          file: options.eventLogFile && resolve(folder, options.eventLogFile),
          address: `127.0.0.1:${port}`,
        },
      }),
    };
  },
};

/** The subcommands that emit events. */
const withApi: ReadonlySet<string> = new Set("dev debug build run deploy apply test verify exec".split(" "));

/** Whatever may start a Skaffold is asked. */
function mayHaveApi({ isSkaffold, subcommand = "" }: SkaffoldCommand): boolean {
  return !isSkaffold || withApi.has(subcommand);
}

/** Skaffold listens on it a moment later; that another process takes it in between is practically impossible. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
