// Prints the steps of the loop that runs, or else of the next one, until that loop ends: node follow-loop.ts alice/shop
import { connect } from "@tapedeck-dev/client";

const tapedeck = connect({ url: process.env.TAPEDECK_URL ?? "http://127.0.0.1:7052" });
const sources = [process.argv[2] ?? "alice/shop"];

type Loop = { readonly runner: number; readonly loop: number };

/** The newest loop, if it still runs, and where it began. */
async function runningLoop(): Promise<(Loop & { readonly startPosition: string }) | undefined> {
  for await (const newest of tapedeck.operations({ sources, kinds: ["loop"], perSource: 1 })) {
    return newest.endedAt === null ? newest : undefined;
  }
  return undefined;
}

const running = await runningLoop();
let followed: Loop | undefined = running;
const began = new Map<string, number>();

// Positions are exclusive: the running loop's own start has been seen already.
for await (const event of tapedeck.events({ sources, after: running?.startPosition ?? "now" })) {
  const { kind, subject = "", operation, occurredAt = event.recordedAt, outcome } = event;
  if (kind === "loop.started") followed ??= operation;
  if (operation === undefined || operation.runner !== followed?.runner || operation.loop !== followed.loop) continue;
  const step = `${operation.kind} ${subject}`.trimEnd();
  if (kind.endsWith(".started")) began.set(step, Date.parse(occurredAt));
  const ms = Date.parse(occurredAt) - (began.get(step) ?? Number.NaN);
  if (outcome !== undefined) console.log(`${step} ${outcome}${ms >= 0 ? ` after ${ms / 1_000} s` : ""}`);
  if (kind === "loop.succeeded" || kind === "loop.failed") break;
}
tapedeck.close();
