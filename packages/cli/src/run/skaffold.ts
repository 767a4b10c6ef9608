import { once } from "node:events";
import { createServer } from "node:net";
import { CommandError } from "../command-error.ts";
import { projectName } from "./project-name.ts";
import { programName, type RecordableCommand } from "./recordable.ts";
import { readSkaffoldCommand } from "./skaffold-command.ts";

/** Skaffold listens where it is told, so we choose where. */
export const skaffold: RecordableCommand = {
  isIt: (program) => programName(program) === "skaffold",

  async prepare({ command, env, folder }) {
    const asked = readSkaffoldCommand(command, env);
    const port = asked.rpcPort === undefined ? await freePort() : Number(asked.rpcPort);
    if (!Number.isInteger(port) || port <= 0 || port >= 65_536) {
      throw new CommandError(`nobody can know which port --rpc-port ${asked.rpcPort} means`);
    }
    if (asked.subcommand === "render") throw new CommandError("skaffold render has no --rpc-port");
    return {
      upstream: "skaffold",
      isUpstream: asked.isSkaffold,
      command: asked.command,
      env: { SKAFFOLD_RPC_PORT: String(port) },
      project: () => projectName(folder, asked.filename),
      labels: asked.isSkaffold ? { command: ["skaffold", asked.subcommand].filter(Boolean).join(" ") } : {},
      address: async () => `127.0.0.1:${port}`,
    };
  },
};

/** Skaffold listens on it a moment later; that somebody else takes it in between is as good as impossible. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
