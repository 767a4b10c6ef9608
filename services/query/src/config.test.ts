import { parseSettings } from "@tapedeck/shared/service/settings";
import { expect, it } from "vitest";
import { readConfig } from "./config.ts";

const yaml = (text: string) => () => readConfig({ env: {}, file: parseSettings("tapedeck.yaml", text) });

it.each(["grpc", "health"])(
  "a listener beyond loopback (%s) is for the services, which know each other by their key",
  (name) => {
    const text = `query: { ${name}: { host: 0.0.0.0 } }`;
    expect(yaml(text)).toThrow(
      `query.${name}.host: "0.0.0.0" is beyond loopback, which needs services.key (it is for Tapedeck's own services only)`,
    );
    expect(yaml(`${text}\nservices: { key: abc }`)).not.toThrow();
    expect(yaml(`${text}\ninsecure: true`)).not.toThrow();
  },
);

it("its port is bounded by the same settings as the gateway's", () => {
  const { connectionLimits } = yaml("limits: { arrival: 2s, grpc: { connections: 5 } }")();
  expect(connectionLimits).toEqual({ connections: 5, arrivalMs: 2_000 });
});

it("its health endpoint accepts the gateway's hosts", () => {
  expect(yaml("gateway: { hosts: [deck.example.com] }")().health.hosts).toEqual(["deck.example.com"]);
});

it("a query beside the default one says by which address it is reached", () => {
  const { advertise, workspaces } = yaml("query: { advertise: 'b:7053', workspaces: [acme, team-*] }")();
  expect({ advertise, workspaces }).toEqual({ advertise: "b:7053", workspaces: ["acme", "team-*"] });
  expect(yaml("")()).toMatchObject({ advertise: "", workspaces: [] });
  expect(yaml("query: { workspaces: [acme] }")).toThrow("query.workspaces: it needs query.advertise");
  expect(yaml("query: { workspaces: [Acme], advertise: 'b:7053' }")).toThrow('"Acme" is no workspace');
  for (const wrong of ["b", "http://b:7053", "b:0", "b:70530"])
    expect(yaml(`query: { advertise: '${wrong}' }`)).toThrow(`query.advertise: "${wrong}" is not host:port`);
  const alone = "query: { advertise: '127.0.0.1:7053', grpc: { host: 0.0.0.0 } }";
  expect(yaml(`{ services: { key: k }, ${alone} }`)).toThrow(
    "is this machine alone, and query.grpc.host (0.0.0.0) is not",
  );
});
