import fc from "fast-check";

// A property that fails is made smaller and smaller, which for large values may take for ever and tells nothing until
// it ends; a synchronous one can't be stopped by the runner. After this time, which is well within a test's own, the
// smallest failure found so far is told.
fc.configureGlobal({ interruptAfterTimeLimit: 30_000 });
