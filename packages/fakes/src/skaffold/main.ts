#!/usr/bin/env node
import { parseArgs } from "node:util";
/**
 * The fake as a process of its own, for the demo and for tests that kill it. Prints one line when it listens:
 * {"port":50051}. Stands in for `skaffold` in front of `tapedeck run` too: takes SKAFFOLD_RPC_PORT and ends on SIGINT
 * as the real one does. As a forked child it takes the messages "pause" and "resume", and ends with its parent.
 *
 *   --recording <folder>   what to play
 *   --port <port>          0 (default): a free one
 *   --speed <factor>       how much faster than recorded (1), or "max"
 *   --loop                 the later dev loops again and again, as if now
 *   --cache-hits           with --loop: every other round finds an artifact in the cache
 *   --past <days>          the later dev loops so many days before today, all at once; with --end, ends when both APIs
 *                          were read
 *   --pause <ms>           between two rounds of them, on the recording's clock (2000)
 *   --end                  end when all is played
 *   --exit-code <code>     of the end (0)
 *   --wait-for-connection  as the real flag: with --end, not before somebody has opened v2 Events
 *
 * Other words ("dev", "build") are allowed and mean nothing; --rpc-port is another name for --port.
 */
import { delay } from "@tapedeck/shared/sync/delay";
import { numberOption } from "../number-option.ts";
import { atWork } from "./answers.ts";
import { inThePast } from "./past.ts";
import { loadRecording } from "./recording.ts";
import { startFakeSkaffold } from "./server.ts";

const { values } = parseArgs({
  options: {
    recording: { type: "string" },
    port: { type: "string", default: process.env.SKAFFOLD_RPC_PORT ?? "0" },
    "rpc-port": { type: "string" },
    speed: { type: "string", default: "1" },
    loop: { type: "boolean", default: false },
    "cache-hits": { type: "boolean", default: false },
    past: { type: "string" },
    pause: { type: "string", default: "2000" },
    end: { type: "boolean", default: false },
    "wait-for-connection": { type: "boolean", default: false },
    "exit-code": { type: "string", default: "0" },
  },
  allowPositionals: true,
});
if (values.recording === undefined) throw new Error("--recording <folder> is missing");

const recording = loadRecording(values.recording);
const speed = values.speed === "max" ? "max" : numberOption("speed", values.speed);
const until = values.past && Date.now() - numberOption("past", values.past) * 86_400_000;
const slower = speed === "max" ? 1 : 1 / speed;
const fake = await startFakeSkaffold({
  recording: until ? inThePast(recording, { until, slower }) : recording,
  port: numberOption("port", values["rpc-port"] ?? values.port),
  speed: until ? "max" : speed,
  // The recorded answers are about other counts of events.
  ...(until && { lie: atWork }),
  ...(values.loop && { loop: { pauseMs: numberOption("pause", values.pause), cacheHits: values["cache-hits"] } }),
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void fake.end("graceful"));
process.on("disconnect", () => void fake.end("kill"));
process.on("message", (message) => {
  if (message === "pause") fake.pause();
  if (message === "resume") fake.resume();
});
process.stdout.write(`${JSON.stringify({ port: fake.port })}\n`);

/** A replay of a few hundred events takes less. */
const readMs = 3_000;

void play();
await fake.ended;
process.exit(numberOption("exit-code", values["exit-code"]));

async function play(): Promise<void> {
  await fake.play();
  if (!values.end) return;
  if (until) {
    while (fake.health.v1.opened === 0 || fake.health.v2.opened === 0) await delay(50);
    await delay(readMs);
  }
  while (values["wait-for-connection"] && fake.health.v2.opened === 0) await delay(50);
  await fake.end("graceful");
}
