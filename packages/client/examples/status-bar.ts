// A line for a status bar (tmux, polybar, an editor), written anew whenever it changes: node status-bar.ts
import { connect } from "@tapedeck-dev/client";

const tapedeck = connect({ url: process.env.TAPEDECK_URL ?? "http://127.0.0.1:7052" });

/** By source: whether its newest loop failed. */
const failing = new Map<string, boolean>();
let written = "";

function write(): void {
  const red = [...failing]
    .filter(([, isFailing]) => isFailing)
    .map(([source]) => source.split("/").slice(1, 3).join("/"));
  const line = red.length === 0 ? "✓ all good" : `✕ ${red.length} failing: ${red.join(", ")}`;
  if (line !== written) console.log(line);
  written = line;
}

// The newest finished loop of each source first, then every loop that ends after that.
let after = "start";
for await (const { source, outcome, endPosition } of tapedeck.operations({
  kinds: ["loop"],
  outcomes: ["succeeded", "failed"],
  perSource: 1,
})) {
  failing.set(source, outcome === "failed");
  if (endPosition !== null && (after === "start" || endPosition > after)) after = endPosition;
}
write();
for await (const { source, kind } of tapedeck.events({ kinds: ["loop.succeeded", "loop.failed"], after })) {
  failing.set(source, kind === "loop.failed");
  write();
}
