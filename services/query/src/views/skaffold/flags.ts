import type { Flags } from "./state.ts";

/**
 * Until a state poll or a call sets a flag, it has the most likely value from the command line: on in `skaffold dev`, off
 * where there are no dev loops.
 */
export function flagsFor(flags: Flags, reportsLoops: boolean): { build: boolean; sync: boolean; deploy: boolean } {
  return {
    build: flags.build ?? reportsLoops,
    sync: flags.sync ?? reportsLoops,
    deploy: flags.deploy ?? reportsLoops,
  };
}
