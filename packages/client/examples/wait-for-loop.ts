// Builds now, and waits for the loop that this sets off: exit code 0 if it succeeds. node wait-for-loop.ts alice/shop
import { connect } from "@tapedeck-dev/client";

const url = process.env.TAPEDECK_URL ?? "http://127.0.0.1:7052";
const [source = "alice/shop", minutes = "10"] = process.argv.slice(2);
const tapedeck = connect({ url });

// Where the log ends before the call: the loop may begin before Skaffold has answered.
const status = (await (await fetch(`${url}/api/v1/status`)).json()) as { readonly logPosition: string };
const after = status.logPosition;

// Skaffold's own API, by way of Tapedeck.
const call = await fetch(`${url}/v2/execute?source=${encodeURIComponent(source)}`, {
  method: "POST",
  body: JSON.stringify({ build: true }),
});
if (!call.ok) throw new Error(`Skaffold was not reached: ${await call.text()}`);
console.log(`called: on record at ${call.headers.get("tapedeck-position")}`);

const signal = AbortSignal.timeout(Number(minutes) * 60_000);
let hasStarted = false;
process.exitCode = 1;
for await (const event of tapedeck.events({ sources: [source], kinds: ["loop.*"], after, signal })) {
  hasStarted ||= event.kind === "loop.started";
  // The end of a loop that was running already.
  if (!hasStarted) continue;
  console.log(event.summary);
  if (event.kind === "loop.started") continue;
  process.exitCode = event.kind === "loop.succeeded" ? 0 : 1;
  break;
}
