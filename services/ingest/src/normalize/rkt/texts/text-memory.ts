import { hash as digest } from "node:crypto";
import type { HostDetail_TextEnd } from "@tapedeck/proto/tapedeck/v1/event";
import { nanosOfTimestamp, timestampOfNanos } from "@tapedeck/shared/time/timestamp";

/** A line as a stream sent it. */
export type ReceivedLine = {
  readonly pod: string;
  /** Empty: the stream of everything in the pod. */
  readonly app: string;
  readonly text: string;
  /** The line's own time, else that of the line that it continues; nanoseconds since 1970, 0 if none is known. */
  readonly time: bigint;
};

type Stream = {
  readonly pod: string;
  readonly app: string;
  /** The time of its last line. */
  last: bigint;
  /** The latest time of its lines. */
  at: bigint;
  /** Lines with exactly that time, by hash. */
  readonly known: Map<string, number>;
  mayRepeat: boolean;
  /** While the stream repeats: up to which time, and the lines of that time that have not come again yet. */
  repeats: { readonly at: bigint; readonly known: Map<string, number> } | undefined;
};

/** A line that one of the two streams has given more often: the app's (above 0) or the pod's (below 0). */
type Unpaired = {
  readonly pod: string;
  readonly app: string;
  readonly time: bigint;
  readonly hash: string;
  count: number;
};

/** Only a server that sends no times comes near this limit. */
const maxOfOneTime = 10_000;
/** About 10 MB: more than the apps of a host write while their pods' streams lag behind. */
const maxUnpaired = 50_000;
/** The number of newest lines that a restart keeps. */
const maxDescribed = 10_000;
/** A line that has no pair by then stays without one. */
const unpairedNanos = 300_000_000_000n;

/**
 * Decides which lines are recorded. Two rules make each line come once:
 *
 * 1. A stream that is opened again repeats itself. Lines before the latest time that it has given are known; of lines with
 *    exactly that time, as many as it has given are known; all later lines are new. Journals are ordered by time, so lines
 *    may be missed if the host's clock was set back.
 * 2. A pod's stream repeats what its apps' streams give. The first stream that gives a line (its text and time) decides how
 *    it is recorded; the other stream's line is the same one. The tap delays the pod's lines, so that nearly all lines of
 *    apps are recorded as the apps'. Lines that no app gives are the pod's own.
 */
export class TextMemory {
  readonly #streams = new Map<string, Stream>();
  readonly #unpaired = new Map<string, Unpaired>();
  /** Lines of a pod's stream up to this time count as its apps': the apps were too far ahead to remember all. */
  readonly #overtaken = new Map<string, bigint>();

