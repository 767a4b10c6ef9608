/** What one look at this machine or a Tapedeck has found. */
export type Finding = {
  /** What was looked at: "disk". */
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  readonly what: string;
  /** What to do about it; where there is something to do. */
  readonly advice?: string;
};

export const ok = (check: string, what: string): Finding => ({ check, state: "ok", what });
export const warn = (check: string, what: string, advice: string): Finding => ({ check, state: "warn", what, advice });
export const fail = (check: string, what: string, advice: string): Finding => ({ check, state: "fail", what, advice });
