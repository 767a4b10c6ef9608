#!/usr/bin/env node
/**
 * Stands in for the program `vagrant-go` in tests: a server in its own process, on a port that the system chooses, with
 * one run of a project as soon as somebody polls the jobs, and gone about 100 ms after that. It prints on stdout what
 * it was started with, and logs as Vagrant does.
 *
 *   STAND_IN_RUN   `succeeding` (it ends with code 0), `failing` (1), `none`: it ends at once without a server (4),
 *                  `waiting`: no run, until a signal comes (3), `brief`: it is gone when somebody connects (5), `fleeting`:
 *                  it answers once, and is gone when it is asked again (5)
 */
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { loadRecording } from "@tapedeck/fakes/vagrant/recording";
import { startFakeVagrant } from "@tapedeck/fakes/vagrant/server";
import { newNames, runSteps } from "@tapedeck/fakes/vagrant/timed";
import { GetJobStreamRequest } from "@tapedeck/proto/vagrant/vagrant";
import { delay } from "@tapedeck/shared/sync/delay";
import { until } from "@tapedeck/shared/testing/until";

const { env, argv } = process;
const kind = env.STAND_IN_RUN ?? "succeeding";
const samples = join(import.meta.dirname, "../../../fakes/recordings/vagrant/samples");
const report = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`);

function log(level: "INFO" | "WARN", text: string): void {
  const requested = env.VAGRANT_LOG_LEVEL;
  const isLogged = requested === "info" || (requested === "warn" && level === "WARN");
  if (isLogged)
    process.stderr.write(`${new Date().toISOString()} [${level}]${" ".repeat(6 - level.length)}vagrant: ${text}\n`);
}

report({ args: argv.slice(2), tty: process.stdout.isTTY === true, level: env.VAGRANT_LOG_LEVEL });
if (kind === "none") process.exit(4);

if (kind === "brief") {
  const server = createServer(() => process.exit(5)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  log("INFO", `starting built-in server for local operations: addr=127.0.0.1:${port}`);
  await new Promise(() => {});
}

// Its plugins listen too, with gRPC and without, and nobody must take them for the server.
const mute = createServer().listen(0, "127.0.0.1");
await once(mute, "listening");
const plugin = new Server();
await new Promise((resolve) => plugin.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), resolve));

let versions = 0;
const lie = ({ rpc }: { readonly rpc: string }) => {
  if (kind !== "fleeting" || rpc !== "GetVersionInfo" || ++versions === 1) return undefined;
  setTimeout(() => process.exit(5), 100);
  return { error: { code: 14, details: "going away" } };
};
const fake = await startFakeVagrant({ lie });
log("INFO", `starting built-in server for local operations: addr=${fake.address}`);
log("INFO", "many things:\n  things=\n  | one\n  | two\n  ");
log("WARN", "no plugins");
process.stderr.write("==> web: a deprecated setting\n");

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    report({ signal });
    process.exit(3);
  });
}
await until(() => fake.calls("_ListJobs").made > 0, { message: "somebody to look" });
report({ port: fake.port });
if (kind === "waiting") await new Promise(() => {});
const recording = loadRecording(join(samples, "up.jsonl"));
await fake
  .playAsNow(runSteps(recording, kind === "failing" ? "failing" : "succeeding"), newNames(fake, recording))
  .run({ speed: "max" });
/** The streams of both jobs were heard to their ends, and none of them is asked for once more. */
async function isReceived(): Promise<boolean> {
  const calls = fake.newestCalls.filter(({ rpc }) => rpc === "GetJobStream");
  const jobs = new Set(calls.map(({ request }) => GetJobStreamRequest.decode(request).job_id));
  const { made } = fake.calls("GetJobStream");
  await delay(100);
  return jobs.size >= 2 && fake.streams() === 0 && fake.calls("GetJobStream").made === made;
}
await until(isReceived, { message: "all to be heard" }).catch(() => {});
process.stderr.write("done");
process.exit(kind === "failing" ? 1 : 0);
