import { mapValues } from "./map-values.ts";
import type { ByName, ResettingPhase, SkaffoldState, V1Facts, Written } from "./state.ts";

/** Selects the fields that a reset clears. */
type IsOld = (written: Written<unknown>) => boolean;

/** A control call's reset clears what was written before the call was sent, whichever loop wrote it. */
export function resetWrittenBefore(v1: V1Facts, phase: ResettingPhase, at: number): V1Facts {
  return reset(v1, phase, (written) => written.at <= at);
}

/**
 * From the second loop on, a phase of a dev loop begins with a reset. It clears only what earlier loops wrote, so it does
 * not matter when or how often it is applied. It also clears a sync of its own loop, which precedes the build.
 */
export function resetForLoop(v1: V1Facts, phase: ResettingPhase, loop: number): V1Facts {
  if (loop < 2) return v1;
  const cleared = reset(v1, phase, (written) => written.loop < loop);
  if (phase !== "build") return cleared;
  const { sync } = cleared;
  return {
    ...cleared,
    resetForBuild: Math.max(cleared.resetForBuild, loop),
    sync: sync && sync.loop === loop && !sync.late ? null : sync,
  };
}

/** v2 reports that a phase of a loop begins. The reset applies at once if v1 has reached that loop, else when it does. */
export function hintReset(state: SkaffoldState, runner: number, loop: number, phase: ResettingPhase): SkaffoldState {
  const { v1, hints } = state;
  if (loop < 2 || runner < v1.runner) return state;
  // Loops that v1 does not report are inferred, and v2 numbers them differently.
  if (runner === v1.runner && v1.reportsLoops && loop <= v1.loop)
    return { ...state, v1: resetForLoop(v1, phase, loop) };
  return { ...state, hints: { ...hints, resets: [...hints.resets, { runner, loop, phase }] } };
}

/** v1 has reached another runner or loop. Applies the hints for it and drops those of earlier runners. */
export function takeHints(state: SkaffoldState): SkaffoldState {
  const { runner, loop } = state.v1;
  const { resets, artifacts } = state.hints;
  const due = resets.filter((hint) => hint.runner === runner && hint.loop <= loop);
  return {
    ...state,
    v1: due.reduce((v1, hint) => resetForLoop(v1, hint.phase, hint.loop), state.v1),
    hints: {
      resets: resets.filter((hint) => hint.runner >= runner && !due.includes(hint)),
      artifacts: artifacts.filter((hint) => hint.runner >= runner),
    },
  };
}

function reset(v1: V1Facts, phase: ResettingPhase, isOld: IsOld): V1Facts {
  const kept = <W extends Written<unknown>>(written: W | null) => (written && isOld(written) ? null : written);
  switch (phase) {
    case "test":
      // The code stays: a failed test of an earlier loop is reported until the next build.
      return { ...v1, test: kept(v1.test) };
    case "deploy":
      return {
        ...v1,
        deploy: kept(v1.deploy),
        deployCode: kept(v1.deployCode),
        check: kept(v1.check),
        checkCode: kept(v1.checkCode),
        resources: withoutOld(v1.resources, isOld),
        ports: withoutOld(v1.ports, isOld),
        debuggers: v1.debuggers.filter((debugger_) => !isOld(debugger_)),
      };
    case "build":
      return {
        ...reset(v1, "deploy", isOld),
        artifacts: mapValues(v1.artifacts, kept),
        buildCode: kept(v1.buildCode),
        test: kept(v1.test),
        testCode: kept(v1.testCode),
        sync: kept(v1.sync),
      };
  }
}

function withoutOld<T>(table: ByName<Written<T>>, isOld: IsOld): ByName<Written<T>> {
  return Object.fromEntries(Object.entries(table).filter(([, written]) => !isOld(written)));
}
