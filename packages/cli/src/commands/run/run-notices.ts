import { connect } from "@tapedeck/client";
import { delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { apiAt } from "../../api/api.ts";
import { followLanes } from "../../api/follow-lanes.ts";
import { Desktop } from "../../notices/desktop.ts";
import { LoopNotices } from "../../notices/loop-notices.ts";
import type { CommandExit } from "./command-process.ts";

/** The longest wait for a prompt, as for the cause of a failure. */
const goodMs = 1_500;

/** Shows on the desktop when a loop of the command fails, and when it is good again. */
export class RunNotices {
  readonly #url: string | undefined;
  readonly #command: string;
  readonly #desktop: Desktop;
  readonly #stop = new AbortController();
  readonly #sessions = new Set<string>();
  readonly #loops = new LoopNotices({
    show: (notice) => this.#desktop.show(notice),
    isOwn: (session) => this.#sessions.has(session),
  });
  readonly #changed = new Notifier();
  /** What its source was like before, and has done since, is not known yet, or never will be. */
  #following: "not yet" | "known" | "never" = "not yet";
  #source = "";
  #failed: { readonly what: string; readonly why: string } | undefined;

  /** `report`: is called once if notices can't be shown. */
  constructor(url: string | undefined, command: readonly string[], report: (line: string) => void) {
    this.#desktop = new Desktop(report);
    this.#url = url;
    this.#command = command.join(" ");
  }

  welcomed(source: string): void {
    this.#source = source;
  }

  found(session: string): void {
    const isFirst = this.#sessions.size === 0;
    this.#sessions.add(session);
    if (isFirst) void this.#follow();
  }

  /** What failed at the command's end. */
  failed(what: string, why: string): void {
    this.#failed ??= { what, why };
  }

  /** The command has ended, and what can be known of it is recorded. */
  async ended({ code, signal }: CommandExit, isUpstream: boolean, abort: AbortSignal): Promise<void> {
    const isInterrupted = signal === "SIGINT" || code === interruptedCode;
    const isFailed = this.#failed !== undefined || (code !== 0 && !isInterrupted);
    if (code === 0 && !isFailed) await this.#goodAgain(abort);
    this.#stop.abort();
    const wasRed = this.#loops.isRed(this.#source);
    this.#loops.flush();
    if (!isFailed || wasRed || (this.#sessions.size === 0 && !isUpstream)) return;
    const { what, why } = this.#failed ?? { what: exitText({ code, signal }), why: "" };
    this.#desktop.show({ title: `${this.#command}: ${what}`, text: why });
  }

  /** Resolves when it is known that the source is good, or not known in time: a short command is over before its events are read. */
  async #goodAgain(abort: AbortSignal): Promise<void> {
    const isWaiting = () => {
      if (this.#sessions.size === 0 || this.#following === "never") return false;
      const wasRed = this.#loops.isRed(this.#source) && !this.#loops.hasLoop(this.#source);
      return this.#following === "not yet" || wasRed;
    };
    const over = new AbortController();
    let isLate = false;
    const late = delay(goodMs, AbortSignal.any([abort, over.signal])).then(() => {
      isLate = true;
    });
    for (let changed = this.#changed.next(); isWaiting() && !isLate; changed = this.#changed.next())
      await Promise.race([changed, late]);
    over.abort();
  }

  async #follow(): Promise<void> {
    try {
      const { base, token } = apiAt(this.#url);
      using client = connect({ url: base, ...(token !== undefined && { token }) });
      await followLanes(client, { sources: [this.#source] }, this.#stop.signal, (now) => {
        this.#loops.update(now);
        this.#following = "known";
        this.#changed.ring();
      });
    } catch {
      // A recorder's token reads nothing: then only the command's end is shown.
      this.#following = "never";
      this.#changed.ring();
    }
  }
}

/** A shell's exit code for Ctrl-C. */
const interruptedCode = 130;

function exitText({ code, signal }: CommandExit): string {
  return signal === null ? `exit code ${code}` : `ended by ${signal}`;
}
