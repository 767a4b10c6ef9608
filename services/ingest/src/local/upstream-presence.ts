import { abortable } from "@tapedeck/shared/sync/abortable";
import { delay } from "@tapedeck/shared/sync/delay";
import { Notifier } from "@tapedeck/shared/sync/notifier";
import { parseAddress, portOpens, probePort } from "@tapedeck/tap/port-probe";
import type { TapItem } from "@tapedeck/tap/tap";

/** Nobody has listened for so long: longer than a process takes to be started again. */
const absentMs = 1_000;
const pollMs = 250;

/**
 * Knows whether there is an upstream at an address, without touching one that is tapped. A configured source holds its
 * lease only while somebody listens: otherwise a `tapedeck run` of the same project would be recorded as `project-2`.
 */
export class UpstreamPresence {
  readonly #address: { readonly host: string; readonly port: number };
  readonly #now: () => number;
  readonly #closed = new Notifier();
  #isConnected = false;

  /** `now`: a clock that never goes back, in milliseconds. */
  constructor(address: string, now: () => number = () => performance.now()) {
    this.#address = parseAddress(address);
    this.#now = now;
  }

  /** Observes all of the tap's items. */
  see({ what }: TapItem): void {
    if (what?.$case === "dialled") this.#isConnected = true;
    if (what?.$case !== "closed") return;
    this.#isConnected = false;
    this.#closed.ring();
  }

  /** Resolves when the upstream listens, or with the signal. */
  async came(signal: AbortSignal): Promise<void> {
    await portOpens(this.#address, signal);
  }

  /** Resolves when the upstream has not listened for a while and `mayGo` agrees, or with the signal. */
  async went(mayGo: () => boolean, signal: AbortSignal): Promise<void> {
    let since = this.#now();
    while (!signal.aborted) {
      if (this.#isConnected) {
        await abortable(this.#closed.next(), signal).catch(() => {});
        since = this.#now();
      }
      await delay(pollMs, signal);
      const isAway = !this.#isConnected && (await probePort(this.#address)) === "refused" && !this.#isConnected;
      if (!isAway) since = this.#now();
      if (isAway && this.#now() - since >= absentMs && mayGo()) return;
    }
  }
}
