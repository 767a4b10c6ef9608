import { namePart } from "@tapedeck/shared/source";
import { delay } from "@tapedeck/shared/sync/delay";
import type { PushOptions } from "@tapedeck/tap/push/push";
import type { Spill } from "@tapedeck/tap/spill/spill";
import { type OrphanedSpill, orphanedSpills, type TapIdentity } from "@tapedeck/tap/spill/spill-folder";
import type { GrpcTarget } from "../grpc-target.ts";
import type { ConnectionFailure } from "./connection-failure.ts";
import { closedPort } from "./nothing-listens.ts";
import type { PushingTo } from "./push-to.ts";
import { pushWaiting } from "./waiting.ts";

export type PushSource = {
  readonly target: GrpcTarget;
  /** Where taps leave their spills. */
  readonly home: string;
  readonly spill: Spill;
  readonly control: PushOptions["control"];
  readonly stream?: PushOptions["stream"];
  /** The tap's identity, as soon as all of it is known. */
  readonly identity: Promise<TapIdentity>;
  /**
   * Why the target can't be reached now, if that is known: then the first attempt is made when there is something to push,
   * as gRPC takes time and memory.
   */
  readonly away?: ConnectionFailure | undefined;
  /** The developer that the user has named. If undefined, the token's developer is used without a message. */
  readonly developer: string | undefined;
  /** One line for people. */
  readonly printLine: (line: string) => void;
  /** Full name of the source; reported with every connection. */
  readonly onWelcome?: (source: string) => void;
  readonly onSession?: (session: string) => void;
  readonly onAway?: (failure: ConnectionFailure | undefined) => void;
};

export type SourcePush = {
  /**
   * Gives Tapedeck a moment to commit the rest, where it is there, and stops; what is still at the disk then is left to
   * itself. True if all is committed. Resolves at once with `abort`, and else at most a second after the bound.
   */
  readonly finish: (boundMs: number, abort: AbortSignal) => Promise<boolean>;
  readonly failure: () => ConnectionFailure | undefined;
};

/** Between searches for what other taps have left, and for each step forward of one of them. */
const pollMs = 30_000;
const timeoutMs = 10_000;
/** How long stopping may take. */
const stopMs = 1_000;
const hurriedStopMs = 100;
/** The same for one of the same source, which keeps this one waiting. */
const earlierTimeoutMs = 60_000;

/**
 * Pushes what a tap records, under another name where the source is taken. First comes what an earlier tap of the same
 * source has left for the same Tapedeck, so that sessions stay in their order; what others have left comes beside it.
 */
export function pushSource(options: PushSource): SourcePush {
  return new OrderedPush(options);
}

class OrderedPush implements SourcePush {
  readonly #options: PushSource;
  readonly #leaving = new AbortController();
  readonly #stopped = new AbortController();
  readonly #started: Promise<PushingTo | undefined>;
  /** Undefined until the first attempt has succeeded or failed. */
  #isConnected: boolean | undefined;
  #failure: ConnectionFailure | undefined;
  /** All that is known of the target is the given `away`. */
  #isUntried: boolean;
  #others = Promise.resolve();
  #isLeft = false;

