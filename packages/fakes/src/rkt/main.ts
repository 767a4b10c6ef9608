#!/usr/bin/env node
/**
 * The fake as a process of its own, for the demo and for tests that kill it: plays a recording in turns without an
 * end, as if it happened now. Prints one line when it listens: {"port":15441}. Ends at once on SIGINT and SIGTERM, as the
 * real one does. As a forked child it takes the messages "pause" and "resume", and ends with its parent.
 *
 *   --recording <folder>   what to play
 *   --listen <address>     127.0.0.1 and a port, or the port alone; 0 (default): a free one
 *   --speed <factor>       how much faster than recorded (1)
 *   --pause <ms>           between two turns, on the recording's clock (2000)
 *   --dir <folder>         the data directory that GetInfo answers (the recorded one)
 */
import { parseArgs } from "node:util";
import { listenPort, numberOption } from "../number-option.ts";
import { loadRecording } from "./recording.ts";
import { startFakeRkt } from "./server.ts";

const { values } = parseArgs({
  options: {
    recording: { type: "string" },
    listen: { type: "string", default: "0" },
    speed: { type: "string", default: "1" },
    pause: { type: "string", default: "2000" },
    dir: { type: "string" },
  },
});
if (values.recording === undefined) throw new Error("--recording <folder> is missing");

const fake = await startFakeRkt({
  recording: loadRecording(values.recording),
  port: listenPort(values.listen),
  speed: numberOption("speed", values.speed),
  timed: { pauseMs: numberOption("pause", values.pause) },
});
if (values.dir !== undefined) fake.setDir(values.dir);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(0));
process.on("disconnect", () => process.exit(0));
process.on("message", (message) => {
  if (message === "pause") fake.pause();
  if (message === "resume") fake.resume();
});
process.stdout.write(`${JSON.stringify({ port: fake.port })}\n`);
