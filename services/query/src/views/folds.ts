import { rkt } from "./rkt/rkt.ts";
import { skaffold } from "./skaffold/skaffold.ts";
import type { Folds } from "./states/fold.ts";
import { vagrant } from "./vagrant/vagrant.ts";

export { isState } from "./states/fold.ts";

/** A new upstream does not compile until its fold is here. */
export const folds = { skaffold, rkt, vagrant } satisfies Folds;
