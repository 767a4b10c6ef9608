/** Long enough for a repeat's oldest message to come, which live ones may overtake: in steps, as we may be held up ourselves. */
const steps = { count: 10, ms: 100 } as const;

export type OtherProcess = {
  /** Something was said; `at` is its own time in ms since 1970, 0 where that can't be read. */
  readonly said: (at: number) => void;
  /** Nothing more is expected: from here on nothing is concluded. */
  readonly stop: () => void;
};

/**
 * Finds out whether who speaks is another process than the one that said something of the moment `heard`, on a channel that
 * repeats all since its process began. `isOther` is called once, when it is certain: something was said, and for a
 * second nothing as old as that. A process that says nothing, or nothing with a time, stays in doubt.
 */
export function otherProcess(heard: number, isOther: () => void): OtherProcess {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;

  const stop = () => {
    isOver = true;
    clearInterval(timer);
  };

  return {
    stop,
    said: (at) => {
      if (isOver) return;
      if (at <= heard) return stop();
      let left: number = steps.count;
      timer ??= setInterval(() => {
        if (--left > 0) return;
        stop();
        isOther();
      }, steps.ms);
    },
  };
}
