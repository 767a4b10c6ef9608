// For `tapedeck replay`, which answers what query would: the state that the events of a tape fold to.
export { skaffold as skaffoldFold } from "../views/skaffold/fold.ts";
export { isState, stateItems } from "../views/states/fold.ts";
