import { describe, expect, it } from "vitest";
import { readSkaffoldCommand } from "./skaffold-command.ts";

const read = (line: string, env: Record<string, string> = {}) => readSkaffoldCommand(line.split(" "), env);
const ran = (line: string, env: Record<string, string> = {}) => read(line, env).command.join(" ");

describe("a Skaffold command line", () => {
  it.each(["build", "run", "deploy", "apply", "test"])("of the one-shot %s waits for its listener", (name) => {
    expect(ran(`skaffold ${name} -p staging`)).toBe(`skaffold ${name} -p staging --wait-for-connection`);
    expect(ran(`/opt/bin/skaffold -v debug ${name}`)).toBe(`/opt/bin/skaffold -v debug ${name} --wait-for-connection`);
    expect(ran(`skaffold ${name} -- --more`)).toBe(`skaffold ${name} --wait-for-connection -- --more`);
  });

  it.each([
    "skaffold dev",
    "skaffold debug",
    "skaffold render",
    "skaffold version",
    "skaffold",
    "skaffold --help",
    "skaffold -p build dev",
    "skaffold verify",
    "make build",
    "make skaffold build",
  ])("of %s stays as it is", (line) => {
    expect(ran(line)).toBe(line);
  });

  it("that says itself whether it waits stays as it is", () => {
    expect(ran("skaffold build --wait-for-connection=false")).toBe("skaffold build --wait-for-connection=false");
    expect(ran("skaffold build --wait-for-connection")).toBe("skaffold build --wait-for-connection");
    expect(ran("skaffold build", { SKAFFOLD_WAIT_FOR_CONNECTION: "false" })).toBe("skaffold build");
  });

  it("tells the port that the user chose, in every form", () => {
    expect(read("skaffold dev --rpc-port 5001").rpcPort).toBe("5001");
    expect(read("skaffold dev --rpc-port=5002").rpcPort).toBe("5002");
    expect(read("skaffold --rpc-port=5002 dev").subcommand).toBe("dev");
    expect(read("skaffold dev", { SKAFFOLD_RPC_PORT: "5003" }).rpcPort).toBe("5003");
    expect(read("make dev", { SKAFFOLD_RPC_PORT: "5003" }).rpcPort).toBe("5003");
    expect(read("skaffold dev --rpc-port=5002", { SKAFFOLD_RPC_PORT: "5003" }).rpcPort).toBe("5002");
    expect(read("skaffold dev -- --rpc-port=5002").rpcPort).toBeUndefined();
    expect(read("skaffold dev --rpc-http-port=5002").rpcPort).toBeUndefined();
  });

  it("tells which file it reads", () => {
    expect(read("skaffold dev -f shop.yaml").filename).toBe("shop.yaml");
    expect(read("skaffold dev --filename=shop.yaml").filename).toBe("shop.yaml");
    expect(read("skaffold dev", { SKAFFOLD_FILENAME: "env.yaml" }).filename).toBe("env.yaml");
    expect(read("skaffold dev").filename).toBeUndefined();
  });
});
