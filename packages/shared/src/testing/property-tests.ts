import fc from "fast-check";
import { searchLimitMs, searchSeed } from "./searches.ts";

// A property that fails is made smaller and smaller, which for large values may take for ever and reports nothing until
// it ends; a synchronous one can't be stopped by the runner. After this time the smallest failure found so far is reported.
fc.configureGlobal({ interruptAfterTimeLimit: searchLimitMs, seed: searchSeed });
