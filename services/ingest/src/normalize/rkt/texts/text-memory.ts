import { hash as digest } from "node:crypto";
import type { HostDetail_TextEnd } from "@tapedeck/proto/tapedeck/v1/event";
import { momentOfNanos, nanosOfMoment } from "@tapedeck/tap/rkt/text-lines";

/** A line as a stream gave it. */
export type GivenLine = {
  readonly pod: string;
  /** Empty: the stream of everything in the pod. */
  readonly app: string;
  readonly text: string;
  /** Its own, or that of the line before which it belongs to; nanoseconds since 1970, 0 when there is none. */
  readonly time: bigint;
};

/**
 * Which lines are recorded. Two rules make each line come once:
 *
 * 1. A stream that was opened anew repeats itself, from some moment on. Lines before the latest time that was seen on
 *    it are known; of those with that very time as many as were seen; from the first later one on all is new. Journals
 *    are in order of time: where a host's clock was set back, lines of that while may be missed by this.
 * 2. A pod's stream repeats what its apps' streams give. Whichever gives a line (its text and time) first tells it, and
 *    when the other one gives it too it is the same line, as often as it comes. The tap gives the pod's lines a while
 *    after they came, so that nearly all lines of apps are told as theirs; what no app gives is the pod's own.
 */
export type TextMemory = {
  /**
   * Takes a line in. Undefined when it is to be recorded; else the text that it is known by, which may be one of the
   * others: those are what it may have been recorded as.
   */
  readonly take: (line: GivenLine, others?: () => readonly string[]) => string | undefined;
  /** Of the line that the stream gave last, 0 before. */
  readonly lastTime: (pod: string, app: string) => bigint;
  /** What the stream gives next may be a repeat; of all streams without a name. */
  readonly mayRepeat: (pod?: string, app?: string) => void;
  /** A line read back from the log. */
  readonly recorded: (line: GivenLine) => void;
  /** All of it: of each stream its end, and after that the lines that only one of the two has given so far. */
  readonly ends: () => HostDetail_TextEnd[];
  /** All of `ends`, in its order, in one part or several. */
  readonly restore: (ends: readonly HostDetail_TextEnd[], part: number) => void;
  readonly pods: () => ReadonlySet<string>;
  /** Gives the apps of its streams. */
  readonly forget: (pod: string) => readonly string[];
};

type Stream = {
  readonly pod: string;
  readonly app: string;
  /** Of the line that it gave last. */
  last: bigint;
  /** The latest time that was seen on it. */
  at: bigint;
  /** Lines with that very time, by hash. */
  readonly known: Map<string, number>;
  mayRepeat: boolean;
  /** While it repeats: up to where, and the lines of that time that are still to come again. */
  repeats: { readonly at: bigint; readonly known: Map<string, number> } | undefined;
};

/** A line that one of the two streams has given more often: an app's (over 0) or the pod's (below). */
type Unpaired = {
  readonly pod: string;
  readonly app: string;
  readonly time: bigint;
  readonly hash: string;
  count: number;
};

/** Only a server that tells no times comes near it. */
const mostOfOneTime = 10_000;
/** About 10 MB; more than the apps of a host write in the while that their pods' streams lag behind. */
const mostUnpaired = 50_000;
/** So many of them, the newest, are kept over a restart. */
const mostDescribed = 10_000;
/** What has no pair by then gets none. */
const unpairedNanos = 300_000_000_000n;

