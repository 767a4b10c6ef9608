import { describe, expect, it } from "vitest";
import { readSkaffoldCommand } from "./command.ts";

const read = (line: string, env: Record<string, string> = {}) => readSkaffoldCommand(line.split(" "), env);

describe("a Skaffold command line", () => {
  it("finds the port that the user chose, in every form", () => {
    expect(read("skaffold dev --rpc-port 5001").rpcPort).toBe("5001");
    expect(read("skaffold dev --rpc-port=5002").rpcPort).toBe("5002");
    expect(read("skaffold --rpc-port=5002 dev").subcommand).toBe("dev");
    expect(read("skaffold dev", { SKAFFOLD_RPC_PORT: "5003" }).rpcPort).toBe("5003");
    expect(read("make dev", { SKAFFOLD_RPC_PORT: "5003" }).rpcPort).toBe("5003");
    expect(read("skaffold dev --rpc-port=5002", { SKAFFOLD_RPC_PORT: "5003" }).rpcPort).toBe("5002");
    expect(read("skaffold dev -- --rpc-port=5002").rpcPort).toBeUndefined();
    expect(read("skaffold dev --rpc-http-port=5002").rpcPort).toBeUndefined();
  });

  it("finds the event log file that the user chose, or refused", () => {
    expect(read("skaffold build --event-log-file e.log").eventLogFile).toBe("e.log");
    expect(read("skaffold build", { SKAFFOLD_EVENT_LOG_FILE: "env.log" }).eventLogFile).toBe("env.log");
    expect(read("make", { SKAFFOLD_EVENT_LOG_FILE: "env.log" }).eventLogFile).toBe("env.log");
    expect(read("skaffold build --event-log-file=", { SKAFFOLD_EVENT_LOG_FILE: "env.log" }).eventLogFile).toBe("");
    expect(read("skaffold build", { SKAFFOLD_EVENT_LOG_FILE: "" }).eventLogFile).toBeUndefined();
  });

  it("names what chooses the parts and where they go, in one form, and nothing else", () => {
    const { choices } = read("skaffold dev -p staging --set token=1 -p=debug --namespace shop -d repo.example/a");
    expect(choices).toEqual(["--profile=staging,debug", "--namespace=shop", "--default-repo=repo.example/a"]);
    expect(read("skaffold dev -n a", { SKAFFOLD_NAMESPACE: "b", SKAFFOLD_KUBE_CONTEXT: "c" }).choices).toEqual([
      "--kube-context=c",
      "--namespace=a",
    ]);
    expect(read("skaffold exec task -- -p other").choices).toEqual([]);
    expect(read("make dev", { SKAFFOLD_PROFILE: "a" }).choices).toEqual([]);
  });

  it("names the file that Skaffold reads", () => {
    expect(read("skaffold dev -f shop.yaml").filename).toBe("shop.yaml");
    expect(read("skaffold dev --filename=shop.yaml").filename).toBe("shop.yaml");
    expect(read("skaffold dev", { SKAFFOLD_FILENAME: "env.yaml" }).filename).toBe("env.yaml");
    expect(read("skaffold dev").filename).toBeUndefined();
  });
});
