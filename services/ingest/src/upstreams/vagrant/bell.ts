/** Ends a pause early. */
export type Bell = {
  /** Ends the pause that there is, or else the next one before it begins. */
  readonly ring: () => void;
  /** Resolves after so many ms, or when it is rung. */
  readonly pause: (ms: number) => Promise<void>;
};

export function bell(): Bell {
  let isRung = false;
  let wake = () => {};
  return {
    ring() {
      isRung = true;
      wake();
    },
    async pause(ms) {
      if (!isRung) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isRung = false;
    },
  };
}
