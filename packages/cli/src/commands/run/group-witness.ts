import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { isatty } from "node:tty";
import { delay } from "@tapedeck/shared/sync/delay";

const timeoutMs = 5_000;
/** A signal that has been sent to us comes when our process gets its turn. */
const arrivalMs = 2_000;

/**
 * Determines whether a signal came to the whole process group (Ctrl-C in the terminal, `timeout`), so that the command
 * has it already and must not get it twice, or to this process alone (`kill`). Node does not show which, so a `cat`
 * runs in the same group: a signal to the group kills it, otherwise it echoes its input. A process with a pending fatal
 * signal no longer runs, so the answer does not depend on how busy the machine is.
 */
export class GroupWitness {
  #cat = new Cat();

  /** To be called at each signal that comes to us. */
  async saw(signal: NodeJS.Signals): Promise<boolean> {
    const cat = this.#cat;
    cat.signalled.abort();
    if (!(await cat.started)) return isatty(0) && signal !== "SIGTERM";
    if (await cat.isAlive(timeoutMs)) return false;
    if (this.#cat === cat) this.#cat = new Cat();
    return true;
  }

  /**
   * Resolves when a signal that has come to the group has come to us, too. On a busy machine the command may have ended of
   * it before.
   */
  async settled(): Promise<void> {
    const cat = this.#cat;
    if (!(await cat.started) || (await cat.isAlive(arrivalMs))) return;
    await delay(arrivalMs, cat.signalled.signal);
  }

  leave(): void {
    this.#cat.end();
  }
}

class Cat {
  // Ends with us, whatever becomes of us: its input closes then.
  readonly #child = spawn("cat", [], { stdio: ["pipe", "pipe", "ignore"] });
  readonly #closed = new AbortController();
  readonly #answers = this.#child.stdout as Socket;
  /** A signal has come to us in its time. */
  readonly signalled = new AbortController();
  /** False: there is no `cat`. */
  readonly started: Promise<boolean>;

  constructor() {
    this.#child.stdin.on("error", () => {});
    this.#child.unref();
    this.#answers.resume();
    this.#answers.unref();
    this.#child.once("exit", () => this.#closed.abort());
    this.started = new Promise((resolve) => {
      this.#child.once("spawn", () => resolve(true));
      this.#child.once("error", () => resolve(false));
    });
  }

  /** A process that does not answer counts as alive. */
  async isAlive(boundMs: number): Promise<boolean> {
    const answered = new AbortController();
    this.#answers.once("data", () => answered.abort());
    this.#child.stdin.write("alive?\n");
    await delay(boundMs, AbortSignal.any([this.#closed.signal, answered.signal]));
    return !this.#closed.signal.aborted;
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}
