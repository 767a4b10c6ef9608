import type { ApiVersion } from "@tapedeck/shared/skaffold/methods";

export type ControlAnswer = { readonly code: number; readonly message: string; readonly response: Buffer };

export type ControlName = "Execute" | "AutoBuild" | "AutoSync" | "AutoDeploy" | "Handle";

export type FakeCall = {
  readonly api: ApiVersion;
  readonly name: ControlName;
  readonly method: string;
  readonly request: Buffer;
  /** Absent: the call ended the process. */
  readonly answer?: ControlAnswer;
  /** The answer is the recorded one. */
  readonly recorded: boolean;
};
