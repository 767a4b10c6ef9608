import type { UpstreamName } from "@tapedeck/shared/upstreams";
import type { TapItem } from "@tapedeck/tap/tap";
import type { GrpcTarget } from "../../gateway-address.ts";
import type { Trouble } from "../../record/trouble.ts";

export type StateLinesOptions = {
  readonly upstream: UpstreamName;
  readonly address: string;
  readonly target: Pick<GrpcTarget, "name">;
  /** Aborts when the user has ended it: from there on nothing is lost any more. */
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
};

/** What `tapedeck record` tells its user: one line for each change, none for what goes on as it was. */
export type StateLines = {
  readonly see: (item: TapItem) => void;
  readonly welcomed: (source: string) => void;
  readonly away: (trouble: Trouble | undefined) => void;
  readonly ended: (left: {
    readonly waiting: number;
    readonly folder: string;
    readonly why: string | undefined;
  }) => void;
};

const names: Readonly<Record<UpstreamName, string>> = { skaffold: "Skaffold", vagrant: "Vagrant's server", rkt: "rkt" };

export function stateLines({ upstream, address, target, signal, say }: StateLinesOptions): StateLines {
  const what = `${names[upstream]} at ${address}`;
  let open: string | undefined;
  let source: string | undefined;
  let isTaken = false;
  let lastReason: string | undefined;
  say(`waiting for ${what}; press Ctrl-C to stop`);
  return {
    see({ connection, what: value }) {
      if (value?.$case === "dialled" && value.value.channels.length > 0) {
        open = connection;
        say(`connected to ${what}`);
      } else if (value?.$case === "closed" && !value.value.unseen && !signal.aborted) {
        say(
          open === connection
            ? `lost the connection to ${what}: ${value.value.reason}`
            : `${address}: ${value.value.reason}`,
        );
        open = undefined;
      }
    },
    welcomed(now) {
      if (source !== now) say(`recording as ${now} at ${target.name}`);
      else if (!isTaken) say(`${target.name} is available again`);
      source = now;
      isTaken = true;
      lastReason = undefined;
    },
    away(trouble) {
      const why = trouble?.why ?? "the connection is lost";
      // While it is away one reason often follows the other; what somebody has to mend is lastReason always.
      if (!isTaken && lastReason !== undefined && (trouble?.mends !== false || lastReason === why)) return;
      say(`${isTaken ? "not recorded for now" : "not recorded yet"}: ${why}; events are kept on this machine`);
      isTaken = false;
      lastReason = why;
    },
    ended({ waiting, folder, why }) {
      if (waiting === 0)
        return say(source === undefined ? "nothing was recorded" : `everything is recorded as ${source}`);
      const reason = why === undefined ? "" : ` (${why})`;
      say(
        `not recorded yet${reason}: ${waiting} ${waiting === 1 ? "item waits" : "items wait"} in ${folder} for the same command, or \`tapedeck record --waiting\``,
      );
    },
  };
}
