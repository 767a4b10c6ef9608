import { connect } from "@tapedeck/client";
import { apiAt } from "../../api/api.ts";
import { followLanes } from "../../api/follow-lanes.ts";
import { Desktop } from "../../notices/desktop.ts";
import { LoopNotices } from "../../notices/loop-notices.ts";
import type { CommandExit } from "./command-process.ts";

/** Shows on the desktop when a loop of the command fails, and when it is good again. Prints nothing, and nothing waits for it. */
export class RunNotices {
  readonly #url: string | undefined;
  readonly #command: string;
  readonly #desktop = new Desktop();
  readonly #stop = new AbortController();
  readonly #sessions = new Set<string>();
  readonly #loops = new LoopNotices({
    show: (notice) => this.#desktop.show(notice),
    isOwn: (session) => this.#sessions.has(session),
  });
  #source = "";
  #failed: { readonly what: string; readonly why: string } | undefined;

  constructor(url: string | undefined, command: readonly string[]) {
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

  /** The command has ended, and what can be known of it is known. */
  ended({ code, signal }: CommandExit, isUpstream: boolean): void {
    this.#stop.abort();
    const wasRed = this.#loops.isRed(this.#source);
    this.#loops.flush();
    const isInterrupted = signal === "SIGINT" || code === interruptedCode;
    const isFailed = this.#failed !== undefined || (code !== 0 && !isInterrupted);
    if (!isFailed || wasRed || (this.#sessions.size === 0 && !isUpstream)) return;
    const { what, why } = this.#failed ?? { what: exitText({ code, signal }), why: "" };
    this.#desktop.show({ title: `${this.#command}: ${what}`, text: why });
  }

  async #follow(): Promise<void> {
    try {
      const { base, token } = apiAt(this.#url);
      using client = connect({ url: base, ...(token !== undefined && { token }) });
      await followLanes(client, { sources: [this.#source] }, this.#stop.signal, (now) => this.#loops.update(now));
    } catch {
      // A recorder's token reads nothing: then only the command's end is shown.
    }
  }
}

/** A shell's exit code for Ctrl-C. */
const interruptedCode = 130;

function exitText({ code, signal }: CommandExit): string {
  return signal === null ? `exit code ${code}` : `ended by ${signal}`;
}
