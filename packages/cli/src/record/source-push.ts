import { namePart } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { PushOptions } from "@tapedeck/tap/push/push";
import type { Spill } from "@tapedeck/tap/spill/spill";
import type { OrphanedSpill, TapIdentity } from "@tapedeck/tap/spill/spill-folder";
import type { GrpcTarget } from "../gateway-address.ts";
import { type PushingTo, pushTo } from "./push-to.ts";
import type { Trouble } from "./trouble.ts";
import { pushWaiting } from "./waiting.ts";

export type PushSource = {
  readonly target: GrpcTarget;
  /** Where taps leave their spills. */
  readonly home: string;
  readonly spill: Spill;
  readonly control: PushOptions["control"];
  /** What the tap says of itself, as soon as all of it is known. */
  readonly identity: Promise<TapIdentity>;
  /** The developer that the user has named. If undefined, the token's developer is used without a message. */
  readonly developer: string | undefined;
  /** One line for people. */
  readonly say: (line: string) => void;
  /** Full name of the source; told with every connection. */
  readonly onWelcome?: (source: string) => void;
  readonly onSession?: (session: string) => void;
  readonly onAway?: (trouble: Trouble | undefined) => void;
};

export type SourcePush = {
  /**
   * Gives Tapedeck a moment to commit the rest, where it is there, and stops; what is still at the disk then is left to
   * itself. True if all is committed. Resolves at once with `hurry`, and else at most a second after the bound.
   */
  readonly finish: (boundMs: number, hurry: AbortSignal) => Promise<boolean>;
  readonly trouble: () => Trouble | undefined;
};

/** Between looks for what other taps have left, and for each step forward of one of them. */
const pollMs = 30_000;
const patienceMs = 10_000;
/** How long stopping may take. */
const stopMs = 1_000;
const hurriedStopMs = 100;
/** The same for one of the same source, which keeps this one waiting. */
const earlierPatienceMs = 60_000;

/**
 * Pushes what a tap records, under another name where the source is taken. First comes what an earlier tap of the same
 * source has left for the same Tapedeck, so that sessions stay in their order; what others have left comes beside it.
 */
export function pushSource(options: PushSource): SourcePush {
  const { target, home, spill, control, say, onWelcome, onSession, onAway } = options;
  const leaving = new AbortController();
  const stopped = new AbortController();
  // Undefined: nobody has answered yet, nor failed to.
  let isConnected: boolean | undefined;
  let trouble: Trouble | undefined;
  let others = Promise.resolve();
  let isLeft = false;

  const isOurs = ({ to, hello }: OrphanedSpill) => to === target.name && nameOf(hello) === nameOf(spill.hello());

  function away(met: Trouble | undefined): void {
    isConnected = false;
    trouble = met;
    onAway?.(met);
  }

  async function start(): Promise<PushingTo | undefined> {
    const identity = await options.identity;
    if (isLeft) return undefined;
    spill.rename(identity);
    await pushEarlier();
    if (leaving.signal.aborted) return undefined;
    let taken: string | undefined;
    let isFirst = true;
    return pushTo({
      ...{ target, spill, control, signal: stopped.signal },
      ...(onSession && { onSession }),
      sourceTaken: () => {
        const { project } = spill.hello();
        taken ??= project;
        return { ...spill.hello(), project: nextName(project) };
      },
      onWelcome: (source) => {
        isConnected = true;
        trouble = undefined;
        const [, developer = "", project = ""] = source.split("/");
        const isAnothers = options.developer !== undefined && namePart(options.developer) !== developer;
        if (taken !== undefined)
          say(
            `${developer}/${taken} is already recorded by another tap: this one is recorded as ${developer}/${project}`,
          );
        else if (isFirst && isAnothers)
          say(`this is recorded as ${developer}/${project}, because the token belongs to ${developer}`);
        taken = undefined;
        if (isFirst) others = pushOthers();
        isFirst = false;
        onWelcome?.(source);
      },
      onAway: away,
    });
  }

  /** Ends when nothing is left, or when it is no matter of the network that something is. */
  async function pushEarlier(): Promise<void> {
    for (let isAway = true; isAway && !leaving.signal.aborted; ) {
      isAway = false;
      let hasAnswered = false;
      await pushWaiting({
        ...{ home, target, isMeant: isOurs, patienceMs: earlierPatienceMs, signal: leaving.signal },
        onConnection: (is) => {
          isConnected = is;
          hasAnswered ||= is;
        },
        onLeft: (_, met) => {
          isAway = met?.mends !== false && !hasAnswered;
          if (!hasAnswered) away(met);
        },
      });
    }
  }

  async function pushOthers(): Promise<void> {
    const isMeant = (orphan: OrphanedSpill) => orphan.to === target.name && !isOurs(orphan);
    while (!leaving.signal.aborted) {
      await pushWaiting({ home, target, isMeant, patienceMs, signal: leaving.signal });
      await delay(pollMs, leaving.signal);
    }
  }

  const started = start();
  started.catch(() => {}); // met by `finish`
  return {
    trouble: () => trouble,
    finish: async (boundMs, hurry) => {
      const giveUp = () => {
        leaving.abort();
        stopped.abort();
      };
      hurry.addEventListener("abort", giveUp);
      if (hurry.aborted) giveUp();
      const end = performance.now() + boundMs;
      const begun = new AbortController();
      void started.finally(() => begun.abort()).catch(() => {});
      if (isConnected !== false) await delay(boundMs, AbortSignal.any([begun.signal, hurry]));
      leaving.abort();
      const commit = async () => {
        const own = await started;
        const restMs = isConnected !== false && !hurry.aborted ? Math.max(0, Math.ceil(end - performance.now())) : 0;
        await own?.finish(restMs);
        await others;
      };
      await within(end + stopMs - performance.now(), commit(), hurry);
      isLeft = true;
      stopped.abort();
      hurry.removeEventListener("abort", giveUp);
      return isEmpty(spill);
    },
  };
}

/** Waits for work that was told to stop, but no longer than that, and hardly when there is a hurry. */
async function within(ms: number, work: Promise<void>, hurry: AbortSignal): Promise<void> {
  const over = new AbortController();
  const late = async () => {
    await delay(ms, AbortSignal.any([over.signal, hurry]));
    await delay(hurriedStopMs, over.signal);
  };
  await Promise.race([work, late()]).finally(() => over.abort());
}

function isEmpty(spill: Spill): boolean {
  const { committed, nextIndex } = spill.state();
  return committed >= nextIndex - 1n;
}

function nameOf({ developer, project, upstream }: TapIdentity): string {
  return [developer, project, upstream].map(namePart).join("/");
}

/** "shop" → "shop-2" → "shop-3". */
export function nextName(project: string): string {
  const [, name = project, number] = /^(.*)-(\d{1,3})$/.exec(project) ?? [];
  return number === undefined ? `${project}-2` : `${name}-${Number(number) + 1}`;
}
