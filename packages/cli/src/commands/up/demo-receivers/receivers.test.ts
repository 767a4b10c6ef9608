import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gatewaySettings } from "@tapedeck/gateway/for-cli/settings";
import { settingsReader } from "@tapedeck/shared/service/settings";
import { expect, inject, it } from "vitest";
import { readUpSettings } from "../../../local-server/settings.ts";
import { upCommand } from "../command.ts";
import { receiverEnv, startReceivers } from "./receivers.ts";

const file = `sinks:
  - { name: ops, target: "http://127.0.0.1:18099/hook", filter: { developers: [Alice], kinds: ["*.failed"] } }
  - { name: team, target: https://hooks.example/, format: slack, workspace: globex, filter: { projects: [shop] } }
gateway: { sinkHosts: ["127.0.0.1:18099"] }
`;

it("the demo delivers to its receivers beside the user's own sinks and hosts", async () => {
  const config = join(await mkdtemp(join(inject("serversFolder"), "receivers-")), "tapedeck.yaml");
  await writeFile(config, file);
  const settings = readUpSettings({ data: ".tapedeck", config, demo: true }, {});
  await using stack = new AsyncDisposableStack();
  const receivers = await startReceivers(["otlp", "slack"], stack, () => {});
  const env = { ...receiverEnv(receivers, settings), TAPEDECK_SERVICES_KEY: "key", TAPEDECK_WORKSPACE: "demo" };
  const read = settingsReader({ env });
  const { sinks, allowed } = gatewaySettings(read).sinks;
  read.assertValid();
  expect(sinks.map(({ workspace, sink }) => `${workspace}/${sink}`)).toEqual([
    "demo/ops",
    "globex/team",
    "demo/demo-otlp",
    "demo/demo-slack",
  ]);
  expect(sinks[0]?.definition).toEqual(
    settings.sinks[0] && expect.objectContaining({ filter: settings.sinks[0].filter }),
  );
  expect(allowed).toEqual(["127.0.0.1:18099", ...receivers.map(({ host }) => host)]);
});

it.each([[["--with", "otlp,slack"]], [["--with", "otlp", "--with", "slack"]]])(
  "the flags %j name two receivers",
  (flags) => {
    const command = upCommand().action(() => {});
    command.parse(flags, { from: "user" });
    expect(command.opts().with).toEqual(["otlp", "slack"]);
  },
);

it.each(["fax", "otlp,fax", ""])("--with %j is refused with the names that there are", (names) => {
  const command = upCommand()
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  expect(() => command.parse(["--with", names], { from: "user" })).toThrow(/Allowed choices are otlp, slack\./);
});
