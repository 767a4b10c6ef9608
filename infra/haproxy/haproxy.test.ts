import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { lacking, onMachine } from "../docker/testing/on-machine.ts";

const config = fileURLToPath(new URL("haproxy.cfg", import.meta.url));
const why = lacking(["haproxy"]);

const addresses = (...names: readonly string[]) =>
  Object.fromEntries(names.map((name, index) => [`TAPEDECK_${name}`, `127.0.0.1:${7_000 + index}`]));

const gateway = (number: number) => [`GATEWAY_${number}_HTTP`, `GATEWAY_${number}_GRPC`];
const twoGateways = addresses("BIND_HTTP", "BIND_GRPC", ...gateway(1), ...gateway(2));
const services = ["QUERY_1", "QUERY_2", "INGEST_1", "INGEST_2"];
const inside = addresses("BIND_QUERY", "BIND_INGEST", ...services, ...services.map((name) => `${name}_HEALTH`));

describe.skipIf(why !== undefined)(`haproxy.cfg${why === undefined ? "" : ` (${why})`}`, () => {
  const check = (env: NodeJS.ProcessEnv) => {
    const settings = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    return onMachine("env", [...settings, "haproxy", "-c", "-f", config]);
  };

  it.each<[string, NodeJS.ProcessEnv]>([
    ["before two gateways", twoGateways],
    [
      "before three gateways that speak TLS",
      { ...twoGateways, ...addresses(...gateway(3)), TAPEDECK_GATEWAY_TLS: "yes" },
    ],
    ["on a gateway's machine", inside],
    ["for everything on one machine", { ...twoGateways, ...inside }],
  ])("is valid %s", async (_, env) => {
    await check(env);
  });

  it("is refused with an address missing", async () => {
    await expect(check({ ...twoGateways, TAPEDECK_GATEWAY_2_GRPC: "" })).rejects.toThrow();
  });
});
