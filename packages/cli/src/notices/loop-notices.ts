import { durationText, plural } from "@tapedeck/client/lanes/format";
import { causeText, failedText, placeText } from "@tapedeck/client/lanes/headline";
import { firstFailure } from "@tapedeck/client/lanes/loop";
import type { Lane, Now } from "@tapedeck/client/lanes/now";
import { type Loop, lengthOf, stepText } from "@tapedeck/client/lanes/step";
import { startTimer, stopTimer, type Timer } from "@tapedeck/shared/sync/timers";
import { spokenSource } from "../display/source-name.ts";
import type { Notice } from "./desktop.ts";

export type NoticeTimes = {
  /** Between two notices: what happens meanwhile is gathered in the next one. */
  readonly gapMs: number;
  /** Between two failures of one source that was not good in between; those within it are not shown. */
  readonly repeatMs: number;
  /** How long a failure waits for its cause. */
  readonly causeMs: number;
};

export const defaultNoticeTimes: NoticeTimes = { gapMs: 10_000, repeatMs: 60_000, causeMs: 3_000 };

export type LoopNoticesOptions = {
  readonly show: (notice: Notice) => void;
  /** Only loops of these sessions are shown. Default: all that end after the first update. */
  readonly isOwn?: (session: string) => boolean;
  readonly times?: NoticeTimes;
};

/** What was shown of a source last, or what it was like before. */
type Known = {
  readonly isRed: boolean;
  /** The last loop, by its start. It may end several times: Skaffold tries a sync that has failed again. */
  readonly position: string;
  /** When its first loop failed since the last good one, and how many have. */
  readonly redSince: number | undefined;
  readonly failures: number;
  /** In milliseconds of a clock that nobody sets. */
  readonly shownAt: number | undefined;
};

type Pending = { readonly since: number; readonly known: Known };

/** The most sources that one notice names, and the characters of why each of them failed. */
const maxLines = 5;
const maxWhy = 80;

/** Shows when a loop of a source fails, and when the source is good again. */
export class LoopNotices implements Disposable {
  readonly #show: LoopNoticesOptions["show"];
  readonly #isOwn: LoopNoticesOptions["isOwn"];
  readonly #times: NoticeTimes;
  #now: Now | undefined;
  readonly #known = new Map<string, Known>();
  readonly #pending = new Map<string, Pending>();
  #shownAt = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;

  constructor({ show, isOwn, times = defaultNoticeTimes }: LoopNoticesOptions) {
    this.#show = show;
    this.#isOwn = isOwn;
    this.#times = times;
  }

  /** Takes the sources after each change. What has failed before the first call is not shown. */
  update(now: Now): void {
    const before = this.#now;
    this.#now = now;
    if (before === undefined) for (const lane of now.values()) this.#takeBefore(lane);
    for (const lane of now.values())
      if (before?.get(lane.source) !== lane) this.#take(this.#ownPart(lane), performance.now());
    this.#schedule();
  }

  /** Whether a failure of the source was shown and it has not been good since, or is about to be shown. */
  isRed(source: string): boolean {
    return this.#pending.get(source)?.known.isRed ?? this.#known.get(source)?.isRed ?? false;
  }

