import { expect, it } from "vitest";
import { skaffold } from "./skaffold.ts";

const prepared = (...command: string[]) => skaffold.prepare({ command, env: {}, folder: "." });

it.each(["version", "diagnose", "config", ""])(
  "leaves `skaffold %s` alone: a port would change what it prints",
  async (subcommand) => {
    expect(await prepared("skaffold", ...subcommand.split(" ").filter(Boolean))).toBeUndefined();
  },
);

it("records a command that emits events, may start a Skaffold, or has a port of the user's", async () => {
  for (const command of [["skaffold", "build"], ["make"], ["skaffold", "version", "--rpc-port", "50051"]]) {
    const found = await prepared(...command);
    expect(found?.env.SKAFFOLD_RPC_PORT, command.join(" ")).toMatch(/^\d+$/);
  }
});
