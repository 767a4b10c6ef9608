import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { TapItem } from "@tapedeck/tap/tap";
import type { GrpcTarget } from "../../grpc-target.ts";
import type { ConnectionFailure } from "../../recording/connection-failure.ts";

export type StateLinesOptions = {
  readonly upstream: UpstreamName;
  readonly address: string;
  readonly target: Pick<GrpcTarget, "name">;
  /** Aborts when the user has ended it: from there on nothing is lost any more. */
  readonly signal: AbortSignal;
  readonly printLine: (line: string) => void;
};

/** The output of `tapedeck record`: one line for each change, none while nothing changes. */
export type StateLines = {
  readonly see: (item: TapItem) => void;
  readonly welcomed: (source: string) => void;
  readonly away: (failure: ConnectionFailure | undefined) => void;
  readonly ended: (left: {
    readonly waiting: number;
    readonly folder: string;
    readonly why: string | undefined;
  }) => void;
};

const names: Readonly<Record<UpstreamName, string>> = { skaffold: "Skaffold", vagrant: "Vagrant's server", rkt: "rkt" };

export function stateLines(options: StateLinesOptions): StateLines {
  return new ChangesInLines(options);
}

class ChangesInLines implements StateLines {
  readonly #options: StateLinesOptions;
  readonly #what: string;
  #open: string | undefined;
  #source: string | undefined;
  #isTaken = false;
  #lastReason: string | undefined;

  constructor(options: StateLinesOptions) {
    const { upstream, address, printLine } = options;
    this.#options = options;
    this.#what = `${names[upstream]} at ${address}`;
    printLine(`waiting for ${this.#what}; press Ctrl-C to stop`);
  }

  readonly see: StateLines["see"] = ({ connection, what }) => {
    const { address, signal, printLine } = this.#options;
    if (what?.$case === "dialled" && what.value.channels.length > 0) {
      this.#open = connection;
      printLine(`connected to ${this.#what}`);
    } else if (what?.$case === "closed" && !what.value.unseen && !signal.aborted) {
      const { reason } = what.value;
      printLine(
        this.#open === connection ? `lost the connection to ${this.#what}: ${reason}` : `${address}: ${reason}`,
      );
      this.#open = undefined;
    }
  };

  readonly welcomed: StateLines["welcomed"] = (source) => {
    const { target, printLine } = this.#options;
    if (this.#source !== source) printLine(`recording as ${source} at ${target.name}`);
    else if (!this.#isTaken) printLine(`${target.name} is available again`);
    this.#source = source;
    this.#isTaken = true;
    this.#lastReason = undefined;
  };

  readonly away: StateLines["away"] = (failure) => {
    const why = failure?.why ?? "the connection is lost";
    const last = this.#lastReason;
    // During an outage one reason often follows another; only what needs a user's action is always reported.
    if (!this.#isTaken && last !== undefined && (failure?.mends !== false || last === why)) return;
    const since = this.#isTaken ? "not recorded for now" : "not recorded yet";
    this.#options.printLine(`${since}: ${why}; events are kept on this machine`);
    this.#isTaken = false;
    this.#lastReason = why;
  };

  readonly ended: StateLines["ended"] = ({ waiting, folder, why }) => {
    const { printLine } = this.#options;
    const source = this.#source;
    if (waiting === 0)
      return printLine(source === undefined ? "nothing was recorded" : `everything is recorded as ${source}`);
    const reason = why === undefined ? "" : ` (${why})`;
    const items = `${waiting} ${waiting === 1 ? "item waits" : "items wait"}`;
    printLine(
      `not recorded yet${reason}: ${items} in ${folder} for the same command, or \`tapedeck record --waiting\``,
    );
  };
}