export function textMemory(): TextMemory {
  const streams = new Map<string, Stream>();
  const unpaired = new Map<string, Unpaired>();
  /** What a pod's stream gives up to here was given by its apps, which were too far ahead to remember all. */
  const overtaken = new Map<string, bigint>();

  function streamOf(pod: string, app: string): Stream {
    const key = keyOf(pod, app);
    const known = streams.get(key);
    if (known !== undefined) return known;
    const made: Stream = { pod, app, last: 0n, at: 0n, known: new Map(), mayRepeat: false, repeats: undefined };
    streams.set(key, made);
    return made;
  }

  function repeated(stream: Stream, time: bigint, forms: Forms): Form | undefined {
    if (stream.mayRepeat) stream.repeats = { at: stream.at, known: new Map(stream.known) };
    stream.mayRepeat = false;
    const { repeats } = stream;
    if (repeats === undefined) return undefined;
    if (time < repeats.at) return forms.first;
    if (time === repeats.at) return forms.find(({ hash }) => takeOne(repeats.known, hash));
    stream.repeats = undefined;
    return undefined;
  }

  function advance(stream: Stream, time: bigint, hash: string): void {
    if (time < stream.at) return;
    if (time > stream.at) stream.known.clear();
    stream.at = time;
    stream.known.set(hash, (stream.known.get(hash) ?? 0) + 1);
    const [oldest] = stream.known.keys();
    if (oldest !== undefined && stream.known.size > mostOfOneTime) stream.known.delete(oldest);
  }

  /** As what the other stream has given it before. */
  function paired({ pod, app, time }: GivenLine, forms: Forms): Form | undefined {
    const found = forms.find(({ hash }) => {
      const count = unpaired.get(unpairedKey(pod, time, hash))?.count ?? 0;
      return app === "" ? count > 0 : count < 0;
    });
    if (found === undefined && app === "" && time <= (overtaken.get(pod) ?? -1n)) return forms.first;
    count(pod, app, time, (found ?? forms.first).hash);
    return found;
  }

  /** Of a line that is in the log. */
  function pairRecorded(pod: string, app: string, time: bigint, hash: string): void {
    const isOvertaken = app === "" && time <= (overtaken.get(pod) ?? -1n);
    const isPaired = (unpaired.get(unpairedKey(pod, time, hash))?.count ?? 0) > 0;
    if (!isOvertaken || isPaired) count(pod, app, time, hash);
  }

  function count(pod: string, app: string, time: bigint, hash: string): void {
    const key = unpairedKey(pod, time, hash);
    const one = unpaired.get(key);
    const before = one?.count ?? 0;
    const isPaired = app === "" ? before > 0 : before < 0;
    const now = before + (app === "" ? -1 : 1);
    if (now === 0) unpaired.delete(key);
    else unpaired.set(key, { pod, app: isPaired ? (one?.app ?? app) : app, time, hash, count: now });
    if (unpaired.size > mostUnpaired) dropOldest();
  }

  function dropOldest(): void {
    const [oldest] = unpaired;
    if (oldest === undefined) return;
    const [key, { pod, time, count }] = oldest;
    unpaired.delete(key);
    const before = overtaken.get(pod);
    if (count > 0 && (before === undefined || before < time)) overtaken.set(pod, time);
  }

  function dropHopeless(): void {
    for (const [key, { pod, time }] of unpaired) {
      const all = streams.get(keyOf(pod, ""));
      if (all !== undefined && time < all.at - unpairedNanos) unpaired.delete(key);
    }
  }

  return {
    take(line, others) {
      const { pod, app, text, time } = line;
      const stream = streamOf(pod, app);
      const forms = formsOf(text, others);
      stream.last = time;
      const again = repeated(stream, time, forms);
      if (again !== undefined) return again.text;
      const pair = paired(line, forms);
      advance(stream, time, (pair ?? forms.first).hash);
      return pair?.text;
    },
    lastTime: (pod, app) => streams.get(keyOf(pod, app))?.last ?? 0n,
    mayRepeat(pod, app = "") {
      const some = pod === undefined ? streams.values() : [streamOf(pod, app)];
      for (const stream of some) stream.mayRepeat = true;
    },
    recorded({ pod, app, text, time }) {
      const stream = streamOf(pod, app);
      const hash = hashOf(text);
      stream.last = time;
      advance(stream, time, hash);
      pairRecorded(pod, app, time, hash);
      stream.mayRepeat = true;
    },
    ends() {
      dropHopeless();
      const ends = [...streams.values()]
        .filter(({ known }) => known.size > 0)
        .map(({ pod, app, at, known }) => {
          const hashes = [...known].flatMap(([hash, count]) => Array<string>(count).fill(hash));
          return endOf(pod, app, at, hashes);
        });
      const single = [...unpaired.values()].slice(-mostDescribed).map(({ pod, app, time, hash, count }) => {
        return endOf(pod, app, time, Array<string>(Math.abs(count)).fill(hash));
      });
      return [...ends, ...single];
    },
    restore(ends, part) {
      if (part === 0) {
        streams.clear();
        unpaired.clear();
        overtaken.clear();
      }
      for (const { pod, app, at, sha256 } of ends) {
        const time = at === undefined ? 0n : nanosOfMoment(at);
        const hashes = sha256.map((sha) => Buffer.from(sha).toString("base64"));
        const isEnd = !streams.has(keyOf(pod, app));
        const stream = streamOf(pod, app);
        for (const hash of hashes) {
          if (isEnd) advance(stream, time, hash);
          else pairRecorded(pod, app, time, hash);
        }
        stream.last = stream.at;
        stream.mayRepeat = true;
      }
    },
    pods: () => new Set([...streams.values()].map(({ pod }) => pod)),
    forget(pod) {
      overtaken.delete(pod);
      const forgotten = [...streams.values()].filter((stream) => stream.pod === pod).map(({ app }) => app);
      for (const app of forgotten) streams.delete(keyOf(pod, app));
      for (const [key, line] of unpaired) if (line.pod === pod) unpaired.delete(key);
      return forgotten;
    },
  };
}

function endOf(pod: string, app: string, at: bigint, hashes: readonly string[]): HostDetail_TextEnd {
  return { pod, app, at: momentOfNanos(at), sha256: hashes.map((hash) => Buffer.from(hash, "base64")) };
}

/** A text that a line may be known by. */
type Form = { readonly text: string; readonly hash: string };
type Forms = { readonly first: Form; readonly find: (isIt: (form: Form) => boolean) => Form | undefined };

/** The others are made only where the first is not known. */
function formsOf(text: string, others: () => readonly string[] = () => []): Forms {
  const formOf = (one: string): Form => ({ text: one, hash: hashOf(one) });
  const first = formOf(text);
  let rest: readonly Form[] | undefined;
  return {
    first,
    find(isIt) {
      if (isIt(first)) return first;
      rest ??= others().map(formOf);
      return rest.find(isIt);
    },
  };
}

function unpairedKey(pod: string, time: bigint, hash: string): string {
  return `${pod}/${time}/${hash}`;
}

function takeOne(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0;
  if (count > 0) counts.set(key, count - 1);
  return count > 0;
}

function keyOf(pod: string, app: string): string {
  return `${pod}/${app}`;
}

function hashOf(text: string): string {
  return digest("sha256", text, "base64");
}