  get pods(): ReadonlySet<string> {
    return new Set([...this.#streams.values()].map(({ pod }) => pod));
  }

  /**
   * Takes a line. Returns undefined if the line is to be recorded, else the text by which it is known: its own, or one of
   * `others`, the forms in which it may have been recorded.
   */
  take(line: ReceivedLine, others?: () => readonly string[]): string | undefined {
    const { pod, app, text, time } = line;
    const stream = this.#streamOf(pod, app);
    const forms = formsOf(text, others);
    stream.last = time;
    const again = repeated(stream, time, forms);
    if (again !== undefined) return again.text;
    const pair = this.#paired(line, forms);
    advance(stream, time, (pair ?? forms.first).hash);
    return pair?.text;
  }

  /** The time of the stream's last line; 0 before the first. */
  lastTime(pod: string, app: string): bigint {
    return this.#streams.get(keyOf(pod, app))?.last ?? 0n;
  }

  /** The next lines of the stream may be a repeat. Without a name: the lines of any stream. */
  mayRepeat(pod?: string, app = ""): void {
    const some = pod === undefined ? this.#streams.values() : [this.#streamOf(pod, app)];
    for (const stream of some) stream.mayRepeat = true;
  }

  /** Takes a line that was read back from the log. */
  recorded({ pod, app, text, time }: ReceivedLine): void {
    const stream = this.#streamOf(pod, app);
    const hash = hashOf(text);
    stream.last = time;
    advance(stream, time, hash);
    this.#pairRecorded(pod, app, time, hash);
    stream.mayRepeat = true;
  }

  /** The whole memory: the end of each stream, then the lines that only one of the two streams has given so far. */
  ends(): HostDetail_TextEnd[] {
    this.#dropHopeless();
    const ends = [...this.#streams.values()]
      .filter(({ known }) => known.size > 0)
      .map(({ pod, app, at, known }) => {
        const hashes = [...known].flatMap(([hash, count]) => Array<string>(count).fill(hash));
        return endOf(pod, app, at, hashes);
      });
    const single = [...this.#unpaired.values()].slice(-maxDescribed).map(({ pod, app, time, hash, count }) => {
      return endOf(pod, app, time, Array<string>(Math.abs(count)).fill(hash));
    });
    return [...ends, ...single];
  }

  /** Takes all of `ends` in order, in one part or several. */
  restore(ends: readonly HostDetail_TextEnd[], part: number): void {
    if (part === 0) {
      this.#streams.clear();
      this.#unpaired.clear();
      this.#overtaken.clear();
    }
    for (const { pod, app, at, sha256 } of ends) {
      const time = at === undefined ? 0n : nanosOfTimestamp(at);
      const hashes = sha256.map((sha) => Buffer.from(sha).toString("base64"));
      const isEnd = !this.#streams.has(keyOf(pod, app));
      const stream = this.#streamOf(pod, app);
      for (const hash of hashes) {
        if (isEnd) advance(stream, time, hash);
        else this.#pairRecorded(pod, app, time, hash);
      }
      stream.last = stream.at;
      stream.mayRepeat = true;
    }
  }

  /** Returns the apps that have a stream in the pod. */
  forget(pod: string): readonly string[] {
    this.#overtaken.delete(pod);
    const forgotten = [...this.#streams.values()].filter((stream) => stream.pod === pod).map(({ app }) => app);
    for (const app of forgotten) this.#streams.delete(keyOf(pod, app));
    for (const [key, line] of this.#unpaired) if (line.pod === pod) this.#unpaired.delete(key);
    return forgotten;
  }

  #streamOf(pod: string, app: string): Stream {
    const key = keyOf(pod, app);
    const known = this.#streams.get(key);
    if (known !== undefined) return known;
    const made: Stream = { pod, app, last: 0n, at: 0n, known: new Map(), mayRepeat: false, repeats: undefined };
    this.#streams.set(key, made);
    return made;
  }

  /** The form in which the other stream has given the line before. */
  #paired({ pod, app, time }: ReceivedLine, forms: Forms): Form | undefined {
    const found = forms.find(({ hash }) => {
      const count = this.#unpaired.get(unpairedKey(pod, time, hash))?.count ?? 0;
      return app === "" ? count > 0 : count < 0;
    });
    if (found === undefined && app === "" && this.#isOvertaken(pod, time)) return forms.first;
    this.#count(pod, app, time, (found ?? forms.first).hash);
    return found;
  }

  /** Counts a line that is in the log. */
  #pairRecorded(pod: string, app: string, time: bigint, hash: string): void {
    const isOvertaken = app === "" && this.#isOvertaken(pod, time);
    const isPaired = (this.#unpaired.get(unpairedKey(pod, time, hash))?.count ?? 0) > 0;
    if (!isOvertaken || isPaired) this.#count(pod, app, time, hash);
  }

  #isOvertaken(pod: string, time: bigint): boolean {
    return time <= (this.#overtaken.get(pod) ?? -1n);
  }

  #count(pod: string, app: string, time: bigint, hash: string): void {
    const key = unpairedKey(pod, time, hash);
    const one = this.#unpaired.get(key);
    const before = one?.count ?? 0;
    const isPaired = app === "" ? before > 0 : before < 0;
    const now = before + (app === "" ? -1 : 1);
    if (now === 0) this.#unpaired.delete(key);
    else this.#unpaired.set(key, { pod, app: isPaired ? (one?.app ?? app) : app, time, hash, count: now });
    if (this.#unpaired.size > maxUnpaired) this.#dropOldest();
  }

  #dropOldest(): void {
    const [oldest] = this.#unpaired;
    if (oldest === undefined) return;
    const [key, { pod, time, count }] = oldest;
    this.#unpaired.delete(key);
    const before = this.#overtaken.get(pod);
    if (count > 0 && (before === undefined || before < time)) this.#overtaken.set(pod, time);
  }

  #dropHopeless(): void {
    for (const [key, { pod, time }] of this.#unpaired) {
      const all = this.#streams.get(keyOf(pod, ""));
      if (all !== undefined && time < all.at - unpairedNanos) this.#unpaired.delete(key);
    }
  }
}

/** The form by which a stream that repeats itself has given the line before. */
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
  if (oldest !== undefined && stream.known.size > maxOfOneTime) stream.known.delete(oldest);
}

function endOf(pod: string, app: string, at: bigint, hashes: readonly string[]): HostDetail_TextEnd {
  return { pod, app, at: timestampOfNanos(at), sha256: hashes.map((hash) => Buffer.from(hash, "base64")) };
}

/** A text that a line may be known by. */
type Form = { readonly text: string; readonly hash: string };
type Forms = { readonly first: Form; readonly find: (isIt: (form: Form) => boolean) => Form | undefined };

/** The other texts are computed only if the first is not known. */
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
