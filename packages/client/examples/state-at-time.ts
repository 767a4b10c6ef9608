// What a Skaffold looked like at a time, beside now: node state-at-time.ts alice/shop 2026-11-21T04:00:00Z
import { connect, TapedeckError } from "@tapedeck-dev/client";

const tapedeck = connect({ url: process.env.TAPEDECK_URL ?? "http://127.0.0.1:7052" });
const [source = "alice/shop", time = new Date().toISOString()] = process.argv.slice(2);

type BuildState = { readonly artifacts?: Readonly<Record<string, string>> };

/** The status of each artifact's build; `at` undefined: now. */
async function builds(at?: string): Promise<Readonly<Record<string, string>>> {
  const { state } = await tapedeck.state(source, at === undefined ? {} : { at });
  const { v1 } = state as { readonly v1?: { readonly buildState?: BuildState } };
  return v1?.buildState?.artifacts ?? {};
}

try {
  const [then, now] = await Promise.all([builds(time), builds()]);
  for (const artifact of new Set([...Object.keys(then), ...Object.keys(now)])) {
    console.log(`${artifact}: ${then[artifact] ?? "not there"} then, ${now[artifact] ?? "not there"} now`);
  }
} catch (error) {
  if (!(error instanceof TapedeckError)) throw error;
  // Such as before_first: `earliest` is the first position at which the source has a state.
  console.error(error.message);
  process.exitCode = 1;
}
