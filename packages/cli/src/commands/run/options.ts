import type { Find, RecordedUpstream } from "./recordable.ts";

export type RunOptions = {
  readonly url?: string;
  readonly upstream?: RecordedUpstream;
  readonly find?: Find;
  readonly developer?: string;
  readonly project?: string;
  readonly label?: Readonly<Record<string, string>>;
  readonly redact: "on" | "off";
  readonly spill?: string;
};
