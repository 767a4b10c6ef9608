export type EraseOptions = {
  readonly session?: string;
  readonly developer?: string;
  readonly data: string;
  readonly url?: string;
  readonly here?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
};
