#!/usr/bin/env node
/**
 * Stands in for the program `skaffold` in tests: says what a recorded process said, on the port that it is told, and
 * tells on stdout what it was started with and which signals came.
 *
 *   STAND_IN_RECORDING   folder of the recording
 *   STAND_IN_EXIT        exit code (0)
 */
import { startFakeSkaffold } from "@tapedeck/ingest/upstreams/skaffold/fake";
import { loadRecording } from "@tapedeck/ingest/upstreams/skaffold/recording";
import { until } from "@tapedeck/shared/testing/until";

const { env, argv } = process;
const args = argv.slice(2);
const tell = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`);
const port = Number(/--rpc-port[= ](\d+)/.exec(args.join(" "))?.[1] ?? env.SKAFFOLD_RPC_PORT ?? 0);

const fake = await startFakeSkaffold({ recording: loadRecording(env.STAND_IN_RECORDING ?? ""), port });
tell({ args, port: fake.port, tty: process.stdout.isTTY === true });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    tell({ signal });
    void fake.end("graceful");
  });
}
await fake.play();
if (args.includes("--wait-for-connection")) {
  await until(() => fake.peers.size > 0, { message: "a listener", deadlineMs: 60_000 });
}
if (args[0] !== "dev") await fake.end("graceful");
await fake.ended;
process.exit(Number(env.STAND_IN_EXIT ?? 0));