  constructor(options: PushSource) {
    this.#options = options;
    this.#isUntried = options.away !== undefined;
    if (this.#isUntried) this.#away(options.away);
    this.#started = this.#start();
    this.#started.catch(() => {}); // met by `finish`
  }

  readonly failure = () => this.#failure;

  readonly finish = async (boundMs: number, abort: AbortSignal): Promise<boolean> => {
    const giveUp = () => {
      this.#leaving.abort();
      this.#stopped.abort();
    };
    abort.addEventListener("abort", giveUp);
    if (abort.aborted) giveUp();
    const end = performance.now() + boundMs;
    const isSomethingLeft = this.#isUntried && !isEmpty(this.#options.spill);
    if (isSomethingLeft && (await closedPort(this.#options.target.address)) === undefined)
      this.#isConnected = undefined;
    const started = new AbortController();
    void this.#started.finally(() => started.abort()).catch(() => {});
    if (this.#isConnected !== false) await delay(boundMs, AbortSignal.any([started.signal, abort]));
    this.#leaving.abort();
    await within(end + stopMs - performance.now(), this.#commit(end, abort), abort);
    this.#isLeft = true;
    this.#stopped.abort();
    abort.removeEventListener("abort", giveUp);
    return isEmpty(this.#options.spill);
  };

  async #commit(end: number, abort: AbortSignal): Promise<void> {
    const own = await this.#started;
    const mayWait = this.#isConnected !== false && !abort.aborted;
    await own?.finish(mayWait ? Math.max(0, Math.ceil(end - performance.now())) : 0);
    await this.#others;
  }

  async #start(): Promise<PushingTo | undefined> {
    const { target, spill, control, stream, onWelcome, onSession } = this.#options;
    const identity = await this.#options.identity;
    if (this.#isLeft) return undefined;
    spill.rename(identity);
    await this.#pushEarlier();
    if (this.#isUntried) await this.#somethingToPush();
    if (this.#leaving.signal.aborted) return undefined;
    const pushTo = await this.#loadPush();
    let taken: string | undefined;
    let isFirst = true;
    return pushTo?.({
      target,
      spill,
      control,
      stream,
      signal: this.#stopped.signal,
      ...(onSession && { onSession }),
      sourceTaken: () => {
        const { project } = spill.hello();
        taken ??= project;
        return { ...spill.hello(), project: nextName(project) };
      },
      onWelcome: (source) => {
        this.#isConnected = true;
        this.#isUntried = false;
        this.#failure = undefined;
        this.#printName(source, taken, isFirst);
        taken = undefined;
        if (isFirst) this.#others = this.#pushOthers();
        isFirst = false;
        onWelcome?.(source);
      },
      onAway: (failure) => {
        this.#isUntried = false;
        this.#away(failure);
      },
    });
  }

  /** Reports a name that the user did not expect. `taken`: the project that another tap records already. */
  #printName(source: string, taken: string | undefined, isFirst: boolean): void {
    const { printLine } = this.#options;
    const [, developer = "", project = ""] = source.split("/");
    const isAnothers = this.#options.developer !== undefined && namePart(this.#options.developer) !== developer;
    if (taken !== undefined)
      printLine(
        `${developer}/${taken} is already recorded by another tap: this one is recorded as ${developer}/${project}`,
      );
    else if (isFirst && isAnothers)
      printLine(`this is recorded as ${developer}/${project}, because the token belongs to ${developer}`);
  }

  #away(failure: ConnectionFailure | undefined): void {
    this.#isConnected = false;
    this.#failure = failure;
    this.#options.onAway?.(failure);
  }

  /** Undefined if the program was installed anew since it was started: what is recorded waits for the next one. */
  async #loadPush() {
    try {
      return (await import("./push-to.ts")).pushTo;
    } catch {
      this.#away({ why: "this program was replaced while it ran", mends: true });
      return undefined;
    }
  }

  /** Resolves when the tap has recorded something or another one has left something, or with the end. */
  async #somethingToPush(): Promise<void> {
    const { home, target, spill } = this.#options;
    const { signal } = this.#leaving;
    const waiting = await orphanedSpills(home);
    if (waiting.some(({ to }) => to === target.name)) return;
    for await (const _ of spill.read(1n, signal)) return;
  }

  /** Ends when nothing is left, or when it is no matter of the network that something is. */
  async #pushEarlier(): Promise<void> {
    const { home, target } = this.#options;
    const { signal } = this.#leaving;
    for (let isAway = true; isAway && !signal.aborted; ) {
      isAway = false;
      let hasAnswered = false;
      await pushWaiting({
        home,
        target,
        isMeant: this.#isOurs,
        timeoutMs: earlierTimeoutMs,
        signal,
        onConnection: (is) => {
          this.#isUntried = false;
          this.#isConnected = is;
          hasAnswered ||= is;
        },
        onLeft: (_, met) => {
          isAway = met?.mends !== false && !hasAnswered;
          if (!hasAnswered) this.#away(met);
        },
      });
    }
  }

  async #pushOthers(): Promise<void> {
    const { home, target } = this.#options;
    const { signal } = this.#leaving;
    const isMeant = (orphan: OrphanedSpill) => orphan.to === target.name && !this.#isOurs(orphan);
    while (!signal.aborted) {
      await pushWaiting({ home, target, isMeant, timeoutMs, signal });
      await delay(pollMs, signal);
    }
  }

  readonly #isOurs = ({ to, hello }: OrphanedSpill): boolean =>
    to === this.#options.target.name && nameOf(hello) === nameOf(this.#options.spill.hello());
}

/** Waits for work that was asked to stop, but at most so long, and barely when in a hurry. */
async function within(ms: number, work: Promise<void>, abort: AbortSignal): Promise<void> {
  const over = new AbortController();
  const late = async () => {
    await delay(ms, AbortSignal.any([over.signal, abort]));
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
