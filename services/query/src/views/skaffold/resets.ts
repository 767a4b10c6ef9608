import type { ResettingPhase, SkaffoldState, Table, V1Facts, Written } from "./state.ts";

/** Which of the written fields a reset is about. */
type IsOld = (written: Written<unknown>) => boolean;

/** A control call's reset: what stood there when the call was sent, whichever loop wrote it. */
export function resetWrittenBefore(v1: V1Facts, phase: ResettingPhase, at: number): V1Facts {
  return reset(v1, phase, (written) => written.at <= at);
}

/**
 * A reset that the phase of a dev loop begins with, from the second loop on: it clears what loops before it wrote, and
 * nothing else, so it does not matter when it is applied, nor how often. Only a sync goes before the build of its own
 * loop and is cleared as well.
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

/** v2 tells that a phase of a loop begins: at once if v1 is there, else when v1 gets there. */
export function hintReset(state: SkaffoldState, runner: number, loop: number, phase: ResettingPhase): SkaffoldState {
  const { v1, hints } = state;
  if (loop < 2 || runner < v1.runner) return state;
  // Loops that v1 does not tell are a guess, and not numbered as v2 does.
  if (runner === v1.runner && v1.loopsTold && loop <= v1.loop) return { ...state, v1: resetForLoop(v1, phase, loop) };
  return { ...state, hints: { ...hints, resets: [...hints.resets, { runner, loop, phase }] } };
}

/** v1 has come to another runner or loop: applies the hints that waited for it and drops those of runners gone by. */
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
      // The code stays: a test that failed in an earlier loop shows until the next build.
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

function withoutOld<T>(table: Table<Written<T>>, isOld: IsOld): Table<Written<T>> {
  return Object.fromEntries(Object.entries(table).filter(([, written]) => !isOld(written)));
}

function mapValues<T>(table: Table<T>, change: (value: T) => T): Table<T> {
  return Object.fromEntries(Object.entries(table).map(([name, value]) => [name, change(value)]));
}
