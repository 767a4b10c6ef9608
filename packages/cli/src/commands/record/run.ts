import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { upstreamSettings } from "@tapedeck/ingest/for-cli/settings";
import { namePart } from "@tapedeck/shared/source";
import { openSpill } from "@tapedeck/tap/spill/spill";
import { claimOrphan, type TapIdentity } from "@tapedeck/tap/spill/spill-folder";
import { takeTapId } from "@tapedeck/tap/spill/tap-id";
import { fileMemory } from "@tapedeck/tap/spill/tap-memory";
import { taps } from "@tapedeck/tap/taps";
import { sentenceOf } from "../../command-error.ts";
import { print } from "../../display/output.ts";
import { type GrpcTarget, grpcTarget } from "../../grpc-target.ts";
import { sessionLabels } from "../../recording/labels.ts";
import { pushSource } from "../../recording/source-push.ts";
import { spillHome } from "../../recording/spill-home.ts";
import type { RecordOptions } from "./options.ts";
import { pushAllThatWaits } from "./push-all-that-waits.ts";
import { isOfFolder, recordedSource } from "./recorded-source.ts";
import { stateLines } from "./state-lines.ts";
import { stopSignals } from "./stop-signals.ts";

/** How long Ctrl-C waits for Tapedeck to commit the rest. */
const commitMs = 10_000;

const printLine = (line: string) => void print(line);

/** Records what runs already until a signal comes; or, with `waiting`, pushes what was left. Ends this process. */
export async function record(options: RecordOptions): Promise<never> {
  const target = grpcTarget(options.url);
  const home = spillHome(process.env, options.spill);
  const stop = stopSignals();
  const all =
    options.waiting === undefined
      ? await recordUntil({ options, target, home, stop })
      : await pushAllThatWaits({ home, target, from: options.waiting, signal: stop.first, printLine });
  stop.release();
  // A connection that never came to be would keep us: gRPC does not give it up.
  process.exit(all ? 0 : 1);
}

type Recorded = {
  readonly options: RecordOptions;
  readonly target: GrpcTarget;
  readonly home: string;
  readonly stop: { readonly first: AbortSignal; readonly second: AbortSignal };
};

/** True if nothing is left to be pushed. */
async function recordUntil({ options, target, home, stop }: Recorded): Promise<boolean> {
  const { env } = process;
  const source = recordedSource(options, env);
  const { upstream, address, developer, project, redact } = source;
  const settings = { ...upstreamSettings(source) };

  // A spill of a killed run, or one that is not empty, is continued.
  const key = [keyOf(target), developer, project, upstream].map(namePart).join("/");
  using claims = new DisposableStack();
  const id = takeTapId(home, key, (tap) => {
    const dir = join(home, tap);
    if (!existsSync(dir)) return true;
    const claimed = claimOrphan(dir);
    if (claimed !== undefined) claims.use(claimed);
    return claimed !== undefined;
  });
  const identity: TapIdentity = { developer, project, upstream, tap: id.tap, redact, settings, labels: source.labels };
  const folder = join(home, id.tap);
  const spill = await openSpill({ dir: folder, hello: identity, to: target.name });
  const { firstIndex, nextIndex } = spill.state();
  // Its remaining items were recorded under the name that it had then.
  const name = firstIndex < nextIndex ? { project: spill.hello().project } : {};

  const lines = stateLines({ upstream, address, target, signal: stop.first, printLine });
  const tap = await taps[upstream]();
  const running = tap.run({
    address,
    emit: (item) => {
      spill.append(item);
      lines.see(item);
    },
    signal: stop.first,
    skipChannels: "logs" in source && source.logs === "off" ? ["logs"] : [],
    settings,
    memory: fileMemory(home, key, (error) => printLine(`the tap's memory can't be saved: ${sentenceOf(error)}`)),
  });
  const { labels } = source;
  const ofFolder = isOfFolder(upstream) ? sessionLabels(process.cwd(), env) : Promise.resolve({});
  const push = pushSource({
    target,
    home,
    spill,
    control: running.control,
    developer: options.developer || undefined,
    printLine,
    identity: ofFolder.then((found) => ({ ...identity, ...name, labels: { ...found, ...labels } })),
    onWelcome: lines.welcomed,
    onAway: lines.away,
  });

  await running.done;
  const all = await push.finish(commitMs, stop.second);
  const { committed, nextIndex: next } = spill.state();
  if (!all) spill.persist();
  await spill[Symbol.asyncDispose]();
  if (all) id[Symbol.dispose]();
  lines.ended({ waiting: Number(next - 1n - committed), folder, why: push.failure()?.why });
  return all;
}

/** Each Tapedeck server has a tap of its own. */
function keyOf({ name }: GrpcTarget): string {
  return `record-${createHash("sha256").update(name).digest("hex").slice(0, 12)}`;
}
