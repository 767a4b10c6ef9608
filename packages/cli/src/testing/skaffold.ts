#!/usr/bin/env node
/**
 * Stands in for the program `skaffold` in tests: says what a recorded process said, on the port that it is given and
 * writes it to the event log file that it is given, by flag or variable, as the real one does: neither without a port.
 * Prints on stdout what it was started with and which signals came. `dev` goes on until a signal; all else ends by
 * itself.
 *
 *   STAND_IN_RECORDING   folder of the recording
 *   STAND_IN_EXIT        exit code (0)
 *   STAND_IN_NOW         as if it were now
 *   STAND_IN_STDERR      what it says on stderr, as soon as signals do not kill it
 *   STAND_IN_OLD         it knows neither port nor file
 *   STAND_IN_SHORT       it is over before anybody could connect
 *   STAND_IN_BREAK       v2's stream breaks after so many messages
 *   STAND_IN_LOOPS       a folder: loop 2 begins when it has a file "2", loop 3 when it has "3", and so on; each has the
 *                        times at which it is played
 *   STAND_IN_SAID        a file to which it adds all that it has said, a line each: channel, a space, bytes in base64
 */
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { asNow, breakingAt, movedBy, writeEventLog } from "@tapedeck/fakes/skaffold/event-log";
import { loadRecording, type RecordedMessage } from "@tapedeck/fakes/skaffold/recording";
import { startFakeSkaffold } from "@tapedeck/fakes/skaffold/server";
import type { SkaffoldChannel } from "@tapedeck/shared/skaffold/methods";
import { until } from "@tapedeck/shared/testing/until";
import { loopStartOf } from "@tapedeck/tap/skaffold/v1-frame";

const { env, argv } = process;
const args = argv.slice(2);
const report = (what: object) => process.stdout.write(`${JSON.stringify(what)}\n`);
const flag = (name: string) => new RegExp(`--${name}[= ](\\S+)`).exec(args.join(" "))?.[1];
const port = env.STAND_IN_OLD ? undefined : (flag("rpc-port") ?? env.SKAFFOLD_RPC_PORT);
const file = port === undefined ? undefined : (flag("event-log-file") ?? env.SKAFFOLD_EVENT_LOG_FILE);

const recorded = loadRecording(env.STAND_IN_RECORDING ?? "");
const recording = env.STAND_IN_NOW ? asNow(recorded) : recorded;
const folder = env.STAND_IN_LOOPS;
/** How much later than recorded a message is said. */
let lateMs = 0;
const played: Record<SkaffoldChannel, Buffer[]> = { v1: [], v2: [], logs: [] };
const saying = (channel: SkaffoldChannel, message: RecordedMessage) => {
  const { bytes } = movedBy(channel, message, lateMs);
  played[channel].push(bytes);
  return bytes;
};
await using fake = await startFakeSkaffold({
  ...(folder && { saying }),
  recording: env.STAND_IN_BREAK ? breakingAt(recording, Number(env.STAND_IN_BREAK)) : recording,
  port: env.STAND_IN_SHORT ? 0 : Number(port ?? 0),
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    report({ signal });
    void fake.end("graceful");
  });
}
report({ args, tty: process.stdout.isTTY === true, ...(flag("rpc-port") && { port: fake.port }) });
process.stderr.write(env.STAND_IN_STDERR ?? "");
if (folder) {
  const starts = recording.messages.v1.flatMap(({ at, bytes }, v1) =>
    loopStartOf(bytes) === undefined ? [] : [{ at, v1 }],
  );
  for (const [index, { at, v1 }] of starts.entries()) {
    if (index === 0) continue;
    await fake.playUntil({ v1 });
    const isLet = until(() => existsSync(join(folder, `${index + 1}`)), {
      message: `loop ${index + 1} to be let begin`,
    });
    await Promise.race([isLet, fake.ended]);
    lateMs = Math.max(lateMs, Date.now() - Math.floor(at));
  }
}
await fake.play();
if (args[0] !== "dev") await fake.end("graceful");
await fake.ended;
const { v1, v2 } = recording.messages;
const said = folder ? played : { v1: v1.map(({ bytes }) => bytes), v2: v2.map(({ bytes }) => bytes) };
if (file) writeEventLog(file, said);
for (const channel of ["v1", "v2"] as const) {
  const text = said[channel].map((bytes) => `${channel} ${bytes.toString("base64")}\n`).join("");
  if (env.STAND_IN_SAID) appendFileSync(env.STAND_IN_SAID, text);
}
process.exit(Number(env.STAND_IN_EXIT ?? 0));
