import { rkt } from "./rkt/fold.ts";
import { skaffold } from "./skaffold/fold.ts";
import type { Folds } from "./states/fold.ts";
import { vagrant } from "./vagrant/fold.ts";

export { isState } from "./states/fold.ts";

/** A new upstream does not compile until its fold is listed here. */
export const folds = { skaffold, rkt, vagrant } satisfies Folds;
