#!/usr/bin/env node
/**
 * The fake as a process of its own, for the demo and for tests that kill it. Plays two runs of a project in turns, without
 * end, as if they happened now: `vagrant up` whose provisioner fails, and one that succeeds. Prints one line when it listens:
 * {"port":40000}. Ends at once on SIGINT and SIGTERM, and with code 2 after a request that ends the real server. As a forked
 * child it takes the messages "pause" and "resume", and ends with its parent.
 *
 *   --recording <file>     a run: up.jsonl
 *   --listen <address>     127.0.0.1 and a port, or the port alone; 0 (default): a free one
 *   --speed <factor>       how much faster than recorded (0.1)
 *   --pause <ms>           before the first run and after each (2000)
 *   --once <run>           `succeeding` or `failing`: plays only that run and ends 100 ms later as a vagrant command does,
 *                          with code 0 or 1
 */
import { parseArgs } from "node:util";
import { delay } from "@tapedeck/shared/sync/delay";
import { listenPort, numberOption } from "../number-option.ts";
import { loadRecording } from "./recording.ts";
import { startFakeVagrant } from "./server.ts";
import { newNames, type RunKind, runSteps, startDemo } from "./timed.ts";

const { values } = parseArgs({
  options: {
    recording: { type: "string" },
    listen: { type: "string", default: "0" },
    speed: { type: "string", default: "0.1" },
    pause: { type: "string", default: "2000" },
    once: { type: "string" },
  },
});
if (values.recording === undefined) throw new Error("--recording <file> is missing");
const recording = loadRecording(values.recording);
const speed = numberOption("speed", values.speed);
const pauseMs = numberOption("pause", values.pause);
const once = values.once === undefined ? undefined : runKind(values.once);

// There are few jobs, so that listing all of them stays cheap for days.
const port = listenPort(values.listen);
const fake = await startFakeVagrant({ port, remembered: 50 });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(0));
process.on("disconnect", () => process.exit(0));
void fake.crash.then((reason) => {
  process.stderr.write(`${reason}\n`);
  process.exit(2);
});
process.stdout.write(`${JSON.stringify({ port: fake.port })}\n`);

if (once === undefined) {
  // Only the end of the process ends the demo.
  const demo = startDemo(fake, { recording, speed, pauseMs, signal: new AbortController().signal });
  process.on("message", (message) => {
    if (message === "pause") demo.pause();
    if (message === "resume") demo.resume();
  });
} else {
  await delay(pauseMs);
  await fake.playAsNow(runSteps(recording, once), newNames(fake, recording)).run({ speed });
  await delay(100);
  await fake.leave();
  process.exit(once === "succeeding" ? 0 : 1);
}

function runKind(text: string): RunKind {
  if (text !== "succeeding" && text !== "failing") throw new Error(`--once takes succeeding or failing, not ${text}`);
  return text;
}
