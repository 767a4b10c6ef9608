import type { Flags } from "./state.ts";

/**
 * Until the upstream has described itself or a call has set a flag, it is what the command line most likely gave: on in
 * `skaffold dev`, off where there are no dev loops.
 */
export function flagsFor(flags: Flags, loopsTold: boolean): { build: boolean; sync: boolean; deploy: boolean } {
  return {
    build: flags.build ?? loopsTold,
    sync: flags.sync ?? loopsTold,
    deploy: flags.deploy ?? loopsTold,
  };
}
