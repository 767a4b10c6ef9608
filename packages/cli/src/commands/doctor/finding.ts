/** The result of one check of this machine or of a Tapedeck. */
export type Finding = {
  /** What was checked: "disk". */
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  readonly what: string;
  /** How to fix it, where there is something to fix. */
  readonly advice?: string;
};

export const ok = (check: string, what: string): Finding => ({ check, state: "ok", what });
export const warn = (check: string, what: string, advice: string): Finding => ({ check, state: "warn", what, advice });
export const fail = (check: string, what: string, advice: string): Finding => ({ check, state: "fail", what, advice });
