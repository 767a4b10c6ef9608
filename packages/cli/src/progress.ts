import { SingleBar } from "cli-progress";
import { bytesText } from "./display/durations.ts";
import { cleaned, rawErrors } from "./display/output.ts";

export type ProgressOptions = {
  /** "importing shop.tapedeck" */
  readonly what: string;
  /** "events", or "bytes", which are shown as people read them. */
  readonly unit: string;
  /** Undefined if the total is unknown. */
  readonly total?: number | undefined;
  /** Default: stderr, so that stdout stays data. */
  readonly to?: NodeJS.WriteStream;
  readonly now?: () => number;
};

/** Stream and clock of a progress report. The default stream is stderr. */
export type ProgressTo = Pick<ProgressOptions, "to" | "now">;

/** Between two lines in a pipe; what is done sooner has none. */
const lineMs = 3_000;

/** How far a long command is: a bar on a terminal, which is gone when it is done, and a line now and then in a pipe. */
export class Progress implements Disposable {
  readonly #options: Required<Pick<ProgressOptions, "what" | "unit" | "to" | "now">>;
  #bar: SingleBar | undefined;
  #reportedAt: number;
  #total: number | undefined;
  #done = 0;

  constructor({ total, to = rawErrors, now = Date.now, ...options }: ProgressOptions) {
    this.#options = { ...options, what: cleaned(options.what), to, now };
    this.#total = total;
    this.#reportedAt = now();
  }

  get done(): number {
    return this.#done;
  }

  /** How much is done, and how much there is in total. */
  reached(done: number, total: number | undefined = this.#total): void {
    const { to, now } = this.#options;
    this.#done = done;
    this.#total = total;
    if (to.isTTY) this.#draw();
    else if (now() - this.#reportedAt >= lineMs) {
      this.#reportedAt = now();
      to.write(`${this.#line()}\n`);
    }
  }

  #line(): string {
    const { what, unit } = this.#options;
    const [done, total] = [this.#done, this.#total];
    if (total === undefined) return `${what}: ${amount(done, unit)}`;
    return `${what}: ${unit === "bytes" ? bytesText(done) : done.toLocaleString("en")} of ${amount(total, unit)} (${percent(done, total)} %)`;
  }

  #draw(): void {
    const [total = 0, done] = [this.#total, this.#done];
    const format = this.#total === undefined ? "{line}" : "{bar} {line}";
    const options = { format, stream: this.#options.to, clearOnComplete: true, hideCursor: true, linewrap: false };
    this.#bar ??= new SingleBar({ ...options, barsize: 24, barCompleteChar: "█", barIncompleteChar: "░" });
    if (this.#bar.isActive) this.#bar.update(Math.min(done, total), { line: this.#line() });
    else this.#bar.start(total, Math.min(done, total), { line: this.#line() });
    this.#bar.setTotal(total);
  }

  /** Nothing of it stays on the terminal. */
  [Symbol.dispose](): void {
    this.#bar?.stop();
    this.#bar = undefined;
  }
}

function amount(number: number, unit: string): string {
  return unit === "bytes" ? bytesText(number) : `${number.toLocaleString("en")} ${unit}`;
}

function percent(done: number, total: number): number {
  return total === 0 ? 100 : Math.min(100, Math.floor((100 * done) / total));
}