  /** Whether it is known how a loop of the source went that may be shown. */
  hasLoop(source: string): boolean {
    const lane = this.#now?.get(source);
    return lane !== undefined && judgedLoop(this.#ownPart(lane)) !== undefined;
  }

  /** Shows at once what waits. */
  flush(): void {
    stopTimer(this.#timer);
    this.#timer = undefined;
    const pending = [...this.#pending];
    this.#pending.clear();
    const at = performance.now();
    const shown = pending.flatMap(([source, { known }]) => {
      const lane = this.#now?.get(source);
      const before = this.#known.get(source);
      this.#known.set(source, { ...known, shownAt: at });
      return lane === undefined ? [] : [partOf(this.#ownPart(lane), known, before)];
    });
    if (shown.length === 0) return;
    this.#shownAt = at;
    this.#show(noticeOf(shown));
  }

  [Symbol.dispose](): void {
    stopTimer(this.#timer);
    this.#pending.clear();
  }

  #takeBefore(lane: Lane): void {
    const isOwn = this.#isOwn ?? (() => false);
    const judged = judgedLoop({ ...lane, loops: lane.loops.filter(({ session }) => !isOwn(session)) });
    if (judged !== undefined) this.#known.set(lane.source, knownAfter(undefined, judged));
  }

  #ownPart(lane: Lane): Lane {
    const isOwn = this.#isOwn;
    return isOwn === undefined ? lane : { ...lane, loops: lane.loops.filter(({ session }) => isOwn(session)) };
  }

  #take(lane: Lane, at: number): void {
    const { source } = lane;
    const judged = judgedLoop(lane);
    const before = this.#known.get(source);
    const pending = this.#pending.get(source);
    const last = pending?.known ?? before;
    if (judged === undefined || isKnown(judged, last)) return;
    const known = knownAfter(last, judged);
    const isNews = known.isRed ? !before?.isRed || !this.#isRecent(before, at) : before?.isRed === true;
    if (isNews) this.#pending.set(source, { since: pending?.since ?? at, known });
    else {
      this.#pending.delete(source);
      this.#known.set(source, { ...known, shownAt: before?.shownAt });
    }
  }

  #isRecent({ shownAt }: Known, at: number): boolean {
    return shownAt !== undefined && at - shownAt < this.#times.repeatMs;
  }

  #schedule(): void {
    stopTimer(this.#timer);
    this.#timer = undefined;
    if (this.#pending.size === 0) return;
    const { gapMs, causeMs } = this.#times;
    const dueOf = ([source, { since, known }]: [string, Pending]) =>
      known.isRed && isCauseDue(this.#now?.get(source)) ? since + causeMs : since;
    const pending = [...this.#pending];
    // Sources that fail one after the other must not delay the first one for ever.
    const latest = Math.min(...pending.map(([, { since }]) => since)) + causeMs;
    const due = Math.max(this.#shownAt + gapMs, Math.min(latest, Math.max(...pending.map(dueOf))));
    this.#timer = startTimer(() => this.flush(), Math.max(0, due - performance.now())).unref();
  }
}

/**
 * The last loop of which it is known how it went. A round of steps outside of loops is good only when its session is over: another
 * step may follow.
 */
function judgedLoop({ loops, session }: Lane): Loop | undefined {
  return loops.findLast(
    ({ outcome, kind, session: own }) =>
      outcome === "failed" || (outcome === "succeeded" && (kind !== "round" || own !== session)),
  );
}

function isKnown({ position, outcome }: Loop, last: Known | undefined): boolean {
  return position === last?.position && last.isRed === (outcome === "failed");
}

function knownAfter(last: Known | undefined, { outcome, position, endedAt }: Loop): Known {
  const isRed = outcome === "failed";
  const isFirst = isRed && last?.isRed !== true;
  return {
    isRed,
    position,
    redSince: isFirst ? endedAt : last?.redSince,
    failures: isFirst ? 1 : (last?.failures ?? 0) + (isRed ? 1 : 0),
    shownAt: undefined,
  };
}

function failureOf({ loops }: Lane) {
  const loop = loops.findLast(({ outcome }) => outcome === "failed");
  const step = loop && firstFailure(loop.steps);
  return { loop, step, cause: (step ?? loop)?.cause };
}

function isCauseDue(lane: Lane | undefined): boolean {
  return lane !== undefined && failureOf(lane).cause === undefined;
}

/** `line`: what a notice about several sources says. */
type Part = { readonly isRed: boolean; readonly notice: Notice; readonly line: string };

function partOf(lane: Lane, { isRed }: Known, before: Known | undefined): Part {
  return isRed ? failed(lane) : goodAgain(lane, before);
}

function failed(lane: Lane): Part {
  const { loop, step, cause } = failureOf(lane);
  const steps = loop?.steps ?? [];
  const own = loop === undefined || loop.kind === "loop" ? "loop" : stepText(loop);
  const place = placeText(cause);
  const title = `${spokenSource(lane.source)}: ${step === undefined ? own : failedText(steps, step)} failed`;
  const why = causeText(step ?? loop);
  return {
    isRed: true,
    notice: { title, text: [why, place].filter((part) => part !== "").join(" · ") },
    line: cause == null ? title : `${title}: ${why.length <= maxWhy ? why : `${why.slice(0, maxWhy - 1)}…`}`,
  };
}

function goodAgain(lane: Lane, before: Known | undefined): Part {
  const loop = judgedLoop(lane);
  const { redSince, failures = 1 } = before ?? {};
  const red = redSince === undefined || loop?.endedAt === undefined ? undefined : loop.endedAt - redSince;
  const took = loop === undefined ? undefined : lengthOf(loop, loop.endedAt ?? 0);
  const title = `${spokenSource(lane.source)} is good again`;
  const after = red === undefined || red < 0 ? [] : [`after ${durationText(red)}`];
  const text = [
    ...after,
    ...(failures > 1 ? [`${failures} failures`] : []),
    ...(took === undefined ? [] : [`the last ${loop?.kind ?? "loop"} took ${durationText(took)}`]),
  ].join(" · ");
  return { isRed: false, notice: { title, text }, line: [title, ...after].join(" ") };
}

function noticeOf(parts: readonly Part[]): Notice {
  const [first] = parts;
  if (parts.length === 1 && first !== undefined) return first.notice;
  const red = parts.filter(({ isRed }) => isRed);
  const good = parts.length - red.length;
  const counts = [
    ...(red.length > 0 ? [`${plural(red.length, "source")} failed`] : []),
    ...(good > 0 ? [`${good} ${good === 1 ? "is" : "are"} good again`] : []),
  ];
  const lines = [...red, ...parts.filter(({ isRed }) => !isRed)].map(({ line }) => line);
  const more = lines.length > maxLines ? [`and ${lines.length - maxLines} more`] : [];
  return { title: counts.join(", "), text: [...lines.slice(0, maxLines), ...more].join("\n") };
}
